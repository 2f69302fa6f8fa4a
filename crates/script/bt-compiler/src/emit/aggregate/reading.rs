//! Aggregations read as numbers: the values of all CPUs become one.

use bpf_insn::Reg::{R0, R1, R2, R3};
use bpf_insn::{Addr, Helper, JumpOp, Label, Size};
use bpf_program::{bytes_of, offset};
use bt_abi::Aggregation;
use bt_abi::map::{Average, Extreme, Lock};

use super::Emitter;
use crate::emit::place::MemoryRef;
use crate::hir::MapId;

impl Emitter<'_> {
    /// Sets r0 to all CPUs' values of a key as one number. It includes the value that they share if
    /// memory was short (see [`key_table`]).
    /// ```text
    /// cpu = first = second = 0
    /// next CPU: r0 = lookup_percpu(map, key, cpu)       # for cpu == CPUS: lookup(key table, key)
    ///     count, sum, avg: first += [r0]; for avg, second += [r0 + 8]
    ///     min, max: if [r0 + 8] and (second == 0 or [r0] is beyond first): first = [r0], second = 1
    ///     cpu += 1; repeat below CPUS, with the key table up to CPUS
    /// r0 = first; for avg, first / second
    /// ```
    pub(in crate::emit) fn read_aggregate(&mut self, map: MapId, key: MemoryRef) {
        let agg = self.agg(map);
        let (cpu, first, second) = (self.slot(), self.slot(), self.slot());
        let frame = self.frame;
        let (again, next, out) = (
            self.asm.label("cpu"),
            self.asm.label("next"),
            self.asm.label("out"),
        );
        self.asm
            .store(Size::DW, frame.at(cpu), 0)
            .store(Size::DW, frame.at(first), 0);
        let cpus = self.inputs.facts.possible_cpus().max(1).cast_signed();
        let (shared, found) = (self.asm.label("shared"), self.asm.label("found"));
        let has_key_table = self.has_key_table(map);
        self.asm.store(Size::DW, frame.at(second), 0).bind(again);
        self.asm.load(Size::DW, R3, frame.at(cpu));
        if has_key_table {
            self.asm.jump_if(R3, JumpOp::Eq, cpus, shared);
        }
        self.address(key, R2);
        self.load_map(map);
        self.asm
            .call(Helper::MAP_LOOKUP_PERCPU_ELEM)
            .jump_if(R0, JumpOp::Eq, 0, next)
            .bind(found);
        // Every aggregation that reads as one number has it in the first word.
        const { assert!(offset!(Extreme, value) == 0 && offset!(Average, total) == 0) };
        self.asm
            .load(Size::DW, R1, R0.at(0))
            .load(Size::DW, R2, frame.at(first));
        self.gather(&agg, frame.at(first), frame.at(second), next);
        self.asm
            .bind(next)
            .load(Size::DW, R1, frame.at(cpu))
            .add(R1, 1)
            .store(Size::DW, frame.at(cpu), R1);
        self.asm
            .jump_if(R1, JumpOp::Lt, cpus + i32::from(has_key_table), again);
        if has_key_table {
            self.asm.jump(out).bind(shared);
            self.lookup_key_table(map, key);
            self.asm.jump_if(R0, JumpOp::Eq, 0, next);
            if agg.takes_steps() {
                self.asm.add(R0, i32::from(bytes_of!(Lock)));
            }
            self.asm.jump(found);
        }
        self.asm.bind(out).load(Size::DW, R0, frame.at(first));
        if matches!(agg, Aggregation::Avg { .. }) {
            self.asm.load(Size::DW, R1, frame.at(second));
            self.divide_total(matches!(agg, Aggregation::Avg { signed: true }));
        }
    }

    /// Adds the value of one CPU at r0, with its first word in r1, to the words `first` (which is in
    /// r2) and `second`; jumps to `next` if the value changes nothing.
    fn gather(&mut self, agg: &Aggregation, first: Addr, second: Addr, next: Label) {
        match agg {
            Aggregation::Min { signed } | Aggregation::Max { signed } => {
                let least = matches!(agg, Aggregation::Min { .. });
                let keep = match (least, signed) {
                    (true, true) => JumpOp::SLe,
                    (true, false) => JumpOp::Le,
                    (false, true) => JumpOp::SGe,
                    (false, false) => JumpOp::Ge,
                };
                let take = self.asm.label("take");
                self.asm
                    .load(Size::DW, R3, R0.at(offset!(Extreme, is_set)))
                    .jump_if(R3, JumpOp::Eq, 0, next);
                self.asm
                    .load(Size::DW, R3, second)
                    .jump_if(R3, JumpOp::Eq, 0, take);
                self.asm.jump_if(R2, keep, R1, next).bind(take);
                self.asm
                    .store(Size::DW, first, R1)
                    .store(Size::DW, second, 1);
            }
            _ => {
                self.asm.add(R2, R1).store(Size::DW, first, R2);
                if matches!(agg, Aggregation::Avg { .. }) {
                    let count = R0.at(offset!(Average, count));
                    self.asm
                        .load(Size::DW, R1, count)
                        .load(Size::DW, R2, second)
                        .add(R2, R1);
                    self.asm.store(Size::DW, second, R2);
                }
            }
        }
    }

    /// Divides the total in r0 by the count in r1, into r0.
    fn divide_total(&mut self, signed: bool) {
        let (positive, done) = (self.asm.label("positive"), self.asm.label("average"));
        if signed {
            self.asm
                .jump_if(R0, JumpOp::SGe, 0, positive)
                .neg(R0)
                .div(R0, R1)
                .neg(R0)
                .jump(done)
                .bind(positive);
        }
        self.asm.div(R0, R1).bind(done);
    }
}
