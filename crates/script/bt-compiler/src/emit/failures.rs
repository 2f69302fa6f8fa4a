//! Failures are counted at their place in the script. Success costs no more than a jump.

use bpf_insn::Reg::{R0, R1, R2};
use bpf_insn::{AtomicOp, Helper, JumpOp, Size, Width};
use bt_lang::Span;

use super::Emitter;
use super::place::MemoryRef;
use crate::hir::MapId;
use bpf_program::offset;
use bt_abi::failure::FAILURES;
use bt_abi::{Failure, FailureKind, FailureSlot};

/// `-E2BIG`: the map has reached its limit on keys.
const FULL: i32 = -7;

impl Emitter<'_> {
    /// Runs `run` with `span` as the part of the script that is being emitted.
    pub(super) fn within<T>(&mut self, span: Span, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.at, span);
        let done = run(self);
        self.at = outer;
        done
    }

    /// Counts a failure. For a helper or a stack, r0 is the error. Uses r1 and r2.
    pub(super) fn failed(&mut self, kind: FailureKind) {
        let place = self.failures.place(Failure {
            kind,
            span: self.at,
        });
        self.asm
            .comment("count what failed")
            .load_data(R1, FAILURES, place)
            .mov(R2, 1);
        self.asm.atomic(
            AtomicOp::Add,
            Width::W64,
            R1.at(offset!(FailureSlot, count)),
            R2,
        );
        if matches!(
            kind,
            FailureKind::Helper(_)
                | FailureKind::MapFull
                | FailureKind::KernelStack
                | FailureKind::UserStack
        ) {
            self.asm
                .store(Size::DW, R1.at(offset!(FailureSlot, error)), R0);
        }
    }

    /// Counts a failed update of a map; r0 is the error. Uses r1 and r2.
    pub(super) fn failed_update(&mut self) {
        let counted = self.asm.label("full");
        let mut place = |kind| {
            self.failures.place(Failure {
                kind,
                span: self.at,
            })
        };
        let (full, other) = (
            place(FailureKind::MapFull),
            place(helper_failure(Helper::MAP_UPDATE_ELEM)),
        );
        self.asm
            .comment("count what failed")
            .load_data(R1, FAILURES, full)
            .jump_if(R0, JumpOp::Eq, FULL, counted);
        self.asm
            .load_data(R1, FAILURES, other)
            .bind(counted)
            .mov(R2, 1);
        self.asm.atomic(
            AtomicOp::Add,
            Width::W64,
            R1.at(offset!(FailureSlot, count)),
            R2,
        );
        self.asm
            .store(Size::DW, R1.at(offset!(FailureSlot, error)), R0);
    }

    /// Counts a failure if r0 is an error.
    pub(super) fn failed_if_negative(&mut self, kind: FailureKind) {
        let fine = self.asm.label("fine");
        self.asm.jump_if(R0, JumpOp::SGe, 0, fine);
        self.failed(kind);
        self.asm.bind(fine);
    }

    /// Calls a helper that reads memory; counts its failure under `-k`.
    pub(super) fn call_reader(&mut self, helper: Helper) {
        self.asm.call(helper);
        if self.inputs.facts.reports_reads() {
            self.failed_if_negative(helper_failure(helper));
        }
    }

    /// Counts a key without a value of an aggregation, under `-k`. bpftrace names the helper that
    /// reads one CPU's value.
    pub(super) fn missing_key(&mut self, map: MapId, key: MemoryRef) {
        if !self.inputs.facts.reports_reads() {
            return;
        }
        let there = self.asm.label("there");
        if self.has_key_table(map) {
            self.lookup_key_table(map, key);
        } else {
            self.lookup(map, key);
        }
        self.asm.jump_if(R0, JumpOp::Ne, 0, there);
        self.failed(helper_failure(Helper::MAP_LOOKUP_PERCPU_ELEM));
        self.asm.bind(there);
    }

    /// Counts a key missing in a map, under `-k`. r0 is 0, and stays so.
    pub(super) fn no_such_key(&mut self) {
        if self.inputs.facts.reports_reads() {
            self.failed(helper_failure(Helper::MAP_LOOKUP_ELEM));
        }
    }
}

/// Returns a helper's failure, with the helper's usual name.
pub(super) fn helper_failure(helper: Helper) -> FailureKind {
    let name = helper.name().unwrap_or_default();
    FailureKind::Helper(name.strip_prefix("bpf_").unwrap_or(name))
}
