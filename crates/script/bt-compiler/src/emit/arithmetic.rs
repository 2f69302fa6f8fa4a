//! Operators with two operands: comparisons, arithmetic, division.

use super::{Emitter, SavedNumber};
use crate::hir::Expr;
use bpf_insn::Reg::{R0, R1, R2};
use bpf_insn::{AluOp, JumpOp, Label, Reg};
use bt_abi::FailureKind;
use bt_lang::ast::BinaryOp;

/// Returns the jump for a comparison; `None` if the operator is none.
pub(super) fn comparison(op: BinaryOp, signed: bool) -> Option<JumpOp> {
    Some(match (op, signed) {
        (BinaryOp::Eq, _) => JumpOp::Eq,
        (BinaryOp::Ne, _) => JumpOp::Ne,
        (BinaryOp::Lt, false) => JumpOp::Lt,
        (BinaryOp::Le, false) => JumpOp::Le,
        (BinaryOp::Gt, false) => JumpOp::Gt,
        (BinaryOp::Ge, false) => JumpOp::Ge,
        (BinaryOp::Lt, true) => JumpOp::SLt,
        (BinaryOp::Le, true) => JumpOp::SLe,
        (BinaryOp::Gt, true) => JumpOp::SGt,
        (BinaryOp::Ge, true) => JumpOp::SGe,
        _ => return None,
    })
}

fn alu(op: BinaryOp, signed: bool) -> Option<AluOp> {
    Some(match op {
        BinaryOp::Add => AluOp::Add,
        BinaryOp::Sub => AluOp::Sub,
        BinaryOp::Mul => AluOp::Mul,
        BinaryOp::Div => AluOp::Div,
        BinaryOp::Mod => AluOp::Mod,
        BinaryOp::BitOr => AluOp::Or,
        BinaryOp::BitAnd => AluOp::And,
        BinaryOp::BitXor => AluOp::Xor,
        BinaryOp::Shl => AluOp::Lsh,
        BinaryOp::Shr if signed => AluOp::Arsh,
        BinaryOp::Shr => AluOp::Rsh,
        _ => return None,
    })
}

/// Returns a constant that fits an instruction.
fn small(ex: &Expr) -> Option<i32> {
    ex.constant()
        .and_then(|value| i32::try_from(value.cast_signed()).ok())
}

impl Emitter<'_> {
    /// Sets r0 to the left number and r1 to the right one.
    fn pair(&mut self, left: &Expr, right: &Expr) {
        let (left, right) = self.operands(left, right);
        if right == R0 {
            self.asm.mov(R1, R0).mov(R0, left);
        }
    }

    /// Computes two numbers and returns their registers, valid for the next instruction only: r0
    /// and r1, or a register that calls preserve and r0.
    fn operands(&mut self, left: &Expr, right: &Expr) -> (Reg, Reg) {
        self.scalar(left);
        if self.is_simple(right) {
            self.simple(right, R1);
            return (R0, R1);
        }
        let saved = self.save();
        self.scalar(right);
        self.release(saved);
        match saved {
            SavedNumber::Reg(left) => (left, R0),
            SavedNumber::Slot(_) => {
                self.asm.mov(R1, R0);
                self.reload(saved, R0);
                (R0, R1)
            }
        }
    }

    /// Jumps to a label if a comparison holds.
    pub(super) fn compare(&mut self, left: &Expr, right: &Expr, op: JumpOp, to: Label) {
        self.temporary(|emitter| {
            if let Some(number) = small(right) {
                emitter.scalar(left);
                emitter.asm.jump_if(R0, op, number, to);
            } else {
                let (left, right) = emitter.operands(left, right);
                emitter.asm.jump_if(left, op, right, to);
            }
        });
    }

    /// Sets r0 to the result of an operation on two numbers.
    /// ```text
    /// comparisons, && and ||: as conditions
    /// / and %: division
    /// with a small constant: r0 = left; r0 op= constant
    /// else: left and right in registers; left op= right; r0 = left
    /// ```
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        signed: bool,
        ex: &Expr,
    ) {
        if matches!(op, BinaryOp::LogAnd | BinaryOp::LogOr) || comparison(op, signed).is_some() {
            self.truth(ex);
            return;
        }
        let Some(operation) = alu(op, signed) else {
            self.impossible("an operator that is neither a comparison nor an operation");
            return;
        };
        self.temporary(|emitter| {
            if matches!(op, BinaryOp::Div | BinaryOp::Mod) {
                emitter.division(left, right, operation, signed);
                return;
            }
            // The verifier refuses a shift by a constant of 64 or more; the machine takes the low
            // six bits.
            let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
            if let Some(number) = small(right) {
                emitter.scalar(left);
                emitter
                    .asm
                    .alu(operation, R0, if shift { number & 63 } else { number });
            } else {
                let (left, right) = emitter.operands(left, right);
                emitter.asm.alu(operation, left, right).mov(R0, left);
            }
        });
    }

    /// Sets r0 to the quotient or the remainder; to 1 if the divisor is 0, as in bpftrace.
    /// ```text
    /// unsigned by a small constant: r0 = left; r0 op= constant
    /// r0 = left; r1 = right
    /// if r1 == 0: count it; r0 = 1; goto done
    /// r0 = r0 op r1
    /// done:
    /// ```
    fn division(&mut self, left: &Expr, right: &Expr, operation: AluOp, signed: bool) {
        let (fine, done) = (self.asm.label("divisor"), self.asm.label("quotient"));
        let is_known = right.constant().is_some_and(|number| number != 0);
        if let Some(number) = small(right)
            && is_known
            && !signed
        {
            self.scalar(left);
            self.asm.alu(operation, R0, number);
            return;
        }
        self.pair(left, right);
        if !is_known {
            self.asm.jump_if(R1, JumpOp::Ne, 0, fine);
            self.failed(FailureKind::DivisionByZero);
            self.asm.mov(R0, 1).jump(done).bind(fine);
        }
        if signed {
            self.signed_division(operation);
        } else {
            self.asm.alu(operation, R0, R1);
        }
        self.asm.bind(done);
    }

    /// Sets r0 to r0 / r1 or r0 % r1 with signs. Kernels before 6.6 have only unsigned division.
    fn signed_division(&mut self, op: AluOp) {
        let (left, right, done) = (
            self.asm.label("left"),
            self.asm.label("right"),
            self.asm.label("divided"),
        );
        // r2 is 1 if the result is negative; a remainder has the dividend's sign.
        self.asm
            .mov(R2, 0)
            .jump_if(R0, JumpOp::SGe, 0, left)
            .neg(R0)
            .xor(R2, 1)
            .bind(left);
        self.asm.jump_if(R1, JumpOp::SGe, 0, right).neg(R1);
        if op == AluOp::Div {
            self.asm.xor(R2, 1);
        }
        self.asm
            .bind(right)
            .alu(op, R0, R1)
            .jump_if(R2, JumpOp::Eq, 0, done)
            .neg(R0)
            .bind(done);
    }
}
