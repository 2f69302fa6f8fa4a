//! Tests of damaged slots: lost and orphaned continuations, stopped writers, wrong cursors.

use crate::common::{lines, problems, read};
use spdk_trace::Lcore;
use testkit::{Era, Record, Tpoint, TraceBuilder, TraceFile};

const A: u16 = 64;
const TEXT: u16 = 65;

/// Time of the first record: an hour after the machine was started.
const T: u64 = 9_360_000_000_000;

/// Creates rings of 16 slots; a `TEXT` takes three of them.
fn trace(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(16);
    if era.spec().owners.is_some() {
        t = t.owner_count(0);
    }
    t.tpoint(Tpoint::new(A, "A"))
        .tpoint(Tpoint::new(TEXT, "TEXT").int("n", 4).str("s", 40));
    t
}

fn plain(t: &mut TraceBuilder, tscs: std::ops::RangeInclusive<u64>) {
    for tsc in tscs {
        t.record(0, Record::new(A, T + tsc));
    }
}

fn text(tsc: u64) -> Record {
    Record::new(TEXT, T + tsc)
        .int(tsc)
        .str("thirty-nine bytes over three slots, all")
}

/// Returns the lines as `tsc name [arguments]`, with times since [`T`].
fn shown(file: &TraceFile) -> Vec<String> {
    let without_t = |line: String| {
        let mut fields = line.splitn(3, ' ').skip(1);
        let (tsc, rest) = (
            fields.next().unwrap_or_default(),
            fields.next().unwrap_or_default(),
        );
        format!("{} {rest}", tsc.parse::<u64>().unwrap_or(0).wrapping_sub(T))
    };
    lines(&read(&file.bytes))
        .into_iter()
        .map(without_t)
        .collect()
}

fn all_of(tscs: impl IntoIterator<Item = u64>) -> Vec<String> {
    tscs.into_iter().map(|tsc| format!("{tsc} A")).collect()
}

#[track_caller]
fn tells(file: &TraceFile, expected: &[String]) {
    assert_eq!(
        problems(read(&file.bytes).problems()),
        expected,
        "era {:?}",
        file.layout.era
    );
}

#[test]
fn a_record_whose_continuation_is_gone_is_shown_with_the_arguments_that_are_left() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(A, T + 1))
            .record(0, text(2))
            .record(0, Record::new(A, T + 3));
        let whole = t.build_file();
        // Its continuations in slots 2 and 3 get another time, another id, or only zeros.
        for slot in [2, 3] {
            for damage in ["time", "id", "nothing"] {
                let mut file = whole.clone();
                match damage {
                    "time" => file.slot_mut(0, slot)[0] ^= 0x40,
                    "id" => file.slot_mut(0, slot)[8..10].copy_from_slice(&A.to_le_bytes()),
                    _ => file.slot_mut(0, slot).fill(0),
                }
                let shown = shown(&file);
                assert!(
                    shown.contains(&"2 TEXT n=2".to_owned()),
                    "era {era:?}, {damage}: {shown:?}"
                );
                assert!(
                    shown.contains(&"1 A".to_owned()) && shown.contains(&"3 A".to_owned()),
                    "{shown:?}"
                );
                let reported = problems(read(&file.bytes).problems());
                let lost = format!("lcore 0: ArgumentsLost x1 at {:#x}", file.layout.slot(0, 1));
                assert_eq!(reported[0], lost, "era {era:?}, {damage}");
            }
        }
    }
}

#[test]
fn a_continuation_of_no_record_is_reported() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, Record::new(A, T + 1))
            .record(0, text(2))
            .record(0, text(3));
        let mut file = t.build_file();
        // The record of 2 becomes one of 1, so that its continuations are orphaned.
        file.slot_mut(0, 1)[..8].copy_from_slice(&(T + 1).to_le_bytes());
        assert_eq!(shown(&file)[..2], ["1 A", "1 TEXT n=2"], "era {era:?}");
        tells(
            &file,
            &[
                format!("lcore 0: ArgumentsLost x1 at {:#x}", file.layout.slot(0, 1)),
                format!(
                    "lcore 0: OrphanContinuation x2 at {:#x}",
                    file.layout.slot(0, 2)
                ),
            ],
        );
    }
}

#[test]
fn nothing_is_reported_of_a_ring_that_was_never_written() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.lcore(0);
        let file = t.build_file();
        assert_eq!(shown(&file), [""; 0], "era {era:?}");
        tells(&file, &[]);
        let ring = read(&file.bytes)
            .rings()
            .find(|ring| ring.lcore == Lcore(0))
            .unwrap();
        assert_eq!(
            (
                ring.slots,
                ring.written,
                ring.records,
                ring.wrapped,
                ring.span
            ),
            (16, 0, 0, false, None)
        );
    }
}

#[test]
fn a_cursor_without_any_written_slot_is_no_record() {
    for era in Era::ALL {
        for cursor in [1, 15, 16, 17, 1 << 40, u64::MAX] {
            let mut t = trace(era);
            t.lcore(0);
            let mut file = t.build_file();
            file.set_next_entry(0, cursor);
            assert_eq!(shown(&file), [""; 0], "era {era:?}, {cursor}");
            tells(&file, &[]);
        }
    }
}

#[test]
fn a_ring_with_nothing_but_continuations_has_no_record() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(0, text(1));
        let mut file = t.build_file();
        file.slot_mut(0, 0).fill(0);
        assert_eq!(shown(&file), [""; 0], "era {era:?}");
    }
}

