//! Tests of damaged rings and histories: the reports, and the records that are still read.

use crate::common::{lines, problems, read};
use testkit::{Era, Record, Tpoint, TraceBuilder, TraceFile};

const A: u16 = 64;
const TEXT: u16 = 65;

/// Time of the first record: an hour after the machine was started.
const T: u64 = 9_360_000_000_000;

/// Creates rings of 8 slots, and no owners, so that the last ring ends with the file.
fn trace(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(8);
    if era.spec().owners.is_some() {
        t = t.owner_count(0);
    }
    t.tpoint(Tpoint::new(A, "A"))
        .tpoint(Tpoint::new(TEXT, "TEXT").int("n", 4).str("s", 40));
    t
}

fn plain(t: &mut TraceBuilder, lcore: u32, tscs: std::ops::RangeInclusive<u64>) {
    for tsc in tscs {
        t.record(lcore, Record::new(A, T + tsc));
    }
}

/// Returns the lines, with times since [`T`].
fn shown(file: &TraceFile) -> Vec<String> {
    let mut lines = lines(&read(&file.bytes));
    for line in &mut lines {
        let mut fields = line.splitn(3, ' ');
        let (Some(lcore), Some(tsc), Some(rest)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        *line = format!(
            "{lcore} {} {rest}",
            tsc.parse::<u64>().unwrap_or(0).wrapping_sub(T)
        );
    }
    lines
}

fn all_of(lcore: u32, tscs: impl IntoIterator<Item = u64>) -> Vec<String> {
    tscs.into_iter()
        .map(|tsc| format!("{lcore} {tsc} A"))
        .collect()
}

#[track_caller]
fn tells(file: &TraceFile, expected: &[String]) {
    let mut reported = problems(read(&file.bytes).problems());
    reported.retain(|problem| !problem.contains("WrongSize"));
    assert_eq!(reported, expected, "era {:?}", file.layout.era);
}

#[test]
fn a_file_cut_inside_the_last_ring_has_the_slots_before_the_cut() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 127, 1..=8);
        // Between two slots, and within one, which is lost as well.
        for extra in [0, 1, 17, 31] {
            let mut file = t.build_file();
            let cut = file.layout.slot(127, 5) + extra;
            file.bytes.truncate(cut);
            assert_eq!(shown(&file), all_of(127, 1..=5), "era {era:?}");
            tells(&file, &[format!("lcore 127: SlotsMissing x3 at {cut:#x}")]);
        }
    }
}

#[test]
fn a_cut_wrapped_ring_keeps_its_first_slots() {
    for era in Era::ALL {
        let mut t = trace(era);
        // Slots 0 to 2 hold 9 to 11, slots 3 to 7 hold 4 to 8.
        plain(&mut t, 127, 1..=11);
        for (kept, expected) in [
            (2, vec![9, 10]),
            (3, vec![9, 10, 11]),
            (5, vec![4, 5, 9, 10, 11]),
        ] {
            let mut file = t.build_file();
            file.bytes.truncate(file.layout.slot(127, kept));
            assert_eq!(shown(&file), all_of(127, expected), "era {era:?}");
        }
    }
}

#[test]
fn offsets_are_right_in_a_ring_that_was_turned_and_cut() {
    let mut t = trace(Era::E);
    plain(&mut t, 0, 1..=11);
    let mut file = t.build_file();
    file.slot_mut(0, 1)[8] = 0xff;
    file.slot_mut(0, 4)[8] = 0xff;
    file.bytes.truncate(file.layout.slot(0, 6));
    let cut = file.bytes.len();
    let first = file.layout.slot(0, 4);
    tells(
        &file,
        &[
            format!("lcore 0: SlotsMissing x2 at {cut:#x}"),
            format!("lcore 0: UnknownTpoint x2 at {first:#x}"),
        ],
    );
    file.slot_mut(0, 4)[8] = A as u8;
    let second = file.layout.slot(0, 1);
    tells(
        &file,
        &[
            format!("lcore 0: SlotsMissing x2 at {cut:#x}"),
            format!("lcore 0: UnknownTpoint x1 at {second:#x}"),
        ],
    );
}

