//! The specification by example: reads a trace file of each era.

use crate::common::{lines, problems, read};
use spdk_trace::{ArgKind, Lcore, OwnerLabel, RawTrace, TickRate, Ticks};
use std::ops::ControlFlow;
use testkit::{Arg, Era, Record, Tpoint, TraceBuilder};

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
fn a_4_byte_minus_1_is_shown_unsigned() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(DONE, 1).object(7).args([Arg::signed(-1)]));
        shows(&t, &["0 1 DONE n/a(0x7) status=4294967295"]);
    }
}

#[test]
fn arguments_go_on_in_continuations() {
    for era in Era::ALL {
        // 8 bytes lie in the record, 22 in each continuation: these take 0, 1, 1 and 2 of them.
        for size in [8_u8, 9, 30, 31] {
            let mut t = TraceBuilder::new(era).slots(8);
            t.tpoint(Tpoint::new(64, "TEXT").str("name", size));
            let text = "abcdefghijklmnopqrstuvwxyz0123456789";
            t.record(0, Record::new(64, 10).str(text));
            t.record(0, Record::new(64, 11).str("short"));
            let kept = &text[..usize::from(size) - 1];
            shows(
                &t,
                &[
                    &format!("0 10 TEXT name='{kept}'"),
                    "0 11 TEXT name='short'",
                ],
            );
        }
    }
}

#[test]
fn an_argument_may_lie_across_two_slots() {
    for era in Era::ALL {
        let mut t = TraceBuilder::new(era).slots(8);
        t.tpoint(
            Tpoint::new(64, "SPLIT")
                .int("a", 4)
                .ptr("b")
                .str("c", 15)
                .int("d", 8),
        );
        let record = Record::new(64, 5)
            .int(1)
            .ptr(0x1122_3344_5566_7788)
            .str("fourteen bytes")
            .int(u64::MAX);
        t.record(0, record);
        shows(
            &t,
            &["0 5 SPLIT a=1 b=0x1122334455667788 c='fourteen bytes' d=18446744073709551615"],
        );
    }
}

#[test]
fn arguments_may_lie_across_the_end_of_the_ring() {
    for era in Era::ALL {
        // Each record takes three slots of eight: the third begins in slot 6 and ends in slot 0.
        let mut t = trace(era);
        for n in 1..=3 {
            t.record(
                0,
                Record::new(TEXT, n)
                    .int(n)
                    .str(&format!("a name as long as may be, number {n}")),
            );
        }
        let trace = whole(&t);
        assert_eq!(
            lines(&trace),
            [
                "0 2 TEXT n=2 name='a name as long as may be, number 2'",
                "0 3 TEXT n=3 name='a name as long as may be, number 3'"
            ]
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

#[test]
fn objects_are_numbered_by_type_and_have_an_age() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(DONE, 90).object(0x10).int(0));
        t.record(0, Record::new(NEW, 100).object(0x10).ptr(0xaa));
        t.record(0, Record::new(NEW, 110).object(0x20).ptr(0xaa));
        t.record(0, Record::new(DONE, 150).object(0x10).int(0));
        // The reused pointer is a new object.
        t.record(0, Record::new(NEW, 160).object(0x10).ptr(0xbb));
        t.record(0, Record::new(DONE, 161).object(0x10).int(0));
        t.record(0, Record::new(DONE, 162).object(0x30).int(0));
        shows(
            &t,
            &[
                "0 90 DONE n/a(0x10) status=0",
                "0 100 NEW r0(0x10)+0 qpair=0xaa",
                "0 110 NEW r1(0x20)+0 qpair=0xaa",
                "0 150 DONE r0(0x10)+50 status=0",
                "0 160 NEW r2(0x10)+0 qpair=0xbb",
                "0 161 DONE r2(0x10)+1 status=0",
                "0 162 DONE n/a(0x30) status=0",
            ],
        );
    }
}

