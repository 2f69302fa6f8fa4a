//! Arguments of records, in one slot and in several.

use testkit::{Arg, Era, Record, Tpoint, TraceBuilder};

use super::{DONE, TEXT, shows, trace, whole};
use crate::common::lines;

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
