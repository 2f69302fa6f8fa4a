//! Values of arguments: width and sign honoured, addresses made of registers, symbols relative to
//! the code.

use std::collections::HashMap;

use elf::ElfKind;
use elf::symbols::SymbolLookup;
use elf::{ElfVaddr, ProcAddr};
use uapi::Arch;
use usdt::Register;
use usdt::UsdtError;
use usdt::args::{ArgSpec, ArgValue, Memory, Operand, Registers, Unreadable, parse_args, value};

/// A stopped thread: registers by name, and some memory.
struct Thread {
    registers: HashMap<&'static str, u64>,
    memory_at: u64,
    memory: Vec<u8>,
}

impl Registers for Thread {
    fn register(&self, register: Register) -> Option<u64> {
        self.registers.get(register.to_string().as_str()).copied()
    }
}

impl Memory for Thread {
    fn read(&self, address: ProcAddr, buffer: &mut [u8]) -> bool {
        let start = address.0.wrapping_sub(self.memory_at) as usize;
        let bytes = start
            .checked_add(buffer.len())
            .and_then(|end| self.memory.get(start..end));
        bytes.is_some_and(|bytes| {
            buffer.copy_from_slice(bytes);
            true
        })
    }
}

fn thread() -> Thread {
    let registers = HashMap::from([
        ("rax", 0xffff_eeee_dddd_8c9b),
        ("rbp", 0x7000_0010),
        ("rcx", 2),
        ("rip", 0x5555_0000_1234),
        ("x0", 0x7000_0000),
        ("x1", 0x7000_0018),
        ("x2", 0xffff_ffff_ffff_fffe),
        ("x3", 0x1_ffff_fff8),
        ("pc", 0x5555_0000_1234),
        ("sp", 0x7000_0000),
    ]);
    let mut memory: Vec<u8> = (0x80..0xa0).collect();
    memory[16..24].copy_from_slice(&(-2.5f64).to_le_bytes());
    Thread {
        registers,
        memory_at: 0x7000_0000,
        memory,
    }
}

fn read(arch: Arch, text: &str) -> Result<ArgValue, UsdtError> {
    let args = parse_args(arch, text).unwrap();
    value(&args[0], &thread(), &thread())
}

#[test]
fn registers_by_width_and_sign() {
    let check = |text, wanted| assert_eq!(read(Arch::X86_64, text), Ok(wanted), "{text}");
    check("8@%rax", ArgValue::Unsigned(0xffff_eeee_dddd_8c9b));
    check("4@%eax", ArgValue::Unsigned(0xdddd_8c9b));
    check("2@%ax", ArgValue::Unsigned(0x8c9b));
    check("1@%al", ArgValue::Unsigned(0x9b));
    check("1@%ah", ArgValue::Unsigned(0x8c));
    check(
        "-8@%rax",
        ArgValue::Signed(0xffff_eeee_dddd_8c9b_u64.cast_signed()),
    );
    check(
        "-4@%eax",
        ArgValue::Signed(i64::from(0xdddd_8c9b_u32.cast_signed())),
    );
    check("-2@%ax", ArgValue::Signed(-0x7365));
    check("-1@%al", ArgValue::Signed(-0x65));
    check("-1@%ah", ArgValue::Signed(-0x74));
    check("1@%cl", ArgValue::Unsigned(2));
}

#[test]
fn constants_by_width_and_sign() {
    let check = |text, wanted| assert_eq!(read(Arch::X86_64, text), Ok(wanted), "{text}");
    check("4@$-1", ArgValue::Unsigned(0xffff_ffff));
    check("-4@$4294967295", ArgValue::Signed(-1));
    check("1@$300", ArgValue::Unsigned(44));
    check("-8@$-7", ArgValue::Signed(-7));
}

#[test]
fn memory_by_width_and_sign() {
    let check = |text, wanted| assert_eq!(read(Arch::X86_64, text), Ok(wanted), "{text}");
    check("4@-16(%rbp)", ArgValue::Unsigned(0x8382_8180));
    check("-1@-15(%rbp)", ArgValue::Signed(-0x7f));
    check("2@-16(%rbp,%rcx,4)", ArgValue::Unsigned(0x8988));
    check("8f@(%rbp)", ArgValue::Float(-2.5));
    let check = |text, wanted| assert_eq!(read(Arch::Aarch64, text), Ok(wanted), "{text}");
    check("1@[sp, 8]", ArgValue::Unsigned(0x88));
    check(
        "1@[x1, x2]",
        ArgValue::Unsigned(u64::from((-2.5f64).to_le_bytes()[6])),
    );
    check(
        "1@[x1, w3, sxtw]",
        ArgValue::Unsigned(u64::from((-2.5f64).to_le_bytes()[0])),
    );
    // The same bits without their sign lead 4 GiB further.
    assert!(matches!(
        read(Arch::Aarch64, "1@[x1, w3, uxtw]"),
        Err(UsdtError::MemoryUnreadable { .. })
    ));
}

