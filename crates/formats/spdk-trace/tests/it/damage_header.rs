//! Tests of damaged headers, and of files that are not traces: the reports, and the records that
//! are still read.

use crate::common::{lines, problems, read};
use spdk_trace::{Error, RawTrace, TickRate};
use testkit::{Arg, Era, Record, Section, Tpoint, TraceBuilder, TraceFile};

const A: u16 = 64;
const ARGS: u16 = 65;

/// Creates two rings of 8 slots with one record each, and three owners if the era has them.
fn trace(era: Era) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(8);
    t.tpoint(Tpoint::new(A, "A").owner_type(1))
        .tpoint(Tpoint::new(ARGS, "ARGS").int("a", 8).ptr("b").str("c", 20));
    if era.spec().owners.is_some() {
        t = t.owner_count(3);
        t.owner(1, 1, 5, "owner one").owner(2, 1, 5, "owner two");
    }
    t.record(0, Record::new(A, 1000))
        .record(3, Record::new(A, 1001));
    t
}

fn fails(bytes: &[u8]) -> String {
    match RawTrace::read(bytes) {
        Ok(trace) => panic!("read as era {:?}", trace.era()),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn shows(file: &TraceFile, problems_expected: &[String], expected: &[&str]) {
    let trace = read(&file.bytes);
    assert_eq!(
        problems(trace.problems()),
        problems_expected,
        "era {:?}",
        file.layout.era
    );
    assert_eq!(lines(&trace), expected, "era {:?}", file.layout.era);
}

#[test]
fn a_file_that_is_no_trace_is_described() {
    let is_unknown = |bytes: &[u8], seen: &str| {
        let error = fails(bytes);
        assert!(
            error.contains(&format!("not an SPDK trace: {seen}")),
            "{error}"
        );
    };
    is_unknown(
        &vec![0; 300_000],
        "300000 bytes, of which the first 268992 are all zero",
    );
    is_unknown(&[0], "1 bytes, of which the first 1 are all zero");
    is_unknown(b"\x1f\x8b\x08\x00more", "gzip data (unpack it: gunzip)");
    is_unknown(b"\x7fELF\x02\x01", "an ELF file");
    is_unknown(
        b"TSC Rate: 2600000",
        "17 bytes, beginning with 54 53 43 20 52 61 74 65 3a 20 32 36 30 30 30 30; known are the \
         traces of SPDK v21.07, ",
    );
    assert_eq!(fails(b""), "the file is empty");
}

#[test]
fn random_bytes_are_no_trace() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..8 {
        let bytes: Vec<u8> = (0..40_000).flat_map(|_| random().to_le_bytes()).collect();
        assert!(matches!(
            RawTrace::read(&bytes),
            Err(Error::UnknownLayout { .. })
        ));
    }
}

#[test]
fn a_file_cut_inside_its_header_says_so_where_its_era_is_known() {
    for era in Era::ALL.into_iter().filter(|era| *era != Era::F) {
        let file = trace(era).build_file();
        let need = file.layout.header.size;
        for len in [file.layout.tpoint(ARGS + 1), need - 1] {
            let expected = format!(
                "the file ends at {len} bytes, inside its {} header of {need} bytes: it has no records",
                era.spec().versions
            );
            assert_eq!(fails(&file.bytes[..len]), expected);
        }
        // Before the first descriptor nothing identifies the era.
        assert!(
            fails(&file.bytes[..file.layout.tpoint(A)]).contains("not an SPDK trace"),
            "era {era:?}"
        );
    }
}

#[test]
fn a_file_that_is_cut_off_says_how_much_is_missing() {
    let file = trace(Era::E).build_file();
    let whole = file.bytes.len();
    let cut = read(&file.bytes[..whole - 10]);
    let said = cut.problems().iter().next().expect("a problem").to_string();
    let expected = format!(
        "the file is cut off at {} bytes, 10 before the end that its header states; everything \
         before that is read",
        whole - 10
    );
    assert_eq!(said, expected);
    // Even if too little is left to know the era.
    let error = fails(&file.bytes[..file.layout.tpoint(A)]);
    let hint = format!("(a trace of {whole} bytes that was cut off would begin so)");
    assert!(error.contains(&hint), "{error}");
}

#[test]
fn in_era_f_the_section_that_is_missing_is_named() {
    let file = trace(Era::F).build_file();
    for section in [
        Section::Main,
        Section::Owner,
        Section::Tpoint,
        Section::LcoreOffsets,
    ] {
        let len = file.layout.section(section) + 1;
        let error = fails(&file.bytes[..len]);
        assert!(
            error.contains(&format!("outside the file of {len} bytes")),
            "{section:?}: {error}"
        );
    }
    let mut file = trace(Era::F).build_file();
    for at in [1 << 40, u64::MAX] {
        file.set_u64(file.layout.section_offset(Section::Tpoint), at);
        let expected = format!(
            "the header places the tpoint section at {at:#x}, outside the file of {} bytes",
            file.bytes.len()
        );
        assert_eq!(fails(&file.bytes), expected);
    }
}

#[test]
fn a_wrong_size_is_reported_and_everything_is_read() {
    for era in Era::ALL {
        let mut file = trace(era).build_file();
        let actual = file.bytes.len();
        let after = file.layout.lcore_offset(file.layout.lcore_count as u32);
        file.set_u64(file.layout.header.file_size.unwrap_or(after), 7);
        let reported = format!("WrongSize {{ stated: 7, actual: {actual} }} x1 at 0x0");
        shows(&file, &[reported], &["0 1000 A", "3 1001 A"]);
    }
}

#[test]
fn without_a_tick_rate_a_tick_counts_as_a_microsecond() {
    for era in Era::ALL {
        let mut file = trace(era).build_file();
        file.set_u64(file.layout.header.tsc_rate, 0);
        shows(
            &file,
            &["NoTickRate x1 at 0x0".to_owned()],
            &["0 1000 A", "3 1001 A"],
        );
        assert_eq!(read(&file.bytes).tick_rate(), TickRate::ticks_as_micros());
    }
}

#[test]
fn a_descriptor_that_claims_200_arguments_has_those_that_fit() {
    for era in Era::ALL {
        let mut file = trace(era).build_file();
        file.tpoint_mut(A)[29] = 200;
        let reported = format!(
            "Descriptor(\"a descriptor claims more arguments than it has room for\") x1 at {:#x}",
            file.layout.tpoint(A)
        );
        shows(&file, &[reported], &["0 1000 A", "3 1001 A"]);
    }
}

#[test]
fn behind_an_argument_of_unknown_type_nothing_can_be_found() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(
            0,
            Record::new(ARGS, 1005).args([Arg::Int(1), Arg::Ptr(2), Arg::text("three")]),
        );
        let mut file = t.build_file();
        file.tpoint_mut(ARGS)[30 + 16 + 14] = 9;
        let reported = format!(
            "Descriptor(\"a descriptor has an argument of unknown type\") x1 at {:#x}",
            file.layout.tpoint(ARGS)
        );
        shows(
            &file,
            &[reported],
            &["0 1000 A", "3 1001 A", "0 1005 ARGS a=1"],
        );
    }
}

