//! proptest strategies: arbitrary small traces.
//!
//! A trace is drawn as a sketch of plain choices, which shrinks well, and then built with a
//! [`TraceBuilder`]. Choices that the era does not allow (too many arguments, an lcore that does
//! not exist) are adjusted.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use spdk_trace_writer::{Arg, ArgKind, Era, Record, Tpoint, TraceBuilder};

/// Generates an arbitrary small trace of any era: see [`any_trace_of`].
pub fn any_trace() -> impl Strategy<Value = TraceBuilder> {
    proptest::sample::select(&Era::ALL[..]).prop_flat_map(any_trace_of)
}

/// Generates an arbitrary small trace of this era: one to four lcores, up to six tracepoints with
/// arguments of every form, relations, owners, thread names, and enough records to wrap small rings
/// several times.
///
/// The tsc never steps back within an lcore but may stand still; nothing is torn and `clear_tsc` is
/// 0.
pub fn any_trace_of(era: Era) -> impl Strategy<Value = TraceBuilder> {
    any_sketch(era).prop_map(move |sketch| sketch.build(era))
}

#[derive(Debug, Clone)]
struct Sketch {
    tsc_rate: u64,
    /// Factor of the ring's size, as a power of two: `2^extra` times the longest record.
    extra_slots: u32,
    tpoint_count: usize,
    lcores: Vec<u32>,
    thread_names: Vec<String>,
    tpoints: Vec<TpointSketch>,
    owners: Vec<(u16, u64, String)>,
    records: Vec<RecordSketch>,
}

#[derive(Debug, Clone)]
struct TpointSketch {
    id: u16,
    name: String,
    owner_type: u8,
    object_type: u8,
    new_object: bool,
    args: Vec<(ArgKind, u8, String)>,
    relations: Vec<(u8, u8)>,
}

#[derive(Debug, Clone)]
struct RecordSketch {
    lcore: usize,
    tpoint: usize,
    step: u64,
    owner: u16,
    size: u32,
    object: u64,
    values: Vec<(u64, String)>,
}

/// Range of owners in a sketch: small, so that records share them.
const OWNERS: u16 = 6;
/// Range of owner and object types in a sketch: small, so that records share them.
const TYPES: std::ops::Range<u8> = 0..4;

fn any_sketch(era: Era) -> impl Strategy<Value = Sketch> {
    let spec = era.spec();
    let most = spec.tpoints();
    let tpoint_count = if spec.header.is_none() {
        128..=most
    } else {
        most..=most
    };
    let basics = (
        1_u64..5_000_000_000,
        0_u32..3,
        tpoint_count,
        vec("[a-z_0-9]{1,15}", 4),
    );
    let lcores = btree_set(0_u32..12, 1..=4);
    let owners = vec((1..OWNERS, 0_u64..2_000, "[!-~]{1,40}"), 0..4);
    basics.prop_flat_map(move |(tsc_rate, extra_slots, tpoint_count, thread_names)| {
        let ids = btree_set(64..tpoint_count as u16, 1..=6);
        let tpoints = ids.prop_flat_map(|ids| ids.into_iter().map(any_tpoint).collect::<Vec<_>>());
        let contents = (
            lcores.clone(),
            tpoints,
            owners.clone(),
            vec(any_record(), 0..120),
        );
        contents.prop_map(move |(lcores, tpoints, owners, records)| Sketch {
            tsc_rate,
            extra_slots,
            tpoint_count,
            lcores: lcores.into_iter().collect(),
            thread_names: thread_names.clone(),
            tpoints,
            owners,
            records,
        })
    })
}

fn any_tpoint(id: u16) -> impl Strategy<Value = TpointSketch> {
    let arg = prop_oneof![
        (
            prop_oneof![Just(ArgKind::Int), Just(ArgKind::Ptr)],
            prop_oneof![Just(4_u8), Just(8)]
        ),
        (
            Just(ArgKind::Str),
            prop_oneof![4 => 1_u8..=48, 1 => 49_u8..=255]
        ),
    ];
    let args = vec((arg, "[a-z_]{1,14}"), 0..=8);
    let relations = vec((1..TYPES.end, any::<u8>()), 0..=4);
    (
        "[A-Z_0-9]{1,24}",
        TYPES,
        TYPES,
        any::<bool>(),
        args,
        relations,
    )
        .prop_map(
            move |(name, owner_type, object_type, new_object, args, relations)| TpointSketch {
                id,
                name,
                owner_type,
                object_type,
                new_object,
                args: args
                    .into_iter()
                    .map(|((kind, size), name)| (kind, size, name))
                    .collect(),
                relations,
            },
        )
}

