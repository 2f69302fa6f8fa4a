//! Aggregations (`count()`, `hist(n)`): each CPU has its own value under a key, and adds to it.

mod reading;
mod series;

use bpf_insn::Reg::{R0, R1, R2, R3, R4};
use bpf_insn::{AtomicOp, Helper, JumpOp, Reg, Size, Src, Width};

use super::place::MemoryRef;
use super::{Emitter, SavedNumber};
use crate::hir::{Expr, MapId};
use crate::map::MapValueKind;
use crate::ty::Ty;
use bpf_program::offset;
use bt_abi::Aggregation;
use bt_abi::map::{Average, Extreme, hist_buckets, lhist_buckets};
use uapi::bpf::NOEXIST;

/// Name of a map of one value that is never written. New values of a per-CPU map are copied from
/// it.
pub(crate) const ZEROS: &str = "zeros";

impl Emitter<'_> {
    fn agg(&mut self, map: MapId) -> Aggregation {
        if let Some(MapValueKind::Agg(agg)) = &self.tables.maps[map].value {
            return agg.clone();
        }
        self.impossible("an aggregation of a map that holds none");
        Aggregation::Count
    }

    /// Emits `@map[key] = sum(value)` and the like.
    /// ```text
    /// r0 = value; for a histogram, its bucket
    /// save r0
    /// key in memory
    /// r0 = this CPU's value of the key, a new one if there is none
    /// update the value at r0 with what was saved
    /// ```
    pub(super) fn aggregate(&mut self, map: MapId, key: &Expr, value: Option<&Expr>) {
        let agg = self.agg(map);
        if let Some(value) = value {
            self.set_span(value);
            self.scalar(value);
            match agg {
                Aggregation::Hist { bits } => self.hist_bucket(bits, value.ty.is_signed()),
                Aggregation::Lhist { min, max, step } => self.lhist_bucket(min, max, step),
                _ => {}
            }
        }
        let saved = value.map(|_| self.save());
        let key = self.key(map, key);
        let done = self.asm.label("aggregated");
        if self.has_key_table(map) {
            self.aggregate_keyed(map, key, &agg, saved, done);
        } else {
            self.find_or_make(map, key, done);
            self.apply(&agg, saved, self.context.is_user());
        }
        self.asm.bind(done);
        if let Some(saved) = saved {
            self.release(saved);
        }
    }

    /// Sets r0 to the address of a key's value, which is inserted as zeros if missing. Jumps to
    /// `failed` if that is impossible.
    /// ```text
    /// inserted = 0
    /// look: r0 = lookup(map, key); if r0 goto there
    /// if inserted goto full                 # once is enough: then it is there, or there is no room
    /// inserted = 1
    /// error = insert(map, key, ZEROS); goto look
    /// full: count the error; goto failed
    /// there:
    /// ```
    pub(super) fn find_or_make(&mut self, map: MapId, key: MemoryRef, failed: bpf_insn::Label) {
        let (again, there, full) = (
            self.asm.label("look"),
            self.asm.label("there"),
            self.asm.label("full"),
        );
        let (frame, error) = (self.frame, self.slot());
        // Another CPU may insert the key at the same time; the second look-up finds that one too.
        let made = self.flag();
        self.asm.bind(again);
        self.lookup(map, key);
        self.asm.jump_if(R0, JumpOp::Ne, 0, there);
        let flag = match made {
            SavedNumber::Reg(reg) => reg,
            SavedNumber::Slot(slot) => {
                self.asm.load(Size::DW, R1, frame.at(slot));
                R1
            }
        };
        self.asm
            .jump_if(flag, JumpOp::Ne, 0, full)
            .comment("a new key")
            .mov(R1, 1);
        self.overwrite(made, R1);
        self.address(key, R2);
        self.asm.load_data(R3, ZEROS, 0);
        self.load_map(map);
        // Another program on this CPU may have inserted it first.
        self.asm
            .mov(R4, NOEXIST.cast_signed())
            .call(Helper::MAP_UPDATE_ELEM);
        if self.key_type(map) != Ty::Void {
            self.asm.store(Size::DW, frame.at(error), R0);
        }
        self.asm.jump(again);
        self.asm.bind(full);
        // A map without a key has room for its only value.
        if self.key_type(map) != Ty::Void {
            self.asm.load(Size::DW, R0, frame.at(error));
            self.failed_update();
        }
        self.asm.jump(failed).bind(there);
        self.release(made);
    }

    /// Saves a 0. The verifier tracks the saved value, and sees from it that a loop ends.
    fn flag(&mut self) -> SavedNumber {
        self.asm.mov(R0, 0);
        self.save()
    }

    fn overwrite(&mut self, saved: SavedNumber, from: bpf_insn::Reg) {
        match saved {
            SavedNumber::Reg(reg) => self.asm.mov(reg, from),
            SavedNumber::Slot(slot) => self.asm.store(Size::DW, self.frame.at(slot), from),
        };
    }

    /// Adds to the word at r0 + `offset`; atomically if `shared`, since others may do so at the
    /// same time.
    fn add_word(&mut self, offset: i16, by: impl Into<Src>, shared: bool) {
        let by = by.into();
        if !shared {
            self.asm
                .load(Size::DW, R2, R0.at(offset))
                .add(R2, by)
                .store(Size::DW, R0.at(offset), R2);
            return;
        }
        let reg = match by {
            Src::Reg(reg) => reg,
            Src::Imm(_) => {
                self.asm.mov(R2, by);
                R2
            }
        };
        self.asm
            .atomic(AtomicOp::Add, Width::W64, R0.at(offset), reg);
    }

    /// Updates the aggregation at r0 with the saved number. `shared` means that other programs may
    /// change it at the same time, so additions are atomic. That is so for values that all CPUs
    /// share, and in user probes, which can be preempted.
    /// ```text
    /// count, sum: [r0] += 1, value
    /// min, max:   if [r0 + 8] == 0 or value is beyond [r0]: [r0] = value, [r0 + 8] = 1
    /// avg, stats: [r0] += value, [r0 + 8] += 1
    /// hist:       [r0 + 8 * bucket] += 1
    /// ```
    pub(super) fn apply(&mut self, agg: &Aggregation, saved: Option<SavedNumber>, shared: bool) {
        let value = match saved {
            Some(SavedNumber::Reg(reg)) => reg,
            Some(saved) => {
                self.reload(saved, R1);
                R1
            }
            None => R1,
        };
        match *agg {
            Aggregation::Count => self.add_word(0, 1, shared),
            Aggregation::Sum { .. } => self.add_word(0, value, shared),
            Aggregation::Min { signed } => {
                self.extreme(if signed { JumpOp::SLe } else { JumpOp::Le }, value);
            }
            Aggregation::Max { signed } => {
                self.extreme(if signed { JumpOp::SGe } else { JumpOp::Ge }, value);
            }
            Aggregation::Avg { .. } | Aggregation::Stats { .. } => {
                self.add_word(offset!(Average, total), value, shared);
                self.add_word(offset!(Average, count), 1, shared);
            }
            Aggregation::Hist { bits } => self.bump(hist_buckets(bits), value, shared),
            Aggregation::Lhist { min, max, step } => {
                self.bump(lhist_buckets(min, max, step), value, shared);
            }
            Aggregation::Series {
                interval,
                buckets,
                op,
                signed,
            } => {
                self.asm.mov(R1, value);
                self.series(interval, buckets, op, signed);
            }
        }
    }

    /// Stores a value if it is the first, or if the stored one and it don't compare as `keep`.
    fn extreme(&mut self, keep: JumpOp, value: Reg) {
        let (set, done) = (self.asm.label("set"), self.asm.label("kept"));
        let (kept, is_set) = (offset!(Extreme, value), offset!(Extreme, is_set));
        self.asm
            .load(Size::DW, R2, R0.at(is_set))
            .jump_if(R2, JumpOp::Eq, 0, set);
        self.asm
            .load(Size::DW, R2, R0.at(kept))
            .jump_if(R2, keep, value, done)
            .bind(set);
        self.asm
            .store(Size::DW, R0.at(kept), value)
            .store(Size::DW, R0.at(is_set), 1)
            .bind(done);
    }

    /// Adds 1 to a bucket. The comparison is for the verifier; buckets are within bounds by
    /// construction.
    fn bump(&mut self, buckets: u32, bucket: Reg, shared: bool) {
        let outside = self.asm.label("outside");
        self.asm
            .jump_if(bucket, JumpOp::Ge, buckets.cast_signed(), outside)
            .lsh(bucket, 3)
            .add(R0, bucket);
        self.add_word(0, 1, shared);
        self.asm.bind(outside);
    }

    /// Sets r0 to the bucket of the number in r0, as `hist_bucket` of `bt-abi` defines it.
    /// ```text
    /// if r0 < 0: r0 = 0, done
    /// if r0 < 2^bits: r0 += 1, done
    /// r2 = position of the highest bit of r0     # by halves: 32, 16, 8, 4, 2, 1
    /// r0 = ((r2 - bits) << bits) + (r0 >> (r2 - bits)) + 1
    /// ```
    fn hist_bucket(&mut self, bits: u8, signed: bool) {
        let (small, done) = (self.asm.label("small"), self.asm.label("bucket"));
        let bits = i32::from(bits);
        if signed {
            let positive = self.asm.label("positive");
            self.asm
                .jump_if(R0, JumpOp::SGe, 0, positive)
                .mov(R0, 0)
                .jump(done)
                .bind(positive);
        }
        self.asm.jump_if(R0, JumpOp::Lt, 1 << bits, small);
        // The first half is tested by a shift, since no instruction holds 1 << 32.
        let low = self.asm.label("low");
        self.asm
            .mov(R1, R0)
            .rsh(R1, 32)
            .mov(R2, 32)
            .jump_if(R1, JumpOp::Ne, 0, low)
            .mov(R1, R0)
            .mov(R2, 0)
            .bind(low);
        for shift in [16, 8, 4, 2, 1] {
            let below = self.asm.label("below");
            self.asm
                .jump_if(R1, JumpOp::Lt, 1 << shift, below)
                .rsh(R1, shift)
                .add(R2, shift)
                .bind(below);
        }
        // The bucket is ((power - bits + 1) << bits) + (number >> (power - bits)) - (1 << bits).
        self.asm.sub(R2, bits).rsh(R0, R2).lsh(R2, bits).add(R0, R2);
        self.asm.bind(small).add(R0, 1).bind(done);
    }

    /// Sets r0 to the bucket of the number in r0: 0 below `min`, the last one from `max` on, (r0 -
    /// min) / step + 1 between.
    fn lhist_bucket(&mut self, min: i64, max: i64, step: u64) {
        let (below, above, done) = (
            self.asm.label("below"),
            self.asm.label("above"),
            self.asm.label("bucket"),
        );
        let last = lhist_buckets(min, max, step).cast_signed() - 1;
        let (min, max, step) = (
            self.operand(min, R1),
            self.operand(max, R2),
            self.operand(step.cast_signed(), R3),
        );
        self.asm
            .jump_if(R0, JumpOp::SLt, min, below)
            .jump_if(R0, JumpOp::SGe, max, above);
        if min != 0.into() {
            self.asm.sub(R0, min);
        }
        self.asm.div(R0, step).add(R0, 1).jump(done);
        self.asm
            .bind(below)
            .mov(R0, 0)
            .jump(done)
            .bind(above)
            .mov(R0, last)
            .bind(done);
    }

    /// Returns a number as an operand: an immediate, or the register `spare` if it is too large for
    /// one.
    fn operand(&mut self, number: i64, spare: Reg) -> Src {
        if let Ok(small) = i32::try_from(number) {
            return small.into();
        }
        self.asm.constant(spare, number.cast_unsigned());
        spare.into()
    }
}