#[test]
fn a_descriptor_at_the_wrong_place_is_reported_and_the_place_counts() {
    for era in Era::ALL {
        let mut file = trace(era).build_file();
        file.tpoint_mut(A)[24] = 0;
        let reported = format!(
            "Descriptor(\"a descriptor's id is not its place in the table\") x1 at {:#x}",
            file.layout.tpoint(A)
        );
        shows(&file, &[reported], &["0 1000 A", "3 1001 A"]);
    }
}

#[test]
fn a_relation_to_an_argument_that_is_not_there_is_no_relation() {
    let mut t = trace(Era::C);
    t.tpoint(Tpoint::new(70, "REL").int("a", 8).relates(1, 0));
    let mut file = t.build_file();
    let relations = 30 + 16 * 8;
    file.tpoint_mut(70)[relations + 1] = 200;
    shows(&file, &[], &["0 1000 A", "3 1001 A"]);
    assert!(
        read(&file.bytes)
            .tpoints()
            .get(70)
            .is_some_and(|tpoint| tpoint.relations.is_empty())
    );
}

#[test]
fn names_that_a_terminal_would_obey_are_escaped() {
    for era in Era::ALL {
        let mut t = trace(era);
        t.record(
            0,
            Record::new(ARGS, 1005).args([Arg::Int(1), Arg::Ptr(2), Arg::text("\x1b[2J")]),
        );
        let mut file = t.build_file();
        file.tpoint_mut(A)[..4].copy_from_slice(b"\x1b[1m");
        file.tpoint_mut(ARGS)[..2].copy_from_slice(b"\xff\n");
        file.tpoint_mut(ARGS)[30..31].copy_from_slice(b"\r");
        // The bytes of a string argument are returned unchanged: the printer escapes them.
        shows(
            &file,
            &[],
            &[
                "0 1000 \\x1b[1m",
                "3 1001 \\x1b[1m",
                "0 1005 \\xff\\x0aGS \\x0d=1 b=0x2 c='\u{1b}[2J'",
            ],
        );

        if let Some(at) = file.layout.thread_name(3) {
            file.put(at, b"re\x07or\xc3");
            let threads: Vec<_> = read(&file.bytes)
                .rings()
                .map(|ring| ring.thread_name)
                .collect();
            assert_eq!(threads, ["", "re\\x07or\\xc3"]);
        }
        if era.spec().owners.is_some() {
            file.owner_mut(1)[9..13].copy_from_slice(b"a\x1b\x9b\t");
            let trace = read(&file.bytes);
            let owners: Vec<_> = trace
                .owners()
                .all()
                .map(|(id, owner)| (id, owner.description.as_str()))
                .collect();
            assert_eq!(owners, [(1, "a\\x1b\\x9b\\x09r one"), (2, "owner two")]);
        }
    }
}

