//! Constant folding. Numbers are 64 bits wide, as in programs.

use bt_lang::ast::BinaryOp;

/// Computes an operation on two constants; `None` for a division by zero.
pub(crate) fn binary(op: BinaryOp, left: u64, right: u64, signed: bool) -> Option<u64> {
    let (l, r) = (left.cast_signed(), right.cast_signed());
    let flag = |yes: bool| Some(u64::from(yes));
    let ordered = |yes: fn(std::cmp::Ordering) -> bool| {
        flag(yes(if signed { l.cmp(&r) } else { left.cmp(&right) }))
    };
    match op {
        BinaryOp::LogOr => flag(left != 0 || right != 0),
        BinaryOp::LogAnd => flag(left != 0 && right != 0),
        BinaryOp::BitOr => Some(left | right),
        BinaryOp::BitXor => Some(left ^ right),
        BinaryOp::BitAnd => Some(left & right),
        BinaryOp::Eq => flag(left == right),
        BinaryOp::Ne => flag(left != right),
        BinaryOp::Lt => ordered(std::cmp::Ordering::is_lt),
        BinaryOp::Le => ordered(std::cmp::Ordering::is_le),
        BinaryOp::Gt => ordered(std::cmp::Ordering::is_gt),
        BinaryOp::Ge => ordered(std::cmp::Ordering::is_ge),
        // The machine takes only the low six bits of the distance.
        BinaryOp::Shl => Some(left.wrapping_shl(right as u32)),
        BinaryOp::Shr if signed => Some(l.wrapping_shr(right as u32).cast_unsigned()),
        BinaryOp::Shr => Some(left.wrapping_shr(right as u32)),
        BinaryOp::Add => Some(left.wrapping_add(right)),
        BinaryOp::Sub => Some(left.wrapping_sub(right)),
        BinaryOp::Mul => Some(left.wrapping_mul(right)),
        BinaryOp::Div | BinaryOp::Mod if right == 0 => None,
        BinaryOp::Div if signed => Some(l.wrapping_div(r).cast_unsigned()),
        BinaryOp::Div => Some(left / right),
        BinaryOp::Mod if signed => Some(l.wrapping_rem(r).cast_unsigned()),
        BinaryOp::Mod => Some(left % right),
    }
}

/// Extends the low `size` bytes of a value to 64 bits.
pub(crate) fn narrow(value: u64, size: u8, signed: bool) -> u64 {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    if signed {
        ((value << unused).cast_signed() >> unused).cast_unsigned()
    } else {
        value << unused >> unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_matter_where_they_do() {
        let minus = |n: i64| n.cast_unsigned();
        assert_eq!(binary(BinaryOp::Div, minus(-7), 2, true), Some(minus(-3)));
        assert_eq!(binary(BinaryOp::Mod, minus(-7), 2, true), Some(minus(-1)));
        assert_eq!(binary(BinaryOp::Shr, minus(-8), 1, true), Some(minus(-4)));
        assert_eq!(binary(BinaryOp::Lt, minus(-1), 1, true), Some(1));
        assert_eq!(binary(BinaryOp::Lt, minus(-1), 1, false), Some(0));
        assert_eq!(binary(BinaryOp::Div, 1, 0, false), None);
        assert_eq!(
            binary(BinaryOp::Div, i64::MIN.cast_unsigned(), minus(-1), true),
            Some(i64::MIN.cast_unsigned())
        );
    }

    #[test]
    fn narrowing_keeps_the_low_bytes() {
        assert_eq!(narrow(0x1ff, 1, false), 0xff);
        assert_eq!(narrow(0x1ff, 1, true), u64::MAX);
        assert_eq!(narrow(u64::MAX, 8, true), u64::MAX);
    }
}
