//! Tests of the built files, read back by offset.

use crate::{Era, Record, Section, Tpoint, TraceBuilder, TraceFile};

/// Creates a trace of the era's minimum size, with one tracepoint that takes three slots.
fn small(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(8);
    if era >= Era::D {
        t = t.owner_count(4);
    }
    t.tpoint(
        Tpoint::new(193, "START")
            .ptr("ctx")
            .int("qd", 4)
            .str("name", 40),
    );
    t.tpoint(Tpoint::new(194, "DONE"));
    t
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap()).into_owned()
}

#[test]
fn an_empty_file_of_each_era_has_its_size() {
    let sizes = Era::ALL.map(|era| {
        let mut t = TraceBuilder::new(era).slots(1);
        t.lcore(0);
        let file = t.build_file();
        (file.layout.history(0), file.bytes.len())
    });
    let owners = 16_384 * 128;
    assert_eq!(
        sizes,
        [
            (114_832, 114_832 + 128 * (8_216 + 32)),
            (147_600, 147_600 + 128 * (8_216 + 32)),
            (196_752, 196_752 + 8_216 + 32),
            (198_800, 198_800 + 8_216 + 32),
            (220_320, 220_320 + 8_216 + 32 + owners),
            (268_992, 268_992 + 10_264 + 32 + owners),
            (2_342_896, 2_342_896 + 10_288 + 32),
        ]
    );
}

#[test]
fn the_file_says_its_own_size() {
    for era in Era::ALL {
        let mut t = small(era);
        t.lcore(3);
        let file = t.build_file();
        let says_it = match era {
            Era::A | Era::B | Era::C => file.u64(file.layout.lcore_offset(128)),
            _ => file.u64(0),
        };
        assert_eq!(says_it, file.bytes.len() as u64, "{era:?}");
        assert_eq!(
            file.u64(file.layout.lcore_offset(3)),
            file.layout.history(3) as u64,
            "{era:?}"
        );
        let others = file.layout.lcores().filter(|lcore| *lcore != 3).count();
        assert_eq!(others, if era <= Era::B { 127 } else { 0 }, "{era:?}");
        let unused = file.u64(file.layout.lcore_offset(2));
        assert_eq!(unused == 0, era >= Era::C, "{era:?}");
    }
}

#[test]
fn arguments_go_on_in_continuation_slots() {
    for era in Era::ALL {
        let mut t = small(era);
        t.record(
            0,
            Record::new(193, 7)
                .owner(2)
                .size(3)
                .object(4)
                .ptr(0x1122)
                .int(5)
                .str("Malloc0"),
        );
        let file = t.build_file();
        let first = file.slot(0, 0);
        assert_eq!(first[..8], 7_u64.to_le_bytes(), "{era:?}");
        assert_eq!(first[8..16], [193, 0, 2, 0, 3, 0, 0, 0], "{era:?}");
        assert_eq!(first[16..24], 4_u64.to_le_bytes(), "{era:?}");
        assert_eq!(first[24..], 0x1122_u64.to_le_bytes(), "{era:?}");
        let (second, third) = (file.slot(0, 1), file.slot(0, 2));
        for slot in [second, third] {
            assert_eq!(slot[..8], 7_u64.to_le_bytes(), "{era:?}");
            assert_eq!(
                slot[8..10],
                (era.spec().tpoints() as u16).to_le_bytes(),
                "{era:?}"
            );
        }
        assert_eq!(second[10..14], 5_u32.to_le_bytes(), "{era:?}");
        assert_eq!(text(&second[14..]), "Malloc0", "{era:?}");
        assert_eq!(file.next_entry(0), 3, "{era:?}");
        assert_eq!(file.u64(file.layout.tpoint_counter(0, 193)), 1, "{era:?}");
    }
}

#[test]
fn a_long_string_is_cut_and_a_short_one_leaves_the_rest_of_the_slot() {
    let mut t = TraceBuilder::new(Era::C).slots(2);
    t.tpoint(Tpoint::new(1, "LONG").str("s", 30));
    t.record(
        0,
        Record::new(1, 1).str("abcdefghijklmnopqrstuvwxyz0123456789"),
    );
    t.record(0, Record::new(1, 2).str("xy"));
    let file = t.build_file();
    assert_eq!(&file.slot(0, 0)[24..], b"xy\0defgh");
    assert_eq!(&file.slot(0, 1)[10..], b"ijklmnopqrstuvwxyz012\0");
}

#[test]
fn a_record_wraps_into_slot_zero() {
    let mut t = small(Era::E);
    for tsc in 1..=3 {
        t.record(0, Record::new(193, tsc).ptr(tsc).int(0).str("a"));
    }
    let file = t.build_file();
    assert_eq!(file.next_entry(0), 9);
    assert_eq!(file.slot(0, 6)[..8], 3_u64.to_le_bytes());
    assert_eq!(
        file.slot(0, 0)[..8],
        3_u64.to_le_bytes(),
        "the third slot of the third record"
    );
    assert_eq!(file.slot(0, 0)[8..10], 1280_u16.to_le_bytes());
}

#[test]
fn a_torn_record_takes_slots_from_the_oldest_and_moves_nothing() {
    let mut t = small(Era::F);
    for tsc in 1..=8 {
        t.record(0, Record::new(194, tsc));
    }
    t.torn(0, Record::new(193, 9).ptr(1).int(2).str("a"), 1);
    let file = t.build_file();
    assert_eq!(file.next_entry(0), 8);
    assert_eq!(file.slot(0, 8)[..8], 9_u64.to_le_bytes());
    assert_eq!(file.slot(0, 1)[..8], 2_u64.to_le_bytes());
}

#[test]
fn counts_make_a_small_file_of_era_f() {
    let mut t = TraceBuilder::new(Era::F)
        .slots(4)
        .tpoint_count(300)
        .owner_count(3)
        .owner_description_size(32);
    t = t.lcore_count(2).clear_tsc(77);
    t.tpoint(Tpoint::new(299, "LAST").str("s", 16));
    t.owner(2, 0x30, 5, "a description that is longer than its room");
    t.lcore(1)
        .thread_name("reactor_1")
        .record(Record::new(299, 80).str("abc"));
    let mut file = t.build_file();
    assert_eq!(file.u64(file.layout.header.clear_tsc.unwrap()), 77);
    assert_eq!(file.slot(1, 1)[8..10], 300_u16.to_le_bytes());
    let main = file.layout.section(Section::Main);
    assert_eq!(
        (main, file.u64(file.layout.section_offset(Section::Main))),
        (72, 72)
    );
    let history = file.layout.history(1);
    assert_eq!(text(&file.bytes[history + 4..]), "reactor_1");
    assert_eq!(
        text(&file.owner_mut(2)[9..]),
        "a description that is longer th"
    );
    assert!(file.bytes.len() < 65_000, "{} bytes", file.bytes.len());
}

#[test]
fn names_of_full_length_have_no_nul() {
    let mut t = TraceBuilder::new(Era::A).slots(1);
    t.tpoint(Tpoint::new(1, "ABCDEFGHIJKLMNOPQRSTUVWX").int("fourteen_bytes", 8));
    let mut file: TraceFile = t.build_file();
    assert_eq!(
        &file.tpoint_mut(1)[..46],
        b"ABCDEFGHIJKLMNOPQRSTUVWX\x01\0\0\0\0\x01fourteen_bytes\0\x08"
    );
}

#[test]
#[should_panic(expected = "has no room")]
fn era_a_has_no_relations() {
    TraceBuilder::new(Era::A).tpoint(Tpoint::new(1, "X").ptr("p").relates(2, 0));
}