#[test]
fn objects_are_numbered_over_all_lcores_in_the_order_of_time() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(1, Record::new(NEW, 20).object(0x20).ptr(0));
        t.record(0, Record::new(NEW, 10).object(0x10).ptr(0));
        t.record(0, Record::new(DONE, 30).object(0x20).int(0));
        shows(
            &t,
            &[
                "0 10 NEW r0(0x10)+0 qpair=0x0",
                "1 20 NEW r1(0x20)+0 qpair=0x0",
                "0 30 DONE r1(0x20)+10 status=0",
            ],
        );
    }
}

#[test]
fn the_first_relation_to_a_known_object_is_shown_from_era_b_on() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(NEW, 1).object(0x10).ptr(0));
        t.record(0, Record::new(IO, 2).object(0x99).int(0).ptr(0x10));
        t.record(0, Record::new(IO, 3).object(0x98).int(0).ptr(0x11));
        // Here both the first relation (to a bdev I/O) and the second hold.
        t.record(0, Record::new(IO, 4).object(0x97).int(0x99).ptr(0x10));
        let related = |name: &'static str| if era == Era::A { "" } else { name };
        shows(
            &t,
            &[
                "0 1 NEW r0(0x10)+0 qpair=0x0",
                &format!("0 2 IO i0(0x99)+0{} type=0 ctx=0x10", related(" (r0)")),
                "0 3 IO i1(0x98)+0 type=0 ctx=0x11",
                &format!("0 4 IO i2(0x97)+0{} type=153 ctx=0x10", related(" (i0)")),
            ],
        );
    }
}

#[test]
fn old_eras_number_pollers() {
    for era in Era::ALL.into_iter().filter(|era| !with_owners(*era)) {
        let mut t = trace(era);
        t.record(0, Record::new(OWNED, 1).owner(5))
            .record(0, Record::new(OWNED, 2).owner(123));
        shows(&t, &["0 1 OWNED t05", "0 2 OWNED t123"]);
    }
}

#[test]
fn new_eras_describe_owners_that_were_registered_before_the_record() {
    for era in Era::ALL.into_iter().filter(|era| with_owners(*era)) {
        let mut t = trace(era);
        t.owner(256, TCP, 100, "127.0.0.1:4420 qid:1");
        t.record(0, Record::new(OWNED, 99).owner(256));
        t.record(0, Record::new(OWNED, 100).owner(256));
        t.record(0, Record::new(OWNED, 101).owner(256));
        t.record(0, Record::new(OWNED, 102).owner(257));
        t.record(0, Record::new(OWNED, 103).owner(0));
        t.record(0, Record::new(OWNED, 104).owner(60_000));
        t.record(0, Record::new(PLAIN, 105).owner(256));
        shows(
            &t,
            &[
                // The id belonged to an earlier owner.
                "0 99 OWNED t256",
                "0 100 OWNED t256",
                "0 101 OWNED t256 <127.0.0.1:4420 qid:1>",
                "0 102 OWNED t257",
                "0 103 OWNED t00",
                "0 104 OWNED t60000",
                "0 105 PLAIN <127.0.0.1:4420 qid:1>",
            ],
        );
    }
}

#[test]
fn the_label_is_the_description_or_else_the_poller() {
    let mut t = trace(Era::F);
    t.owner(256, TCP, 1, "somebody");
    t.record(0, Record::new(OWNED, 2).owner(256));
    t.record(0, Record::new(OWNED, 3).owner(7));
    t.record(0, Record::new(PLAIN, 4));
    let mut labels = Vec::new();
    whole(&t).for_each(|record| {
        labels.push(match record.label {
            OwnerLabel::Description(text) => text.to_owned(),
            OwnerLabel::Poller(poller) => format!("{poller:?}"),
            OwnerLabel::None => String::new(),
        });
        ControlFlow::Continue(())
    });
    assert_eq!(labels, ["somebody", "Id('t', 7)", ""]);
}