#[test]
fn a_file_cut_inside_a_history_header_misses_the_whole_ring() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 0, 1..=2);
        plain(&mut t, 127, 3..=4);
        let mut file = t.build_file();
        let history = file.layout.history(127);
        for len in [file.layout.slot(127, 0) - 1, history + 48] {
            file.bytes.truncate(len);
            assert_eq!(shown(&file), all_of(0, 1..=2), "era {era:?}");
            tells(&file, &[format!("lcore 127: SlotsMissing x8 at {len:#x}")]);
        }
        for len in [history + 15, history] {
            file.bytes.truncate(len);
            assert_eq!(shown(&file), all_of(0, 1..=2), "era {era:?}");
            tells(
                &file,
                &[format!("lcore 127: HistoryOutside x1 at {history:#x}")],
            );
        }
    }
}

#[test]
fn an_offset_that_leads_to_no_history_of_that_lcore_is_reported() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 2, 1..=8);
        t.lcore(5);
        let file = t.build_file();
        let inside = [
            file.layout.slot(2, 3),
            file.layout.history(2),
            file.layout.tpoint(A),
            64,
            file.bytes.len(),
        ];
        for at in inside
            .map(|at| at as u64)
            .into_iter()
            .chain([1 << 40, u64::MAX - 7, u64::MAX])
        {
            let mut file = file.clone();
            file.set_u64(file.layout.lcore_offset(5), at);
            assert_eq!(shown(&file), all_of(2, 1..=8), "era {era:?}");
            tells(&file, &[format!("lcore 5: HistoryOutside x1 at {at:#x}")]);
        }
    }
}

#[test]
fn all_lcores_with_one_offset_are_read_once() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 3, 1..=8);
        t.lcore(127);
        let mut file = t.build_file();
        let history = file.layout.history(3) as u64;
        let lcores = file.layout.lcore_count as u32;
        for lcore in 0..lcores {
            file.set_u64(file.layout.lcore_offset(lcore), history);
        }
        assert_eq!(shown(&file), all_of(3, 1..=8), "era {era:?}");
        let reported = problems(read(&file.bytes).problems());
        assert_eq!(reported.len() as u32, lcores - 1);
        assert_eq!(
            reported[0],
            format!("lcore 0: HistoryOutside x1 at {history:#x}")
        );
    }
}

#[test]
fn a_history_on_another_ones_header_is_reported() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 0, 1..=8);
        t.lcore(5);
        let mut file = t.build_file();
        // The counters of lcore 0 contain an apparent history of lcore 5.
        let at = file.layout.history(0) + 64;
        let num_entries = file.layout.num_entries(0) - file.layout.history(0);
        file.put(at, &5_u32.to_le_bytes());
        file.set_u64(at + num_entries, 1 << 20);
        file.set_u64(file.layout.lcore_offset(5), at as u64);
        assert_eq!(shown(&file), all_of(0, 1..=8), "era {era:?}");
        tells(&file, &[format!("lcore 5: HistoryOverlaps x1 at {at:#x}")]);
    }
}

#[test]
fn a_ring_can_not_be_longer_than_there_is_room() {
    for era in Era::ALL {
        for claimed in [9, 1 << 20, 1 << 61, u64::MAX] {
            let mut t = trace(era);
            plain(&mut t, 0, 1..=11);
            plain(&mut t, 127, 21..=31);
            let mut file = t.build_file();
            // Lcore 127's ring ends with the file; lcore 0's ends where the next history begins.
            let expected: Vec<_> = all_of(0, 4..=11)
                .into_iter()
                .chain(all_of(127, 24..=31))
                .collect();
            for lcore in [127, 0] {
                let end = file.layout.slot(lcore, 7) + 32;
                let honest = file.u64(file.layout.num_entries(lcore));
                file.set_u64(file.layout.num_entries(lcore), claimed);
                assert_eq!(
                    shown(&file),
                    expected,
                    "era {era:?}, lcore {lcore}, {claimed} slots"
                );
                tells(
                    &file,
                    &[format!(
                        "lcore {lcore}: SlotsMissing x{} at {end:#x}",
                        claimed - 8
                    )],
                );
                file.set_u64(file.layout.num_entries(lcore), honest);
            }
        }
    }
}