#[test]
fn owners_behind_the_end_of_the_file_are_counted() {
    for era in [Era::D, Era::E] {
        let mut file = trace(era).build_file();
        let (stated, table) = (file.bytes.len(), file.layout.owner(0));
        file.bytes.truncate(file.layout.owner(2) + 20);
        let reported = [
            format!(
                "WrongSize {{ stated: {stated}, actual: {} }} x1 at 0x0",
                file.bytes.len()
            ),
            format!("OwnerOutside x1 at {table:#x}"),
        ];
        shows(&file, &reported, &["0 1000 A", "3 1001 A"]);
        assert_eq!(read(&file.bytes).owners().all().count(), 1);
    }
}

#[test]
fn a_table_of_owners_that_is_not_there_is_all_missing() {
    for era in [Era::D, Era::E] {
        for at in [1 << 40, u64::MAX] {
            let mut file = trace(era).build_file();
            file.set_u64(file.layout.header.owner_offset.unwrap(), at);
            shows(
                &file,
                &[format!("OwnerOutside x3 at {at:#x}")],
                &["0 1000 A", "3 1001 A"],
            );
        }
    }
}

#[test]
fn more_owners_than_the_file_has_bytes_take_no_memory() {
    for era in [Era::D, Era::E, Era::F] {
        let mut file = trace(era).build_file();
        let at = file.layout.header.num_owners.unwrap();
        file.set_u16(at, u16::MAX);
        file.set_u16(at + 2, u16::MAX);
        let trace = read(&file.bytes);
        let fit = (file.bytes.len() - file.layout.owner(0)) / (9 + 65_535);
        let expected = format!(
            "OwnerOutside x{} at {:#x}",
            65_535 - fit,
            file.layout.owner(0)
        );
        assert_eq!(problems(trace.problems()), [expected], "era {era:?}");
        assert_eq!(lines(&trace), ["0 1000 A", "3 1001 A"]);
    }
}