#[test]
fn a_full_ring_whose_cursor_was_never_moved_is_read_from_its_oldest_record() {
    for era in Era::ALL {
        for written in [16, 17, 25, 31] {
            let mut t = trace(era);
            plain(&mut t, 1..=written);
            let mut file = t.build_file();
            file.set_next_entry(0, 0);
            assert_eq!(shown(&file), all_of(written - 15..=written), "era {era:?}");
            tells(&file, &[]);
            assert!(
                read(&file.bytes)
                    .rings()
                    .next()
                    .is_some_and(|ring| ring.wrapped)
            );
        }
    }
}

#[test]
fn a_cursor_that_is_not_kept_does_not_matter_in_a_ring_that_is_not_full() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 1..=9);
        for cursor in [0, 16, 21, u64::MAX] {
            let mut file = t.build_file();
            file.set_next_entry(0, cursor);
            assert_eq!(shown(&file), all_of(1..=9), "era {era:?}, {cursor}");
            tells(&file, &[]);
        }
    }
}

#[test]
fn the_record_that_was_being_written_is_left_out() {
    for era in Era::ALL {
        for slots in 1..=3 {
            let mut t = trace(era);
            plain(&mut t, 1..=5);
            t.torn(0, text(6), slots);
            let file = t.build_file();
            assert_eq!(shown(&file), all_of(1..=5), "era {era:?}");
            tells(
                &file,
                &[format!(
                    "lcore 0: HalfWritten x1 at {:#x}",
                    file.layout.slot(0, 5)
                )],
            );
        }
    }
}

#[test]
fn in_a_ring_that_wrapped_the_record_being_written_takes_the_oldest_slots_with_it() {
    for era in Era::ALL {
        for slots in 1..=3 {
            let mut t = trace(era);
            plain(&mut t, 1..=20);
            t.torn(0, text(21), slots);
            let file = t.build_file();
            assert_eq!(shown(&file), all_of(5 + slots as u64..=20), "era {era:?}");
            tells(
                &file,
                &[format!(
                    "lcore 0: HalfWritten x1 at {:#x}",
                    file.layout.slot(0, 4)
                )],
            );
        }
    }
}

#[test]
fn slots_finished_at_the_same_time_stay() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 1..=3);
        t.record(0, text(3)).torn(0, text(3), 2);
        let file = t.build_file();
        assert_eq!(shown(&file)[..3], all_of(1..=3));
        assert_eq!(
            shown(&file)[3..],
            ["3 TEXT n=3 s='thirty-nine bytes over three slots, all'"],
            "era {era:?}"
        );
        tells(
            &file,
            &[format!(
                "lcore 0: HalfWritten x1 at {:#x}",
                file.layout.slot(0, 6)
            )],
        );
    }
}

#[test]
fn a_file_copied_during_a_write_lacks_only_the_newest_record() {
    for era in Era::ALL {
        // The header with the cursor was copied after `cursor` slots had been written, the ring
        // later.
        for (cursor, written) in [(3, 9), (3, 16), (16, 18), (20, 24), (20, 27)] {
            let mut t = trace(era);
            plain(&mut t, 1..=written);
            let mut file = t.build_file();
            file.set_next_entry(0, cursor);
            let oldest = if written > 16 { written - 15 } else { 1 };
            assert_eq!(
                shown(&file),
                all_of(oldest..written),
                "era {era:?}, {cursor} of {written}"
            );
            let newest = file.layout.slot(0, written - 1);
            tells(&file, &[format!("lcore 0: HalfWritten x1 at {newest:#x}")]);
        }
    }
}

#[test]
fn a_late_record_next_to_the_cursor_is_not_taken_for_a_seam() {
    for era in Era::ALL {
        // The newest record has the smallest tsc; with a cursor that lags, a record of the newer
        // part has it.
        let mut t = trace(era);
        plain(&mut t, 101..=120);
        t.record(0, Record::new(A, T + 90));
        let mut file = t.build_file();
        assert_eq!(
            shown(&file),
            all_of([90].into_iter().chain(106..=120)),
            "era {era:?}"
        );
        tells(&file, &[]);

        plain(&mut t, 121..=123);
        file = t.build_file();
        file.set_next_entry(0, 20);
        assert_eq!(
            shown(&file),
            all_of([90].into_iter().chain(109..=122)),
            "era {era:?}"
        );
        tells(
            &file,
            &[format!(
                "lcore 0: HalfWritten x1 at {:#x}",
                file.layout.slot(0, 23)
            )],
        );
    }
}

#[test]
fn a_time_that_can_not_be_is_left_out() {
    for era in Era::ALL {
        // Enough records that the compared ends are only a part of the ring.
        let mut t = trace(era).slots(64);
        plain(&mut t, 1..=60);
        for wrong in [1, T - 60 * 2_600_000_000 - 1, T + 61, u64::MAX] {
            let mut file = t.build_file();
            file.slot_mut(0, 29)[..8].copy_from_slice(&wrong.to_le_bytes());
            assert_eq!(shown(&file), all_of((1..=29).chain(31..=60)), "era {era:?}");
            tells(
                &file,
                &[format!(
                    "lcore 0: ImplausibleTime x1 at {:#x}",
                    file.layout.slot(0, 29)
                )],
            );
        }
        // An unwritten slot among written ones is not reported.
        let mut file = t.build_file();
        file.slot_mut(0, 29).fill(0);
        assert_eq!(shown(&file), all_of((1..=29).chain(31..=60)), "era {era:?}");
        tells(&file, &[]);
    }
}
