//! Arithmetic and comparisons, as RFC 9669 defines them (sections 4.1 to 4.3).

use bpf_insn::{AluOp, AtomicOp, ByteOrder, Extend, JumpOp, SwapBits, Width};

/// Computes `left op right`.
pub(crate) fn alu(op: AluOp, width: Width, left: u64, right: u64) -> u64 {
    match width {
        Width::W64 => alu64(op, left, right),
        Width::W32 => u64::from(alu32(op, left as u32, right as u32)),
    }
}

fn alu64(op: AluOp, left: u64, right: u64) -> u64 {
    let (signed, divisor) = (left.cast_signed(), right.cast_signed());
    match op {
        AluOp::Add => left.wrapping_add(right),
        AluOp::Sub => left.wrapping_sub(right),
        AluOp::Mul => left.wrapping_mul(right),
        AluOp::Div => left.checked_div(right).unwrap_or(0),
        AluOp::SDiv if right == 0 => 0,
        AluOp::SDiv => signed.wrapping_div(divisor).cast_unsigned(),
        AluOp::Or => left | right,
        AluOp::And => left & right,
        AluOp::Lsh => left << (right & 63),
        AluOp::Rsh => left >> (right & 63),
        AluOp::Mod => left.checked_rem(right).unwrap_or(left),
        AluOp::SMod if right == 0 => left,
        AluOp::SMod => signed.wrapping_rem(divisor).cast_unsigned(),
        AluOp::Xor => left ^ right,
        AluOp::Mov => right,
        AluOp::Arsh => (signed >> (right & 63)).cast_unsigned(),
    }
}

fn alu32(op: AluOp, left: u32, right: u32) -> u32 {
    let (signed, divisor) = (left.cast_signed(), right.cast_signed());
    match op {
        AluOp::Mul => left.wrapping_mul(right),
        AluOp::Div => left.checked_div(right).unwrap_or(0),
        AluOp::SDiv if right == 0 => 0,
        AluOp::SDiv => signed.wrapping_div(divisor).cast_unsigned(),
        AluOp::Lsh => left << (right & 31),
        AluOp::Rsh => left >> (right & 31),
        AluOp::Mod => left.checked_rem(right).unwrap_or(left),
        AluOp::SMod if right == 0 => left,
        AluOp::SMod => signed.wrapping_rem(divisor).cast_unsigned(),
        AluOp::Arsh => (signed >> (right & 31)).cast_unsigned(),
        _ => alu64(op, u64::from(left), u64::from(right)) as u32,
    }
}

/// Computes `-value`.
pub(crate) fn neg(width: Width, value: u64) -> u64 {
    match width {
        Width::W64 => value.wrapping_neg(),
        Width::W32 => u64::from((value as u32).wrapping_neg()),
    }
}

/// Sign-extends the value of a narrower type.
pub(crate) fn extend(extend: Extend, value: u64) -> u64 {
    let wide = match extend {
        Extend::S8To32 | Extend::S8To64 => i64::from((value as u8).cast_signed()),
        Extend::S16To32 | Extend::S16To64 => i64::from((value as u16).cast_signed()),
        Extend::S32To64 => i64::from((value as u32).cast_signed()),
    };
    let is_32 = matches!(extend, Extend::S8To32 | Extend::S16To32);
    if is_32 {
        wide.cast_unsigned() & u64::from(u32::MAX)
    } else {
        wide.cast_unsigned()
    }
}

/// Converts the byte order; the machine is little-endian.
pub(crate) fn swap(order: ByteOrder, bits: SwapBits, value: u64) -> u64 {
    let turns = order != ByteOrder::Little;
    match bits {
        SwapBits::B16 if turns => u64::from((value as u16).swap_bytes()),
        SwapBits::B16 => u64::from(value as u16),
        SwapBits::B32 if turns => u64::from((value as u32).swap_bytes()),
        SwapBits::B32 => u64::from(value as u32),
        SwapBits::B64 if turns => value.swap_bytes(),
        SwapBits::B64 => value,
    }
}

/// Returns whether a comparison holds.
pub(crate) fn holds(op: JumpOp, width: Width, left: u64, right: u64) -> bool {
    let (left, right, a, b) = match width {
        Width::W64 => (left, right, left.cast_signed(), right.cast_signed()),
        Width::W32 => {
            let (l, r) = (left as u32, right as u32);
            (
                u64::from(l),
                u64::from(r),
                i64::from(l.cast_signed()),
                i64::from(r.cast_signed()),
            )
        }
    };
    match op {
        JumpOp::Eq => left == right,
        JumpOp::Gt => left > right,
        JumpOp::Ge => left >= right,
        JumpOp::Set => left & right != 0,
        JumpOp::Ne => left != right,
        JumpOp::SGt => a > b,
        JumpOp::SGe => a >= b,
        JumpOp::Lt => left < right,
        JumpOp::Le => left <= right,
        JumpOp::SLt => a < b,
        JumpOp::SLe => a <= b,
    }
}

/// Returns the word after an atomic operation; `expected` is r0.
pub(crate) fn atomic(op: AtomicOp, old: u64, operand: u64, expected: u64) -> u64 {
    match op {
        AtomicOp::Add | AtomicOp::FetchAdd => old.wrapping_add(operand),
        AtomicOp::Or | AtomicOp::FetchOr => old | operand,
        AtomicOp::And | AtomicOp::FetchAnd => old & operand,
        AtomicOp::Xor | AtomicOp::FetchXor => old ^ operand,
        AtomicOp::Xchg => operand,
        AtomicOp::CmpXchg if old == expected => operand,
        AtomicOp::CmpXchg => old,
    }
}
