//! Numbers, which are computed in r0.

use bpf_insn::Reg::{R0, R1, R2};
use bpf_insn::{JumpOp, Reg, Size};

use super::Emitter;
use crate::hir::{Expr, ExprKind};
use crate::ty::Ty;
use bt_abi::FailureKind;

impl Emitter<'_> {
    /// Sets r0 to a number, extended to 64 bits with the sign of its type.
    pub(super) fn scalar(&mut self, ex: &Expr) {
        self.within(ex.span, |emitter| emitter.number(ex));
    }

    /// Computes each form of expression that gives a number. Those with code of their own here are:
    /// ```text
    /// a ? b : c     if !a goto else; r0 = b; goto done; else: r0 = c; done:
    /// a ?: b        r0 = a; if r0 goto done; r0 = b; done:
    /// reinterpret   word = 0; write the value there; r0 = word
    /// ```
    fn number(&mut self, ex: &Expr) {
        match &ex.kind {
            ExprKind::Error => self.impossible("an expression that was refused, and no diagnostic"),
            ExprKind::Int(_) | ExprKind::Ctx { .. } => self.simple(ex, R0),
            ExprKind::Var(_) if ex.ty.is_scalar() => self.simple(ex, R0),
            ExprKind::Neg(inner) => {
                self.scalar(inner);
                self.asm.neg(R0);
            }
            ExprKind::BitNot(inner) => {
                self.scalar(inner);
                self.asm.xor(R0, -1);
            }
            ExprKind::Not(_) | ExprKind::MemEq { .. } => self.truth(ex),
            ExprKind::Binary {
                op,
                left,
                right,
                signed,
            } => self.binary(*op, left, right, *signed, ex),
            ExprKind::StrnCmp { left, right, count } => self.strncmp(left, right, *count),
            ExprKind::Cond {
                cond,
                then,
                otherwise,
            } => {
                let (then, otherwise) = (&**then, &**otherwise);
                self.choose(
                    cond,
                    |emitter| emitter.scalar(then),
                    |emitter| emitter.scalar(otherwise),
                );
            }
            ExprKind::Elvis(first, otherwise) => {
                let done = self.asm.label("chosen");
                self.scalar(first);
                self.asm.jump_if(R0, JumpOp::Ne, 0, done);
                self.temporary(|emitter| emitter.scalar(otherwise));
                self.asm.bind(done);
            }
            ExprKind::Convert(inner) => {
                self.scalar(inner);
                self.narrow_to(&inner.ty, &ex.ty);
            }
            ExprKind::Reinterpret(inner) => self.temporary(|emitter| {
                let place = emitter.stack(8);
                emitter.zero(place, 8);
                let whole = inner.ty.size().min(8);
                emitter.write_bytes(inner, whole, place);
                emitter.load(place, &ex.ty, R0);
            }),
            ExprKind::Block { stmts, value } => {
                self.stmts(stmts);
                self.scalar(value);
            }
            ExprKind::StepVar { var, by, post } => self.step_var(*var, *by, *post),
            ExprKind::StepMap { map, key, by, post } => self.step_map(*map, key, *by, *post),
            ExprKind::Intrinsic(fun, args) => self.intrinsic(*fun, args),
            _ => self.stored_number(ex),
        }
    }

    /// Computes each form of expression that gives a number from a map, from memory or from the
    /// context. One has code of its own here:
    /// ```text
    /// index         r0 = index; if r0 >= count: count it
    /// ```
    fn stored_number(&mut self, ex: &Expr) {
        match &ex.kind {
            ExprKind::MapGet { map, key } => self.get_scalar(*map, key),
            ExprKind::AggGet { map, key } => self.temporary(|emitter| {
                let key = emitter.key(*map, key);
                emitter.missing_key(*map, key);
                emitter.read_aggregate(*map, key);
            }),
            ExprKind::VarAddr(var) => {
                self.needed.addresses = true;
                self.address(self.vars[*var], R0);
                self.number_of(R0);
            }
            ExprKind::MapAddr(map) => {
                self.load_map(*map);
                self.number_of(R1);
            }
            ExprKind::Load { addr, space, bits } => self.load_foreign(addr, *space, &ex.ty, *bits),
            ExprKind::Subobject { base, offset, bits } => {
                self.subobject(base, *offset, *bits, &ex.ty);
            }
            ExprKind::Index { index, count } => {
                self.scalar(index);
                let within = self.asm.label("within");
                self.asm
                    .jump_if(R0, JumpOp::Lt, count.cast_signed(), within);
                self.failed(FailureKind::OutOfBounds);
                self.asm.bind(within);
            }
            ExprKind::Elem { base, index } => self.element(base, index, &ex.ty),
            ExprKind::CtxAddr { offset } => {
                let context = self.context_in(R0);
                self.asm.mov(R0, context).add(R0, offset.cast_signed());
            }
            ExprKind::DataLoc { offset, relative } => self.data_loc(*offset, *relative),
            ExprKind::UsdtArg(spec) => self.usdt_arg(spec),
            ExprKind::HasKey { map, key } => self.has_key(*map, key),
            ExprKind::Delete { map, key } => self.delete(*map, key),
            ExprKind::Len(map) => self.map_len(*map),
            _ => self.impossible("a value in memory where a number is wanted"),
        }
    }

    /// Runs one of two arms, with the memory of each freed behind it.
    pub(super) fn choose(
        &mut self,
        cond: &Expr,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let (no, done) = (self.asm.label("else"), self.asm.label("chosen"));
        self.jump_unless(cond, no);
        self.temporary(then);
        self.asm.jump(done).bind(no);
        self.temporary(otherwise);
        self.asm.bind(done);
    }

    /// Loads a value into a register, if [`Emitter::is_simple`] holds for it. Changes no other
    /// register.
    pub(super) fn simple(&mut self, ex: &Expr, to: Reg) {
        match &ex.kind {
            ExprKind::Int(value) => {
                self.asm.constant(to, *value);
            }
            ExprKind::Var(var) => {
                let (place, ty) = (self.vars[*var], &self.body.vars[*var].ty);
                // Variables take 8 bytes, regardless of their type.
                let wide = Ty::Int {
                    size: 8,
                    signed: ty.is_signed(),
                };
                self.load(place, &wide, to);
            }
            ExprKind::Ctx { offset, size } => {
                if let Some(slot) = self.present_at(*offset) {
                    self.asm.load(Size::DW, to, self.frame.at(slot));
                    return;
                }
                let context = self.context_in(to);
                self.load_at(
                    context,
                    *offset as i16,
                    &Ty::Int {
                        size: *size,
                        signed: ex.ty.is_signed(),
                    },
                    to,
                );
            }
            _ => self.impossible("an expression that one or two instructions can't load"),
        }
    }

    /// Converts r0 from a number of type `from` to one of type `to`.
    pub(super) fn narrow_to(&mut self, from: &Ty, to: &Ty) {
        if *to == Ty::Bool && *from != Ty::Bool {
            let done = self.asm.label("bool");
            self.asm
                .jump_if(R0, JumpOp::Eq, 0, done)
                .mov(R0, 1)
                .bind(done);
            return;
        }
        let (size, wide) = (to.size(), from.size());
        if size >= 8
            || (size >= wide
                && (from.is_signed() == to.is_signed() || !from.is_signed() && size > wide))
        {
            return;
        }
        if to.is_signed() {
            self.sign(R0, size);
        } else if size == 4 {
            self.asm.mov32(R0, R0);
        } else {
            self.asm.and(R0, (1 << (size * 8)) - 1);
        }
    }

    /// Sets r0 to 1 if a condition holds, else to 0.
    pub(super) fn truth(&mut self, ex: &Expr) {
        if let ExprKind::MemEq {
            left,
            right,
            negate,
        } = &ex.kind
        {
            self.mem_eq(left, right, *negate);
            return;
        }
        let (no, done) = (self.asm.label("false"), self.asm.label("known"));
        self.jump_unless(ex, no);
        self.asm
            .mov(R0, 1)
            .jump(done)
            .bind(no)
            .mov(R0, 0)
            .bind(done);
    }

    fn step_var(&mut self, var: usize, by: i64, post: bool) {
        let (place, ty) = (self.vars[var], &self.body.vars[var].ty);
        let wide = Ty::Int {
            size: 8,
            signed: ty.is_signed(),
        };
        self.load(place, &wide, R0);
        if post {
            self.asm.mov(R2, R0);
        }
        match i32::try_from(by) {
            Ok(by) => self.asm.add(R0, by),
            Err(_) => self.asm.constant(R1, by.cast_unsigned()).add(R0, R1),
        };
        let int = Ty::Int {
            size: 8,
            signed: ty.is_signed(),
        };
        self.narrow_to(&int, ty);
        self.store(place, Size::DW, R0);
        if post {
            self.asm.mov(R0, R2);
        }
    }
}
