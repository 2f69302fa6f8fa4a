//! Values in memory, written to their destination.

use bpf_insn::Reg::{R0, R1};
use bpf_insn::{JumpOp, Size};

use super::Emitter;
use super::foreign::Foreign;
use super::place::MemoryRef;
use crate::hir::{Expr, ExprKind};
use crate::ty::{Space, Ty};
use bt_abi::FailureKind;

impl Emitter<'_> {
    /// Writes a value as one of type `to`. All of its bytes are set then, padding included.
    pub(super) fn write(&mut self, ex: &Expr, to: &Ty, place: MemoryRef) {
        self.within(ex.span, |emitter| emitter.write_value(ex, to, place));
    }

    /// Reads a value from foreign memory.
    fn write_foreign(&mut self, from: &Ty, addr: &Expr, space: Space, to: &Ty, place: MemoryRef) {
        if self.is_kept_text(from, to, place) {
            self.scalar(addr);
            self.write_field(from, space, to, place);
            return;
        }
        let size = from.size().min(to.size());
        self.pad(place, size, to.size());
        self.read_value(addr, space, size, place);
        self.end_text(from, to, place);
    }

    /// Writes each form of expression that gives a value in memory:
    /// ```text
    /// literal, tuple: its parts, with zeros between
    /// a ? b : c: if !a goto else; write b; goto done; else: write c; done:
    /// @map[key]: r0 = lookup(map, key); copy from r0, or zeros
    /// foreign memory: read it; a text that may become a key only up to its NUL
    /// variables and parts of values: copy, converted to the type
    /// ```
    fn write_value(&mut self, ex: &Expr, to: &Ty, place: MemoryRef) {
        if to.is_scalar() {
            self.write_scalar(ex, to, place);
            return;
        }
        match &ex.kind {
            ExprKind::Error => self.impossible("an expression that was refused, and no diagnostic"),
            ExprKind::Str(text) => self.literal(place, text, to.size()),
            ExprKind::Tuple(items) => self.write_tuple(ex, items, to, place),
            ExprKind::Cond {
                cond,
                then,
                otherwise,
            } => {
                let (then, otherwise) = (&**then, &**otherwise);
                self.choose(
                    cond,
                    |emitter| emitter.write(then, to, place),
                    |emitter| emitter.write(otherwise, to, place),
                );
            }
            ExprKind::Block { stmts, value } => {
                self.stmts(stmts);
                self.write(value, to, place);
            }
            ExprKind::MapGet { map, key } => self.get_value(*map, key, to, place),
            ExprKind::MemRef { addr, space } => {
                self.write_foreign(&ex.ty, addr, *space, to, place);
            }
            ExprKind::Intrinsic(fun, args) => {
                // Extra room at the destination does not change the number of bytes read.
                let same_form = std::mem::discriminant(&ex.ty) == std::mem::discriminant(to);
                let own = if same_form && ex.ty.size() <= to.size() {
                    &ex.ty
                } else {
                    to
                };
                self.pad(place, own.size(), to.size());
                self.intrinsic_value(*fun, args, own, place);
            }
            ExprKind::Elem { base, index } => self.write_element(base, index, to, place),
            ExprKind::Reinterpret(inner) => {
                self.scalar(inner);
                let size = self.size_of(to.size());
                self.store(place, size, R0);
            }
            ExprKind::Var(_) | ExprKind::Subobject { .. } => {
                let from = self.place_of(ex);
                if ex.is_text_of_struct() && self.is_kept_text(&ex.ty, to, place) {
                    self.address(from, R0);
                    self.write_field(&ex.ty, Space::Kernel, to, place);
                    return;
                }
                self.convert_copy(&ex.ty, from, to, place);
            }
            _ => self.impossible("a number where a value in memory is wanted"),
        }
    }

    /// Returns true for a string whose bytes behind the NUL matter, since it may become a key or be
    /// compared.
    pub(super) fn is_kept_text(&self, from: &Ty, to: &Ty, place: MemoryRef) -> bool {
        matches!((from, to), (Ty::Str(1..), Ty::Str(1..))) && self.shown != Some(place.base)
    }

    /// Writes the text of a field at the address in r0, with zeros behind its NUL.
    pub(super) fn write_field(&mut self, from: &Ty, space: Space, to: &Ty, place: MemoryRef) {
        let addr = self.save();
        let room = from.size().min(to.size());
        self.zero(place, to.size());
        self.read_field(&Foreign {
            addr,
            space,
            text: true,
            to: place,
            room,
            limit: None,
        });
        self.release(addr);
        self.end_text(from, to, place);
    }

    fn write_scalar(&mut self, ex: &Expr, to: &Ty, place: MemoryRef) {
        let size = self.size_of(to.size());
        if let Some(number) = ex
            .constant()
            .and_then(|value| i32::try_from(value.cast_signed()).ok())
        {
            self.store(place, size, number);
            return;
        }
        self.temporary(|emitter| {
            emitter.scalar(ex);
            // A store cuts a number to size; only a truth value is computed anew.
            if *to == Ty::Bool {
                emitter.narrow_to(&ex.ty, to);
            }
            emitter.store(place, size, R0);
        });
    }

    /// Writes zeros behind the first `size` bytes.
    pub(super) fn pad(&mut self, place: MemoryRef, size: u32, whole: u32) {
        if size < whole {
            self.zero(place.at(size), whole - size);
        }
    }

    /// Ends a string that was cut: its last byte becomes the NUL.
    fn end_text(&mut self, from: &Ty, to: &Ty, place: MemoryRef) {
        if let (Ty::Str(a), Ty::Str(b)) = (from, to)
            && a > b
            && *b > 0
        {
            self.store(place.at(b - 1), Size::B, 0);
        }
    }

    fn write_tuple(&mut self, ex: &Expr, items: &[Expr], to: &Ty, place: MemoryRef) {
        let parts = to.parts();
        self.zero_between(&parts, to.size(), place);
        // A record's fields are matched by name.
        let names = ex.ty.parts();
        for (index, item) in items.iter().enumerate() {
            let name = names.get(index).and_then(|part| part.0);
            let part = match name {
                Some(name) => parts.iter().find(|part| part.0 == Some(name)),
                None => parts.get(index),
            };
            match part {
                Some((_, offset, ty)) => {
                    self.temporary(|emitter| emitter.write(item, ty, place.at(*offset)));
                }
                None => self.impossible("an element of a tuple that its type does not have"),
            }
        }
    }

    /// Writes zeros between the parts of a tuple and behind the last one.
    fn zero_between(&mut self, parts: &[(Option<&str>, u32, &Ty)], whole: u32, place: MemoryRef) {
        let starts = parts.iter().map(|part| part.1).skip(1).chain([whole]);
        for ((_, offset, ty), next) in parts.iter().zip(starts) {
            let end = offset + ty.size();
            if end < next {
                self.zero(place.at(end), next - end);
            }
        }
    }

    /// Copies a value of our own memory as one of another type of the same form.
    /// ```text
    /// equal types: copy
    /// tuples, arrays: each element, converted; zeros between
    /// numbers: load, convert, store
    /// else: copy the bytes that both have room for, zeros behind, NUL
    /// ```
    pub(super) fn convert_copy(
        &mut self,
        from_ty: &Ty,
        from: MemoryRef,
        to: &Ty,
        place: MemoryRef,
    ) {
        if from_ty == to {
            self.copy(place, from, to.size());
            return;
        }
        match (from_ty, to) {
            (Ty::Tuple(_), Ty::Tuple(_)) | (Ty::Record(_), Ty::Record(_)) => {
                let (sources, targets) = (from_ty.parts(), to.parts());
                self.zero_between(&targets, to.size(), place);
                for (index, (name, offset, ty)) in targets.iter().enumerate() {
                    let source = match name {
                        Some(name) => sources.iter().find(|part| part.0 == Some(name)),
                        None => sources.get(index),
                    };
                    match source {
                        Some((_, source, source_ty)) => {
                            self.convert_copy(source_ty, from.at(*source), ty, place.at(*offset));
                        }
                        None => self
                            .impossible("an element of a tuple that the copied one does not have"),
                    }
                }
            }
            (Ty::Array { elem, count }, Ty::Array { elem: to_elem, .. }) if elem != to_elem => {
                for index in 0..*count {
                    let (source, target) = (
                        from.at(index * elem.size()),
                        place.at(index * to_elem.size()),
                    );
                    self.convert_copy(elem, source, to_elem, target);
                }
            }
            (a, b) if a.is_scalar() && b.is_scalar() => {
                self.load(from, a, R0);
                self.narrow_to(a, b);
                let size = self.size_of(b.size());
                self.store(place, size, R0);
            }
            _ => {
                let size = from_ty.size().min(to.size());
                self.pad(place, size, to.size());
                self.copy(place, from, size);
                self.end_text(from_ty, to, place);
            }
        }
    }

    /// Writes an element that is itself in memory.
    fn write_element(&mut self, base: &Expr, index: &Expr, to: &Ty, place: MemoryRef) {
        let (none, done) = (self.asm.label("outside"), self.asm.label("element"));
        let from = self.place_of(base);
        let (size, whole) = (to.size(), base.ty.size());
        self.scalar(index);
        let count = (whole / size.max(1)).cast_signed();
        self.asm
            .jump_if(R0, JumpOp::Ge, count, none)
            .mul(R0, size.cast_signed());
        self.address(from, bpf_insn::Reg::R3);
        self.asm.add(bpf_insn::Reg::R3, R0);
        self.address(place, R1);
        self.asm
            .mov(bpf_insn::Reg::R2, size.cast_signed())
            .call(bpf_insn::Helper::PROBE_READ_KERNEL);
        self.asm.jump(done).bind(none);
        self.failed(FailureKind::OutOfBounds);
        self.zero(place, size);
        self.asm.bind(done);
    }
}
