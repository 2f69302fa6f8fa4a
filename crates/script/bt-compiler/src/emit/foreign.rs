//! Strings and buffers in memory of the kernel or of a process. A string that fills its room may be
//! longer, so its last byte is read again. A page that is not present is faulted in if the program
//! may sleep.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Helper, JumpOp, Size};

use super::place::MemoryRef;
use super::{Emitter, SavedNumber, failures, reads};
use crate::ty::{Space, Ty};
use bt_abi::FailureKind;

/// Smallest page size in bytes of all machines that we run on.
const MIN_PAGE_BYTES: u32 = 4096;

/// Source and destination of a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Foreign {
    pub(super) addr: SavedNumber,
    pub(super) space: Space,
    /// True if the read ends where a string does.
    pub(super) text: bool,
    pub(super) to: MemoryRef,
    /// Limit on the bytes read.
    pub(super) room: u32,
    /// Lower limit on the bytes, known only at run time.
    pub(super) limit: Option<MemoryRef>,
}

impl Emitter<'_> {
    /// Reads a string into room that holds zeros. With `counts_cuts`, a longer string fills the
    /// room to the last byte, without a NUL, and is counted. Otherwise it is cut one byte earlier.
    /// ```text
    /// r0 = read_str(); if 0 <= r0 < room: done; if r0 == room: goto full
    /// if the address is 0: done                        # unless failed reads are to be reported
    /// fault the pages in, and read again               # if the program may sleep
    /// count that it can't be read; done
    /// full: last byte = read(address + room - 1); if it is not 0: count a string that was cut
    /// ```
    pub(super) fn read_text(&mut self, from: &Foreign, counts_cuts: bool) {
        let (done, cut) = (self.asm.label("read"), self.asm.label("full"));
        self.read_foreign(from);
        self.leave_if_read(from, counts_cuts.then_some(cut), done);
        if !self.inputs.facts.reports_reads() {
            // A null pointer is no string, so nothing is lost.
            self.reload(from.addr, R3);
            self.asm.jump_if(R3, JumpOp::Eq, 0, done);
        }
        if self.may_wait(from.space) {
            self.wait_for_pages(from);
            self.read_foreign(from);
            self.leave_if_read(from, counts_cuts.then_some(cut), done);
        }
        self.unreadable(from);
        if counts_cuts {
            self.asm.jump(done).bind(cut);
            self.look_behind(from, done);
        }
        self.asm.bind(done);
    }

    /// Reads a field's text into room that holds zeros, up to its NUL. Bytes that the program left
    /// behind the NUL are not read: with them, two keys that look the same would differ. A text
    /// that fills its field has no NUL.
    pub(super) fn read_field(&mut self, from: &Foreign) {
        let done = self.asm.label("read");
        self.read_foreign(from);
        self.asm
            .jump_if(R0, JumpOp::Lt, from.room.cast_signed(), done);
        if self.inputs.facts.reports_reads() {
            let full = self.asm.label("full");
            self.asm.jump_if(R0, JumpOp::SGe, 0, full);
            self.unreadable(from);
            self.asm.jump(done).bind(full);
        }
        self.last_byte(from);
        self.asm.bind(done);
    }

    /// Reads bytes. If the program may sleep, missing pages are faulted in.
    pub(super) fn read_bytes(&mut self, from: &Foreign) {
        let done = self.asm.label("read");
        self.read_foreign(from);
        if self.may_wait(from.space) {
            self.asm.jump_if(R0, JumpOp::SGe, 0, done);
            self.wait_for_pages(from);
            self.read_foreign(from);
        }
        if self.inputs.facts.reports_reads() {
            self.asm.jump_if(R0, JumpOp::SGe, 0, done);
            self.unreadable(from);
        }
        self.asm.bind(done);
    }

    pub(super) fn read_foreign(&mut self, from: &Foreign) {
        self.reload(from.addr, R3);
        self.address(from.to, R1);
        if let Some(limit) = from.limit {
            self.load(
                limit,
                &Ty::Int {
                    size: 8,
                    signed: false,
                },
                R2,
            );
            self.at_most(from.room);
        } else {
            self.asm.mov(R2, from.room.cast_signed());
        }
        self.read_quietly(from.space, from.text);
    }

    /// Limits r2 to `most`, so that the verifier knows a maximum.
    fn at_most(&mut self, most: u32) {
        let small = self.asm.label("fits");
        self.asm
            .jump_if(R2, JumpOp::Le, most.cast_signed(), small)
            .mov(R2, most.cast_signed())
            .bind(small);
    }

    /// Jumps to `done` if the read worked. r0 is the length with its NUL, or an error, which as an
    /// unsigned number is above all lengths.
    fn leave_if_read(
        &mut self,
        from: &Foreign,
        full: Option<bpf_insn::Label>,
        done: bpf_insn::Label,
    ) {
        match full {
            Some(full) => {
                self.asm
                    .jump_if(R0, JumpOp::Lt, from.room.cast_signed(), done)
                    .jump_if(R0, JumpOp::SGe, 0, full);
            }
            None => {
                self.asm.jump_if(R0, JumpOp::SGe, 0, done);
            }
        }
    }

    /// Reads the room's last byte from the string's own memory, and counts a cut string if it is
    /// not NUL.
    fn look_behind(&mut self, from: &Foreign, done: bpf_insn::Label) {
        self.asm.comment("is there more of the string?");
        let end = self.last_byte(from);
        self.load(
            end,
            &Ty::Int {
                size: 1,
                signed: false,
            },
            R0,
        );
        self.asm.jump_if(R0, JumpOp::Eq, 0, done);
        self.failed(FailureKind::TextCut);
    }

    /// Reads the last byte that there is room for; returns its place.
    fn last_byte(&mut self, from: &Foreign) -> MemoryRef {
        let last = from.room - 1;
        let end = from.to.at(last);
        self.reload(from.addr, R3);
        self.asm.add(R3, last.cast_signed());
        self.address(end, R1);
        self.asm.mov(R2, 1);
        self.read_quietly(from.space, false);
        end
    }

    /// Counts a failed read. r0 is the error.
    fn unreadable(&mut self, from: &Foreign) {
        if !self.inputs.facts.reports_reads() {
            self.failed(FailureKind::TextUnreadable);
            return;
        }
        let of = |space| failures::helper_failure(reads::helper(space, from.text));
        if from.space != Space::Any {
            self.failed(of(from.space));
            return;
        }
        let (kernel, counted) = (self.asm.label("kernel"), self.asm.label("counted"));
        self.reload(from.addr, R3);
        self.asm.jump_if(R3, JumpOp::SLt, 0, kernel);
        self.failed(of(Space::User));
        self.asm.jump(counted).bind(kernel);
        self.failed(of(Space::Kernel));
        self.asm.bind(counted);
    }

    /// Returns true if a missing page can be faulted in: in user probes, while the kernel holds no
    /// lock.
    fn may_wait(&self, space: Space) -> bool {
        self.context.is_user()
            && space != Space::Kernel
            && !self.locked
            && self.inputs.facts.kernel().sleepable
    }

    /// Makes the kernel fault in the pages that will be read, by copying a byte of each.
    fn wait_for_pages(&mut self, from: &Foreign) {
        self.sleepable = true;
        let byte = self.stack(8);
        self.asm.comment("the page is not there: wait for it");
        for page in 0..=from.room.saturating_sub(1).div_ceil(MIN_PAGE_BYTES) {
            self.address(byte, R1);
            self.asm.mov(R2, 1);
            self.reload(from.addr, R3);
            if page > 0 {
                let behind = 1 + (page - 1) * MIN_PAGE_BYTES;
                self.asm
                    .or(R3, (MIN_PAGE_BYTES - 1).cast_signed())
                    .add(R3, behind.cast_signed());
            }
            self.asm.call(Helper::COPY_FROM_USER);
        }
    }

    /// Stores a limit known only at run time, or `most` if it is larger; returns its place.
    pub(super) fn limit(&mut self, limit: &crate::hir::Expr, most: u32) -> MemoryRef {
        let place = self.stack(8);
        let small = self.asm.label("small");
        self.scalar(limit);
        self.asm
            .jump_if(R0, JumpOp::Le, most.cast_signed(), small)
            .mov(R0, most.cast_signed())
            .bind(small);
        self.store(place, Size::DW, R0);
        place
    }
}