#[test]
fn missing_parts_are_named() {
    let error = read(Arch::X86_64, "8@%rdi").unwrap_err();
    assert_eq!(error.to_string(), "no value for the register rdi");
    let error = read(Arch::X86_64, "8@0x100(%rbp)").unwrap_err();
    assert_eq!(error.to_string(), "can't read 8 bytes at 0x70000110");
    let error = read(Arch::X86_64, "8f@%xmm0").unwrap_err();
    let wanted =
        "argument %xmm0 can't be read: %xmm0 is a vector register, which BPF programs can't see";
    assert_eq!(error.to_string(), wanted);
}

/// Returns an argument of a probe at 0x1234, after its symbol was found or not.
fn resolved(arch: Arch, kind: ElfKind, text: &str, found: SymbolLookup) -> ArgSpec {
    let mut arg = parse_args(arch, text).unwrap().remove(0);
    arg.resolve(arch, kind, ElfVaddr(0x1234), found);
    arg
}

#[test]
fn symbols_hold_wherever_the_file_is_loaded() {
    // The probe is hit at 0x5555_0000_1234, so that the file lies 0x5555_0000_0000 above its own addresses.
    let mut thread = thread();
    thread.memory_at = 0x5555_0000_4000;
    let at = SymbolLookup::At(ElfVaddr(0x4000));
    let check = |kind, text, wanted| {
        let arg = resolved(Arch::X86_64, kind, text, at);
        assert_eq!(
            value(&arg, &thread, &thread),
            Ok(ArgValue::Unsigned(wanted)),
            "{text}"
        );
    };
    check(ElfKind::PositionIndependent, "1@counter(%rip)", 0x80);
    check(ElfKind::PositionIndependent, "1@4+counter(%rip)", 0x84);
    check(ElfKind::PositionIndependent, "1@counter", 0x80);
    check(
        ElfKind::PositionIndependent,
        "8@$counter+1",
        0x5555_0000_4001,
    );
    check(ElfKind::PositionIndependent, "1@counter(,%rcx,4)", 0x88);
}

#[test]
fn symbols_beside_a_register_need_a_fixed_address() {
    let at = SymbolLookup::At(ElfVaddr(0x7000_0000));
    let arg = resolved(Arch::X86_64, ElfKind::Fixed, "1@counter+1(%rcx)", at);
    assert_eq!(
        value(&arg, &thread(), &thread()),
        Ok(ArgValue::Unsigned(0x83))
    );
    let arg = resolved(
        Arch::X86_64,
        ElfKind::PositionIndependent,
        "1@counter+1(%rcx)",
        at,
    );
    assert_eq!(
        arg.unreadable(),
        Some(Unreadable::NotFixed {
            name: "counter".into()
        })
    );
}

#[test]
fn places_in_a_page_take_the_lower_bits() {
    let at = SymbolLookup::At(ElfVaddr(0x5_0008));
    let arg = resolved(
        Arch::Aarch64,
        ElfKind::PositionIndependent,
        "1@[x0, #:lo12:counter+2]",
        at,
    );
    assert_eq!(
        value(&arg, &thread(), &thread()),
        Ok(ArgValue::Unsigned(0x8a))
    );
}

#[test]
fn symbols_that_are_not_found() {
    let arg = resolved(
        Arch::X86_64,
        ElfKind::Fixed,
        "1@counter(%rip)",
        SymbolLookup::Missing,
    );
    assert!(matches!(arg.operand, Operand::Symbol(_)));
    let reason = arg.unreadable().unwrap().to_string();
    assert_eq!(
        reason,
        "the symbol counter is in no symbol table of the file"
    );
    let arg = resolved(
        Arch::X86_64,
        ElfKind::Fixed,
        "1@counter(%rip)",
        SymbolLookup::Ambiguous,
    );
    assert_eq!(
        arg.unreadable().unwrap().to_string(),
        "there are several symbols named counter"
    );
}
