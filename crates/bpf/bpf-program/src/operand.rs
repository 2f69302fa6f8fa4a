//! Instructions that fetch a USDT probe's argument from the location in its note.
//!
//! The context is `struct pt_regs` at the time of the hit (`bpf_user_pt_regs_t`).

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Addr, Asm, Helper, JumpOp, Label, Reg, Size, SxSize};
use usdt::args::{ArgSpec, ArgType, Extend, MemoryOperand, Operand};
use usdt::registers::Register;

/// Returns whether fetching an argument can fail when the probe is hit.
pub fn can_fail(arg: &ArgSpec) -> bool {
    matches!(arg.operand, Operand::Memory(_))
}

/// Stores an argument's 64 bits at `slot`, extended as its type requires. If its memory can't be
/// read, stores 0 and goes to `failed`; an argument that no program can read
/// ([`ArgSpec::unreadable`]) is 0. Uses r0 to r5; `context` must be one of r6 to r9.
pub fn store(asm: &mut Asm, context: Reg, arg: &ArgSpec, slot: Addr, failed: Label) {
    match &arg.operand {
        Operand::Register { register, shift } => {
            load_register(asm, context, *register, R1);
            if *shift != 0 {
                asm.rsh(R1, i32::from(*shift));
            }
            narrow(asm, R1, arg.ty);
            asm.store(Size::DW, slot, R1);
        }
        Operand::Constant(value) => {
            asm.constant(R1, arg.ty.extend(value.cast_unsigned()))
                .store(Size::DW, slot, R1);
        }
        Operand::Address(memory) => {
            load_address(asm, context, memory);
            narrow(asm, R3, arg.ty);
            asm.store(Size::DW, slot, R3);
        }
        Operand::Memory(memory) => {
            asm.store(Size::DW, slot, 0);
            load_address(asm, context, memory);
            asm.mov(R1, slot.base)
                .add(R1, i32::from(slot.off))
                .mov(R2, arg.ty.size.cast_signed());
            asm.call(Helper::PROBE_READ_USER)
                .jump_if(R0, JumpOp::Ne, 0, failed);
            // The bytes above are 0 already: an unsigned little-endian number needs nothing more.
            if arg.ty.signed && !arg.ty.float && arg.ty.size < 8 {
                asm.load(Size::DW, R1, slot);
                narrow(asm, R1, arg.ty);
                asm.store(Size::DW, slot, R1);
            }
        }
        Operand::Symbol(_) | Operand::Unreadable(_) => {
            asm.store(Size::DW, slot, 0);
        }
    }
}

fn load_register(asm: &mut Asm, context: Reg, register: Register, to: Reg) {
    // All offsets of registers are below 512 (usdt::registers).
    asm.load(
        Size::DW,
        to,
        context.at(register.pt_regs_offset().cast_signed()),
    );
}

/// Sets r3 to base + (index << shift) + offset. Uses r1.
fn load_address(asm: &mut Asm, context: Reg, memory: &MemoryOperand) {
    match memory.base {
        Some(base) => load_register(asm, context, base, R3),
        None => {
            asm.mov(R3, 0);
        }
    }
    if let Some(index) = memory.index {
        load_register(asm, context, index.register, R1);
        match index.extend {
            Extend::Full => {}
            Extend::Zero32 => {
                asm.mov32(R1, R1);
            }
            Extend::Sign32 => {
                asm.sign_extend(R1, SxSize::W);
            }
        }
        if index.shift != 0 {
            asm.lsh(R1, i32::from(index.shift));
        }
        asm.add(R3, R1);
    }
    match i32::try_from(memory.offset) {
        Ok(0) => {}
        Ok(offset) => {
            asm.add(R3, offset);
        }
        Err(_) => {
            asm.constant(R1, memory.offset.cast_unsigned()).add(R3, R1);
        }
    }
}

/// Keeps the bits of the type, and fills those above with zeros or copies of the sign.
fn narrow(asm: &mut Asm, reg: Reg, ty: ArgType) {
    if ty.size >= 8 {
        return;
    }
    let signed = ty.signed && !ty.float;
    match (ty.size, signed) {
        (4, false) => {
            asm.mov32(reg, reg);
        }
        (1, true) => {
            asm.sign_extend(reg, SxSize::B);
        }
        (2, true) => {
            asm.sign_extend(reg, SxSize::H);
        }
        (_, true) => {
            asm.sign_extend(reg, SxSize::W);
        }
        (size, false) => {
            asm.and(reg, (1 << (size * 8)) - 1);
        }
    }
}