fn any_record() -> impl Strategy<Value = RecordSketch> {
    let number = prop_oneof![
        0_u64..6,
        any::<u64>(),
        (-5_i64..0).prop_map(i64::cast_unsigned)
    ];
    let text = prop_oneof![4 => "[ -~]{0,20}", 1 => "[ -~äß☃]{0,300}"];
    let object = prop_oneof![Just(0_u64), 0x1000_u64..0x1008, any::<u64>()];
    let numbers = (
        0_usize..4,
        0_usize..6,
        0_u64..40,
        0..OWNERS,
        any::<u32>(),
        object,
    );
    (numbers, vec((number, text), 8)).prop_map(
        |((lcore, tpoint, step, owner, size, object), values)| RecordSketch {
            lcore,
            tpoint,
            step,
            owner,
            size,
            object,
            values,
        },
    )
}

impl Sketch {
    fn build(self, era: Era) -> TraceBuilder {
        let spec = era.spec();
        let tpoints: Vec<Tpoint> = self
            .tpoints
            .iter()
            .map(|tpoint| tpoint.build(era))
            .collect();
        let longest = tpoints.iter().map(Tpoint::slots).max().unwrap_or(1);
        let mut trace = TraceBuilder::new(era).tsc_rate(self.tsc_rate);
        trace = trace.slots(longest.next_power_of_two() << self.extra_slots);
        if spec.header.is_none() {
            trace = trace.tpoint_count(self.tpoint_count).lcore_count(16);
        }
        for kind in 1..TYPES.end {
            trace
                .owner_type(kind, b'a' + kind)
                .object_type(kind, b'p' + kind);
        }
        for tpoint in &tpoints {
            trace.tpoint(tpoint.clone());
        }
        if spec.owners.is_some() {
            trace = trace
                .owner_count(usize::from(OWNERS))
                .owner_description_size(32);
            for (id, tsc, description) in &self.owners {
                trace.owner(*id, 1, *tsc, description);
            }
        }
        for (lcore, name) in self.lcores.iter().zip(&self.thread_names) {
            let lcore = trace.lcore(*lcore);
            if spec.has_thread_names() {
                lcore.thread_name(name);
            }
        }
        self.record_all(&mut trace, &tpoints);
        trace
    }

    fn record_all(&self, trace: &mut TraceBuilder, tpoints: &[Tpoint]) {
        let mut now = vec![1; self.lcores.len()];
        for record in &self.records {
            let at = record.lcore % self.lcores.len();
            now[at] += record.step;
            trace.record(
                self.lcores[at],
                record.build(now[at], &tpoints[record.tpoint % tpoints.len()]),
            );
        }
    }
}

impl TpointSketch {
    fn build(&self, era: Era) -> Tpoint {
        let spec = era.spec();
        let mut tpoint = Tpoint::new(self.id, self.name.clone());
        tpoint = tpoint
            .owner_type(self.owner_type)
            .object_type(self.object_type);
        if self.new_object && self.object_type != 0 {
            tpoint = tpoint.new_object();
        }
        for (kind, size, name) in self.args.iter().take(spec.max_args) {
            tpoint = tpoint.arg(name, *kind, *size);
        }
        let args = tpoint.args.len() as u8;
        for (object_type, arg) in self
            .relations
            .iter()
            .take(spec.max_relations)
            .filter(|_| args > 0)
        {
            tpoint = tpoint.relates(*object_type, arg % args);
        }
        tpoint
    }
}

impl RecordSketch {
    fn build(&self, tsc: u64, tpoint: &Tpoint) -> Record {
        let args = tpoint
            .args
            .iter()
            .zip(&self.values)
            .map(|(spec, (number, text))| match spec.kind {
                ArgKind::Int => Arg::Int(*number),
                ArgKind::Ptr => Arg::Ptr(*number),
                ArgKind::Str => Arg::text(text.as_bytes()),
            });
        let record = Record::new(tpoint.id, tsc)
            .owner(self.owner)
            .size(self.size);
        record.object(self.object).args(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::SLOT_SIZE;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_survivor_is_in_its_slot(trace in any_trace()) {
            let file = trace.build_file();
            for survivor in crate::survivors(&trace) {
                let slot = file.slot(survivor.lcore, survivor.slot as u64);
                prop_assert_eq!(slot.len(), SLOT_SIZE);
                prop_assert_eq!(&slot[..8], survivor.tsc.to_le_bytes());
                prop_assert_eq!(&slot[8..10], survivor.tpoint_id.to_le_bytes());
                prop_assert!(survivor.finished && survivor.args_intact);
            }
        }

        #[test]
        fn slots_without_a_survivor_are_empty_or_continue_one(trace in any_trace()) {
            let file = trace.build_file();
            let mut begins = std::collections::BTreeSet::new();
            for survivor in crate::survivors(&trace) {
                begins.insert((survivor.lcore, survivor.slot));
            }
            for lcore in file.layout.lcores() {
                for slot in (0..file.layout.slots).filter(|slot| !begins.contains(&(lcore, *slot))) {
                    let id = u16::from_le_bytes([file.slot(lcore, slot as u64)[8], file.slot(lcore, slot as u64)[9]]);
                    let empty = file.u64(file.layout.slot(lcore, slot as u64)) == 0;
                    prop_assert!(empty || usize::from(id) == file.layout.tpoint_count);
                }
            }
        }
    }
}
