//! Tests that run programs of this crate on the interpreter.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use bpf_insn::Asm;
use bpf_insn::Reg::{R0, R1, R6, R10};
use bpf_interp::{Machine, Program};
use bpf_program::operand;
use uapi::Arch;
use usdt::args::parse_args;

/// Bits in which each half, quarter and eighth has its sign bit set, and all differ.
const BITS: u64 = 0xfedc_ba98_b6a5_94f3;
/// Offset of `rax` in `struct pt_regs` of x86-64 (`arch/x86/include/asm/ptrace.h`).
const RAX: usize = 80;
/// Offset of `rbx` in `struct pt_regs` of x86-64 (`arch/x86/include/asm/ptrace.h`).
const RBX: usize = 40;
/// Address in the process's memory.
const ADDRESS: u64 = 0x7f00_0000_1000;

/// Fetches an argument on the interpreter, with `BITS` in `rax` and in the memory that `rbx` points
/// to.
fn fetched(text: &str) -> u64 {
    let arg = &parse_args(Arch::X86_64, text).unwrap()[0];
    let mut asm = Asm::new();
    let failed = asm.label("failed");
    asm.mov(R6, R1);
    operand::store(&mut asm, R6, arg, R10.at(-8), failed);
    asm.bind(failed)
        .load(bpf_insn::Size::DW, R0, R10.at(-8))
        .exit();
    let code = asm.finish().unwrap();
    let mut machine = Machine::new(&[]).unwrap();
    machine.put(ADDRESS, &BITS.to_le_bytes());
    let mut registers = [0; 168];
    registers[RAX..RAX + 8].copy_from_slice(&BITS.to_le_bytes());
    registers[RBX..RBX + 8].copy_from_slice(&ADDRESS.to_le_bytes());
    machine
        .run(&Program::new("fetch", &code), &registers)
        .unwrap()
}

/// The bits of an argument above its width are zeros, or copies of its sign.
#[test]
fn arguments_are_extended_as_their_type_wants() {
    for operand in ["%rax", "(%rbx)"] {
        for (width, wanted) in [
            ("8", BITS),
            ("-8", BITS),
            ("4", 0xb6a5_94f3),
            ("-4", 0xffff_ffff_b6a5_94f3),
            ("2", 0x94f3),
            ("-2", 0xffff_ffff_ffff_94f3),
            ("1", 0xf3),
            ("-1", 0xffff_ffff_ffff_fff3),
            ("4f", 0xb6a5_94f3),
            ("8f", BITS),
        ] {
            let text = format!("{width}@{operand}");
            assert_eq!(fetched(&text), wanted, "{text}: {:#x}", fetched(&text));
        }
    }
}
