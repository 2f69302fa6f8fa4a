//! Time series: a ring of slots, one for each interval of time.

use bpf_insn::Reg::{R0, R1, R2, R3, R4};
use bpf_insn::{Addr, Helper, JumpOp, Label, Size};
use bpf_program::{bytes_of, offset};
use bt_abi::SeriesOp;
use bt_abi::map::SeriesSlot;

use super::Emitter;
use crate::hir::Expr;
use crate::ty::Ty;

impl Emitter<'_> {
    /// Adds r1 to the time series at r0: a ring of slots, one for each interval of time.
    /// ```text
    /// epoch = time / interval; slot = r0 + SLOT * (epoch % buckets)
    /// if slot.epoch != epoch or slot is empty:          # the slot holds an older interval
    ///     slot = (epoch, r1, 1); done
    /// slot.count += 1; slot.value = r1, the sum, or the extreme
    /// # for `last`, in place of the count: the time of the value plus 1
    /// ```
    pub(super) fn series(&mut self, interval: u64, buckets: u32, op: SeriesOp, signed: bool) {
        let value = self.slot();
        let frame = self.frame;
        self.asm.store(Size::DW, frame.at(value), R1);
        let map_value = self.save();
        self.series_time();
        self.asm
            .mov(R4, R0)
            .add(R4, 1)
            .constant(R1, interval)
            .div(R0, R1)
            .mov(R2, R0)
            .rem(R0, buckets.cast_signed());
        // r2 = epoch, r3 = slot, r4 = time + 1, since the time may be 0. The verifier derives no
        // bounds from a remainder.
        let (same, fresh, done) = (
            self.asm.label("same"),
            self.asm.label("fresh"),
            self.asm.label("noted"),
        );
        self.asm
            .jump_if(R0, JumpOp::Ge, buckets.cast_signed(), done);
        self.asm.mul(R0, i32::from(bytes_of!(SeriesSlot)));
        self.reload(map_value, R3);
        self.release(map_value);
        self.asm.add(R3, R0).load(Size::DW, R1, frame.at(value));
        let (kept, meta) = (
            R3.at(offset!(SeriesSlot, value)),
            R3.at(offset!(SeriesSlot, meta)),
        );
        let epoch = R3.at(offset!(SeriesSlot, epoch));
        // The machine's first interval is number 0, like the epoch of slots never written; those
        // are empty.
        self.asm
            .load(Size::DW, R0, epoch)
            .jump_if(R0, JumpOp::Ne, R2, fresh);
        self.asm
            .load(Size::DW, R0, meta)
            .jump_if(R0, JumpOp::Ne, 0, same)
            .bind(fresh);
        self.asm
            .store(Size::DW, epoch, R2)
            .store(Size::DW, kept, R1);
        match op {
            SeriesOp::Last => self.asm.store(Size::DW, meta, R4),
            _ => self.asm.store(Size::DW, meta, 1),
        };
        self.asm.jump(done).bind(same);
        self.combine(op, signed, (kept, meta), done);
        self.asm.bind(done);
    }

    /// Sets r0 to the time of a series: the clock's, or a number that the script itself keeps.
    fn series_time(&mut self) {
        let name = self.inputs.config.series_clock.as_deref();
        let map = name.and_then(|name| self.tables.maps.iter().position(|map| map.name == name));
        match map {
            Some(map) => self.get_scalar(map, &Expr::int(0, Ty::Void, bt_lang::Span::default())),
            None => {
                self.asm.call(Helper::KTIME_GET_BOOT_NS);
            }
        }
    }

    /// Combines r1 with the value at `kept` of a slot that has one, and counts it at `meta`, which
    /// has the time of the value for `last`. Jumps to `done` if the value stays.
    fn combine(&mut self, op: SeriesOp, signed: bool, (kept, meta): (Addr, Addr), done: Label) {
        if op != SeriesOp::Last {
            self.asm
                .load(Size::DW, R0, meta)
                .add(R0, 1)
                .store(Size::DW, meta, R0);
        }
        match op {
            SeriesOp::Last => {
                self.asm.store(Size::DW, kept, R1).store(Size::DW, meta, R4);
            }
            SeriesOp::Sum | SeriesOp::Avg => {
                self.asm
                    .load(Size::DW, R0, kept)
                    .add(R0, R1)
                    .store(Size::DW, kept, R0);
            }
            SeriesOp::Min | SeriesOp::Max => {
                let keeps = match (op, signed) {
                    (SeriesOp::Min, true) => JumpOp::SLe,
                    (SeriesOp::Min, false) => JumpOp::Le,
                    (_, true) => JumpOp::SGe,
                    (_, false) => JumpOp::Ge,
                };
                self.asm
                    .load(Size::DW, R0, kept)
                    .jump_if(R0, keeps, R1, done)
                    .store(Size::DW, kept, R1);
            }
        }
    }
}
