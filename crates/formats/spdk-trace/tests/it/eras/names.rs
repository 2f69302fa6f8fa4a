//! Names of objects, pollers and owners.

use std::ops::ControlFlow;

use spdk_trace::OwnerLabel;
use testkit::{Era, Record};

use super::{DONE, IO, NEW, OWNED, PLAIN, TCP, shows, trace, whole, with_owners};

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
