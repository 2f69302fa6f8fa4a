//! The specification by example: reads a trace file of each era.

mod arguments;
mod names;

use spdk_trace::{ArgKind, Lcore, RawTrace, TickRate, Ticks};
use testkit::{Era, Record, Tpoint, TraceBuilder};

use crate::common::{lines, problems, read};

const TCP: u8 = 0x30;
const REQUEST: u8 = 0x80;
const BDEV_IO: u8 = 0x02;

const PLAIN: u16 = 64;
const NEW: u16 = 320;
const DONE: u16 = 321;
const IO: u16 = 192;
const TEXT: u16 = 65;
const OWNED: u16 = 339;

/// Creates rings of 8 slots, and one tracepoint of each kind.
fn trace(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(8);
    if with_owners(era) {
        t = t.owner_count(300);
    }
    t.owner_type(TCP, b't')
        .object_type(REQUEST, b'r')
        .object_type(BDEV_IO, b'i');
    t.tpoint(Tpoint::new(PLAIN, "PLAIN"));
    t.tpoint(
        Tpoint::new(NEW, "NEW")
            .object_type(REQUEST)
            .new_object()
            .ptr("qpair"),
    );
    t.tpoint(
        Tpoint::new(DONE, "DONE")
            .object_type(REQUEST)
            .int("status", 4),
    );
    t.tpoint(Tpoint::new(TEXT, "TEXT").int("n", 8).str("name", 40));
    t.tpoint(Tpoint::new(OWNED, "OWNED").owner_type(TCP));
    let io = Tpoint::new(IO, "IO")
        .object_type(BDEV_IO)
        .new_object()
        .int("type", 4)
        .ptr("ctx");
    t.tpoint(if era == Era::A {
        io
    } else {
        io.relates(BDEV_IO, 0).relates(REQUEST, 1)
    });
    t
}

fn with_owners(era: Era) -> bool {
    era.spec().owners.is_some()
}

/// Reads a trace, and checks that no damage is reported.
fn whole(t: &TraceBuilder) -> RawTrace {
    let trace = read(&t.build());
    assert_eq!(problems(trace.problems()), [""; 0], "era {:?}", t.era());
    assert_eq!(format!("{:?}", trace.era()), format!("{:?}", t.era()));
    trace
}

#[track_caller]
fn shows(t: &TraceBuilder, expected: &[&str]) {
    let trace = whole(t);
    assert_eq!(lines(&trace), expected, "era {:?}", t.era());
    assert_eq!(
        trace.record_count(),
        expected.len() as u64,
        "era {:?}",
        t.era()
    );
}

#[test]
fn the_era_is_recognized_by_the_layout() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.lcore(0);
        let trace = whole(&t);
        assert_eq!(trace.era().versions(), era.spec().versions);
        assert_eq!(trace.era().has_owners(), with_owners(era));
        assert_eq!(
            trace.era().has_thread_names(),
            era.spec().has_thread_names()
        );
    }
}

#[test]
fn a_file_without_any_tracepoint_has_an_era_too() {
    for era in Era::ALL {
        for lcore in [0, 5] {
            let mut t = TraceBuilder::new(era).slots(1024);
            t.lcore(lcore);
            shows(&t, &[]);
        }
    }
}

#[test]
fn tick_rate_and_descriptors() {
    for era in Era::ALL {
        let mut t = TraceBuilder::new(era).tsc_rate(1_999_999_999);
        t.owner_type(TCP, b't').object_type(REQUEST, b'r');
        let tpoint = Tpoint::new(1023, "NAME_OF_24_BYTES_NO_NUL!")
            .owner_type(TCP)
            .object_type(REQUEST)
            .new_object();
        t.tpoint(tpoint.int("fourteen_bytes", 4).ptr("p").str("s", 255));
        t.lcore(0);
        let trace = whole(&t);
        assert_eq!(Some(trace.tick_rate()), TickRate::new(1_999_999_999));

        let [tpoint] = trace.tpoints().all() else {
            panic!("one tracepoint")
        };
        assert_eq!(
            (tpoint.id, tpoint.name.as_str(), tpoint.group()),
            (1023, "NAME_OF_24_BYTES_NO_NUL!", 15)
        );
        assert_eq!((tpoint.owner_type, tpoint.owner_prefix), (TCP, Some('t')));
        assert_eq!(
            (tpoint.object_type, tpoint.object_prefix, tpoint.new_object),
            (REQUEST, Some('r'), true)
        );
        let args: Vec<_> = tpoint
            .args
            .iter()
            .map(|arg| (arg.name.as_str(), arg.kind, arg.size))
            .collect();
        assert_eq!(
            args,
            [
                ("fourteen_bytes", ArgKind::Int, 4),
                ("p", ArgKind::Pointer, 8),
                ("s", ArgKind::String, 255)
            ]
        );
    }
}

#[test]
fn a_record_has_a_time_a_size_and_a_bare_pointer_where_its_tracepoint_has_no_object() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(PLAIN, 1000));
        t.record(
            0,
            Record::new(PLAIN, 1001)
                .size(4096)
                .object(0xffff_8000_0000_0000),
        );
        shows(
            &t,
            &["0 1000 PLAIN", "0 1001 PLAIN size 4096 0xffff800000000000"],
        );
    }
}

#[test]
fn a_ring_that_wrapped_is_read_from_its_oldest_record() {
    for era in Era::ALL {
        let mut t = trace(era);
        for tsc in 1..=11 {
            t.record(3, Record::new(PLAIN, tsc));
        }
        let expected: Vec<_> = (4..=11).map(|tsc| format!("3 {tsc} PLAIN")).collect();
        let trace = whole(&t);
        assert_eq!(lines(&trace), expected);

        let ring = trace.rings().find(|ring| ring.lcore == Lcore(3)).unwrap();
        assert_eq!(
            (ring.slots, ring.written, ring.records, ring.wrapped),
            (8, 11, 8, true)
        );
        assert_eq!(ring.span, Some((Ticks(4), Ticks(11))));
    }
}

#[test]
fn a_ring_that_is_just_full_has_wrapped() {
    for era in Era::ALL {
        for (records, wrapped) in [(7, false), (8, true)] {
            let mut t = trace(era);
            for tsc in 1..=records {
                t.record(0, Record::new(PLAIN, tsc));
            }
            let ring = whole(&t).rings().next().unwrap();
            assert_eq!(
                (ring.written, ring.records, ring.wrapped),
                (records, records, wrapped),
                "era {era:?}"
            );
        }
    }
}
