//! Helpers that take pointers whose types the verifier knows. Such a pointer must reach the helper
//! as the kernel gave it to the program. Arithmetic, or a load through `bpf_probe_read`, makes it a
//! plain number.

use bpf_insn::Reg::{R0, R1, R2, R3, R6, R10};
use bpf_insn::{Helper, JumpOp, Size};
use bt_lang::ast::BinaryOp;

use super::place::MemoryRef;
use super::{Emitter, failures};
use crate::hir::{Expr, ExprKind, Intrinsic};

impl Emitter<'_> {
    /// Sets r0 to a pointer as the verifier knows it: loaded from the context, or from memory it
    /// points to, by plain loads.
    fn kernel_pointer(&mut self, ex: &Expr) {
        match &ex.kind {
            ExprKind::Convert(inner) => self.kernel_pointer(inner),
            ExprKind::Load { addr, .. } => {
                self.kernel_pointer(addr);
                self.asm.load(Size::DW, R0, R0.at(0));
            }
            ExprKind::Binary {
                op: BinaryOp::Add,
                left,
                right,
                ..
            } => {
                self.kernel_pointer(left);
                let by = self.distance(right);
                self.asm.add(R0, by);
            }
            ExprKind::Intrinsic(Intrinsic::CurTask, _) => {
                self.asm.call(Helper::GET_CURRENT_TASK_BTF);
            }
            ExprKind::Ctx { .. } => self.scalar(ex),
            _ => self.impossible("a pointer that the kernel can't follow"),
        }
    }

    /// Sets r1 to the pointer. If it is null before its last offset is added, jumps to `none` with
    /// r0 = 0.
    fn kernel_pointer_or(&mut self, ex: &Expr, none: bpf_insn::Label) {
        let (base, offset) = match &ex.kind {
            ExprKind::Binary {
                op: BinaryOp::Add,
                left,
                right,
                ..
            } => (&**left, self.distance(right)),
            _ => (ex, 0),
        };
        self.kernel_pointer(base);
        self.asm.jump_if(R0, JumpOp::Eq, 0, none).mov(R1, R0);
        if offset != 0 {
            self.asm.add(R1, offset);
        }
    }

    /// Returns a constant offset from a pointer; the checker allows only small constants.
    fn distance(&mut self, ex: &Expr) -> i32 {
        if let Some(by) = ex.constant().and_then(|by| i32::try_from(by).ok()) {
            return by;
        }
        self.impossible("a pointer of the kernel's, moved by what is no small constant");
        0
    }

    /// Emits `path(place)`. The kernel writes the name into a buffer and leaves other bytes there
    /// too, so the text is copied from it. If the name is longer than its room, its end is kept.
    /// ```text
    /// place = ""; name = zeros
    /// r1 = the pointer, or done if it is null
    /// r0 = d_path(r1, name, whole); count an error, if wanted; done if r0 < 0 or r0 > whole
    /// if r0 > size: name += r0 - size
    /// read_kernel_str(place, size, name)
    /// ```
    pub(super) fn path(&mut self, args: &[Expr], size: u32, place: MemoryRef) {
        let Some(ex) = self.first(args) else {
            return;
        };
        self.zero(place, size);
        let whole = self.inputs.config.max_strlen.max(size);
        let (none, short) = (self.asm.label("no path"), self.asm.label("the whole path"));
        self.temporary(|emitter| {
            let name = emitter.mem(whole.next_multiple_of(8));
            // On the stack, the helper takes only memory that has been written.
            emitter.zero(name, whole.next_multiple_of(8));
            emitter.kernel_pointer_or(ex, none);
            emitter.address(name, R2);
            emitter
                .asm
                .mov(R3, whole.cast_signed())
                .call(Helper::D_PATH);
            let named = emitter.asm.label("named");
            emitter.asm.jump_if(R0, JumpOp::SGe, 0, named);
            if emitter.inputs.facts.reports_reads() {
                emitter.failed(failures::helper_failure(Helper::D_PATH));
            }
            emitter
                .asm
                .jump(none)
                .bind(named)
                .jump_if(R0, JumpOp::Gt, whole.cast_signed(), none);
            emitter.address(name, R3);
            if whole > size {
                emitter
                    .asm
                    .jump_if(R0, JumpOp::Le, size.cast_signed(), short);
                emitter.asm.add(R0, -size.cast_signed()).add(R3, R0);
            }
            emitter.asm.bind(short);
            emitter.address(place, R1);
            emitter
                .asm
                .mov(R2, size.cast_signed())
                .call(Helper::PROBE_READ_KERNEL_STR);
            emitter.asm.bind(none);
        });
    }

    /// Sets r0 to `socket_cookie(socket)`.
    pub(super) fn socket_cookie(&mut self, args: &[Expr]) {
        if let Some(ex) = self.first(args) {
            let none = self.asm.label("no socket");
            self.kernel_pointer_or(ex, none);
            self.asm.call(Helper::GET_SOCKET_COOKIE).bind(none);
        }
    }

    /// Ends the program if an iterator calls it a last time, with null pointers. The checked words
    /// are kept in the frame: after another load, the verifier would not know that a word is not
    /// null.
    pub(super) fn end_of_iteration(&mut self) {
        for &word in &self.context.present {
            let (there, slot) = (self.asm.label("there"), self.slot());
            self.asm
                .comment("the end of the iteration?")
                .load(Size::DW, R0, R6.at(word as i16));
            self.asm
                .jump_if(R0, JumpOp::Ne, 0, there)
                .mov(R0, 0)
                .exit()
                .bind(there);
            self.asm.store(Size::DW, R10.at(slot), R0);
            self.present.push((word, slot));
        }
    }

    /// Returns the frame's slot with a checked word of the context.
    pub(super) fn present_at(&self, offset: u32) -> Option<i16> {
        self.present
            .iter()
            .find(|(word, _)| *word == offset)
            .map(|(_, slot)| *slot)
    }
}
