//! What must hold of a raw trace, however damaged its file is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use spdk_trace::{
    ArgKind, ArgValue, Error, Follower, Lcore, Object, OwnerLabel, Problems, RawTrace, ReadAt,
    Record, Ticks, TpointTable,
};
use text::printable;

/// The most bytes a slot takes.
const SLOT_SIZE: u64 = 32;
/// Memory that the reader may take, in sizes of the file: its tables can all lie on the same bytes.
const MEMORY_RATIO: usize = 16;

/// What was seen of one lcore.
#[derive(Clone, Copy, Debug)]
struct Seen {
    records: u64,
    first: Ticks,
    last: Ticks,
}

/// Reads the trace and everything in it. `size` is the largest that the source ever is, in bytes.
pub fn check_raw(source: &impl ReadAt, size: usize) {
    let trace = match crate::within(size, MEMORY_RATIO, || RawTrace::read(source)) {
        Ok(trace) => trace,
        // The sources here never fail, so no offset may be asked for that can't be.
        Err(error) => return assert!(!matches!(error, Error::Read { .. }), "{error}"),
    };
    let seen = crate::within(size, MEMORY_RATIO, || walk(&trace));
    check_rings(&trace, &seen, size as u64);
    check_problems(trace.problems());
    check_break(&trace);
    for (id, owner) in trace.owners().all() {
        assert!(
            id != 0 && owner.since != Ticks(0) && !owner.description.contains(char::is_control),
            "{owner:?}"
        );
        assert_eq!(
            trace.owners().at(id, owner.since),
            None,
            "nobody is there before being registered"
        );
        assert!(
            owner.since == Ticks(u64::MAX) || trace.owners().at(id, Ticks(u64::MAX)) == Some(owner)
        );
    }
}

/// Walks through all records; they come in the order of (tsc, lcore).
fn walk(trace: &RawTrace) -> BTreeMap<Lcore, Seen> {
    let mut seen: BTreeMap<Lcore, Seen> = BTreeMap::new();
    let mut before = None;
    trace.for_each(|record| {
        let now = (record.tsc, record.lcore);
        assert!(before <= Some(now), "{before:?} is told before {now:?}");
        if let Some((tsc, _)) = before {
            let rate = trace.tick_rate();
            assert!(
                rate.nanos(tsc) <= rate.nanos(record.tsc),
                "{rate:?}: {tsc:?} and {:?}",
                record.tsc
            );
        }
        before = Some(now);
        let (first, last) = (record.tsc, record.tsc);
        let ring = seen.entry(record.lcore).or_insert(Seen {
            records: 0,
            first,
            last,
        });
        ring.records += 1;
        ring.last = last;
        check_record(trace.tpoints(), record);
        assert!(record.owner.is_none() || trace.era().has_owners());
        ControlFlow::Continue(())
    });
    seen
}

fn check_record(tpoints: &TpointTable, record: &Record<'_>) {
    assert_ne!(
        record.tsc,
        Ticks(0),
        "that is a slot that was never written"
    );
    assert_eq!(tpoints.get(record.tpoint.id), Some(record.tpoint));
    let mut args = 0;
    for (spec, value) in record.args.iter() {
        match (spec.kind, value) {
            (ArgKind::Int, ArgValue::Int(n)) | (ArgKind::Pointer, ArgValue::Pointer(n)) => {
                assert!(
                    spec.size >= 8 || n >> (8 * spec.size) == 0,
                    "{n:#x} in {spec:?}"
                );
            }
            (ArgKind::String, ArgValue::Str(bytes)) => {
                assert!(
                    bytes.len() <= usize::from(spec.size) && !bytes.contains(&0),
                    "{bytes:?} in {spec:?}"
                );
                assert!(!printable::text(bytes).contains(char::is_control));
            }
            (kind, value) => panic!("{value:?} of a {kind:?}"),
        }
        args += 1;
    }
    assert!(args <= record.tpoint.args.len());
    if let Object::Known { age: Some(age), .. } = record.object {
        assert!(age <= record.tsc);
    }
    if let Some(arg) = record.related.and_then(|related| related.arg) {
        assert!(
            usize::from(arg) < args,
            "related by the argument {arg} of {args}"
        );
    }
    match record.label {
        OwnerLabel::Description(text) => assert_eq!(record.owner, Some(text)),
        OwnerLabel::Poller(poller) => {
            assert_eq!((record.owner, record.poller), (None, Some(poller)))
        }
        OwnerLabel::None => assert_eq!((record.owner, record.poller), (None, None)),
    }
}

/// The rings' summaries tell of the records that there are.
fn check_rings(trace: &RawTrace, seen: &BTreeMap<Lcore, Seen>, size: u64) {
    let mut before = None;
    let mut slots = 0;
    for ring in trace.rings() {
        assert!(
            before < Some(ring.lcore),
            "{before:?} is told before {:?}",
            ring.lcore
        );
        before = Some(ring.lcore);
        let seen = seen.get(&ring.lcore);
        assert_eq!(
            ring.records,
            seen.map_or(0, |seen| seen.records),
            "{ring:?}"
        );
        assert_eq!(
            ring.span,
            seen.map(|seen| (seen.first, seen.last)),
            "{ring:?}"
        );
        assert!(
            ring.late <= ring.records && ring.records <= ring.slots,
            "{ring:?}"
        );
        assert!(!ring.thread_name.contains(char::is_control), "{ring:?}");
        slots += ring.records;
    }
    assert_eq!(trace.record_count(), slots);
    assert!(
        slots * SLOT_SIZE <= size,
        "{slots} records in {size} bytes: some were read twice"
    );
    assert!(trace.common_start() == Ticks(0) || trace.rings().any(|ring| ring.wrapped));
}

fn check_problems(problems: &Problems) {
    for finding in problems.iter() {
        assert!(
            finding.count > 0 && !finding.to_string().contains(char::is_control),
            "{finding:?}"
        );
    }
    if let Some(last) = problems.iter().last() {
        assert!(problems.count(last.problem) >= last.count, "{last:?}");
    }
}

/// A walk that is broken off ends there.
fn check_break(trace: &RawTrace) {
    let (wanted, mut got) = (trace.record_count().div_ceil(2), 0);
    trace.for_each(|_| {
        got += 1;
        if got < wanted {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    assert_eq!(got, wanted);
}

/// Follows the trace for a few looks; each tells its records in order.
pub fn check_follower(source: &impl ReadAt, size: usize) {
    let Ok(mut follower) = crate::within(size, MEMORY_RATIO, || Follower::new(source)) else {
        return;
    };
    let tpoints = follower.tpoints().clone();
    for all in [false, false, false, true] {
        let (mut before, mut records) = (None, 0);
        let look = crate::within(size, MEMORY_RATIO, || {
            follower.poll(source, all, |record| {
                let now = (record.tsc, record.lcore);
                assert!(before <= Some(now), "{before:?} is told before {now:?}");
                (before, records) = (Some(now), records + SLOT_SIZE);
                check_record(&tpoints, record);
                ControlFlow::Continue(())
            })
        });
        assert!(matches!(look, Ok(ControlFlow::Continue(()))), "{look:?}");
        assert!(
            records <= size as u64,
            "{records} bytes of records in {size} bytes"
        );
    }
    check_problems(follower.problems());
}