#[test]
fn a_ring_can_not_reach_into_the_owners() {
    for era in [Era::D, Era::E] {
        let mut t = trace(era).owner_count(300);
        for owner in 1..300 {
            t.owner(owner, 1, T + 5, "looks like a record if one wants it to");
        }
        plain(&mut t, 0, 1..=11);
        let mut file = t.build_file();
        let end = file.layout.owner(0);
        file.set_u64(file.layout.num_entries(0), 1 << 20);
        assert_eq!(shown(&file), all_of(0, 4..=11), "era {era:?}");
        tells(
            &file,
            &[format!(
                "lcore 0: SlotsMissing x{} at {end:#x}",
                (1 << 20) - 8
            )],
        );
    }
}

#[test]
fn a_ring_without_slots_is_ignored() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 0, 1..=3);
        plain(&mut t, 1, 4..=5);
        let mut file = t.build_file();
        file.set_u64(file.layout.num_entries(0), 0);
        assert_eq!(shown(&file), all_of(1, 4..=5), "era {era:?}");
        tells(
            &file,
            &[format!(
                "lcore 0: HistoryOutside x1 at {:#x}",
                file.layout.history(0)
            )],
        );
    }
}

#[test]
fn a_ring_with_fewer_slots_than_it_had_gives_those_in_order() {
    for era in Era::ALL {
        for claimed in [7, 5, 1] {
            let mut t = trace(era);
            plain(&mut t, 0, 1..=11);
            let mut file = t.build_file();
            file.set_u64(file.layout.num_entries(0), claimed);
            // Contents of slots 0 to 7.
            let mut kept = [9, 10, 11, 4, 5, 6, 7, 8][..claimed as usize].to_vec();
            kept.sort_unstable();
            // The cursor points to the wrong slot, so the newest record may look half-written.
            let shown = shown(&file);
            let half_written = problems(read(&file.bytes).problems())
                .iter()
                .any(|reported| reported.contains("HalfWritten x1"));
            kept.truncate(kept.len() - usize::from(half_written));
            assert_eq!(shown, all_of(0, kept), "era {era:?}, {claimed} slots");
        }
    }
}

#[test]
fn counters_that_lie_about_their_number_hide_the_ring_of_era_f() {
    for counters in [1 << 40, u64::MAX, u64::MAX / 8] {
        let mut t = trace(Era::F);
        plain(&mut t, 0, 1..=3);
        plain(&mut t, 1, 4..=5);
        let mut file = t.build_file();
        file.set_u64(file.layout.history(1) + 32, counters);
        assert_eq!(shown(&file), all_of(0, 1..=3));
        assert_eq!(problems(read(&file.bytes).problems()).len(), 1);
    }
}

#[test]
fn records_without_a_descriptor_are_left_out() {
    for era in Era::ALL {
        let mut t = trace(era);
        plain(&mut t, 0, 1..=6);
        let mut file = t.build_file();
        // An id without a descriptor, and one beyond all of them.
        file.slot_mut(0, 2)[8..10].copy_from_slice(&66_u16.to_le_bytes());
        file.slot_mut(0, 4)[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(shown(&file), all_of(0, [1, 2, 4, 6]), "era {era:?}");
        tells(
            &file,
            &[format!(
                "lcore 0: UnknownTpoint x2 at {:#x}",
                file.layout.slot(0, 2)
            )],
        );
    }
}
