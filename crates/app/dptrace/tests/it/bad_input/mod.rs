//! Bad input: dptrace reads as much as it can, prints a helpful message, exits with the right
//! status, and never panics.

mod harmless;
mod words;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::common::small::Small;
use crate::common::{dptrace, printed};

/// Runs the program, which must end with this status. Returns standard output and standard error.
#[track_caller]
fn run<I: IntoIterator<Item = impl Into<OsString>>>(args: I, status: i32) -> (String, String) {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let done = dptrace().args(args).assert().code(status);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let output = done.get_output();
    (text(&output.stdout), text(&output.stderr))
}

/// Asserts that both commands refuse a file with these contents, with status 1 and helpful words.
#[track_caller]
fn refused(contents: &[u8], words: &[&str]) {
    let small = Small::new();
    std::fs::write(small.path("t.trace"), contents).expect("written");
    for command in ["trace", "latency"] {
        let (out, messages) = run(small.args(command, &[]), 1);
        assert_eq!(out, "");
        assert!(
            words.iter().all(|word| messages.contains(word)),
            "{command}: {messages}"
        );
        assert!(
            messages.contains("t.trace"),
            "{command} names the file: {messages}"
        );
    }
}

#[test]
fn a_missing_file() {
    let (_, messages) = run(["trace", "-i", "/no/such/file"], 1);
    assert_eq!(
        messages,
        "error: reading /no/such/file: No such file or directory\n"
    );
}

#[test]
fn a_directory() {
    let small = Small::new();
    let (_, messages) = run(
        [
            "trace".into(),
            "-i".into(),
            OsString::from(small.dir.path()),
        ],
        1,
    );
    assert!(
        messages.contains(" is a folder, but not a capture"),
        "{messages}"
    );
}

/// Root may read everything, so another user runs the program; if that is impossible, it is
/// reported.
#[test]
fn a_file_that_may_not_be_read() {
    let small = Small::new();
    let own = small.path("dptrace");
    testkit::copy_program(env!("CARGO_BIN_EXE_dptrace"), &own);
    std::fs::set_permissions(small.dir.path(), PermissionsExt::from_mode(0o755))
        .expect("opened up");
    std::fs::set_permissions(small.path("t.trace"), PermissionsExt::from_mode(0o000))
        .expect("closed");
    let mut command = testkit::command(&own);
    command.args(small.args("trace", &[]));
    if std::fs::File::open(small.path("t.trace")).is_ok() {
        command.uid(65_534);
    }
    let Ok(done) = command.output() else {
        testkit::kernel::skip_if_permitted(
            "other users",
            "the program can't be run as another user here",
        );
        return;
    };
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{messages}");
    assert!(
        messages.contains("t.trace") && messages.contains("ermission denied"),
        "{messages}"
    );
}

#[test]
fn files_that_are_no_traces() {
    refused(b"", &["empty"]);
    refused(
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8],
        &["not an SPDK trace: gzip data"],
    );
    refused(
        &[0x0b; 4096],
        &[
            "known are the traces of SPDK",
            "v21.07",
            "v22.09",
            "v24.09",
            "v26.05",
        ],
    );
    refused(b"hello\nworld\n", &["spdk_trace"]);
    refused(b"{\"name\": 1}", &["spdk_trace"]);
    refused(
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0",
        &["not an SPDK trace: an ELF file"],
    );
}

#[test]
fn a_listing_in_place_of_a_trace() {
    let small = Small::new();
    let listing = printed(small.args("trace", &["--format", "spdk"]));
    refused(listing.as_bytes(), &["text listing", "spdk_trace -j"]);
    let listing = printed(small.args("trace", &[]));
    refused(listing.as_bytes(), &["text listing", "spdk_trace -j"]);
}

#[test]
fn a_file_that_ends_too_early_is_read_as_far_as_it_goes() {
    let small = Small::new();
    let file = crate::common::small::builder().build_file();
    // After the third slot of lcore 2, whose history is the last.
    let end = file.layout.slot(2, 3);
    std::fs::write(small.path("t.trace"), &file.bytes[..end]).expect("written");
    let (out, messages) = run(small.args("trace", &[]), 0);
    assert_eq!(out.lines().count(), 5 + 3);
    assert!(
        messages.contains(&format!("{end:#x}")) && messages.contains("slots before the ring's end"),
        "{messages}"
    );
    let (out, _) = run(small.args("latency", &[]), 0);
    assert!(out.contains("TCP_REQ_NEW"), "{out}");
}

#[test]
fn a_file_of_which_nothing_is_left() {
    let file = crate::common::small::builder().build_file();
    refused(&file.bytes[..file.layout.slot(0, 0)], &["no record"]);
    refused(&file.bytes[..200], &["200 bytes"]);
}

#[test]
fn a_trace_without_records_is_whole() {
    let (out, messages) = run(
        Small::from_trace(&crate::common::small::declared()).args("trace", &[]),
        0,
    );
    assert_eq!(out, "");
    assert!(messages.contains("no records"), "{messages}");
}

#[test]
fn a_document_that_is_cut_in_the_middle() {
    let small = Small::new();
    let json = printed(small.args("trace", &["--format", "json"]));
    let sixth = json.match_indices("{\"lcore\"").nth(5).expect("an entry").0;
    std::fs::write(small.path("t.trace"), &json[..sixth + 20]).expect("written");
    let (out, messages) = run(small.args("trace", &[]), 0);
    assert_eq!(out.lines().count(), 5);
    assert!(messages.contains("cut off at 0x"), "{messages}");
    let before = json.find("\"entries\"").expect("entries");
    refused(&json.as_bytes()[..before], &["0x"]);
}

#[test]
fn a_recording_with_broken_lines() {
    let small = Small::new();
    let broken = format!(
        "{}nvmf_poll_group_add_qpair: tsc=0x1, qpair=\n\u{fffd}\n",
        crate::common::small::recording()
    );
    std::fs::write(small.path("broken"), broken).expect("written");
    let (out, messages) = run(small.args("trace", &["-b", "@broken"]), 0);
    assert!(out.contains("qpair(ptr=0xc0"), "{out}");
    assert!(messages.contains("broken, line 4"), "{messages}");
}

#[test]
fn an_invalid_recording_is_reported() {
    let small = Small::new();
    for (contents, what) in [
        (&b"hello\n"[..], "text"),
        (&[0xff, 0, 1, 2], "bytes"),
        (b"", "nothing"),
    ] {
        std::fs::write(small.path("none"), contents).expect("written");
        let (out, messages) = run(small.args("trace", &["-b", "@none"]), 0);
        assert_eq!(out.lines().count(), 10, "{what}");
        assert!(
            messages.contains("nvmf_poll_group_add_qpair"),
            "{what}: {messages}"
        );
    }
    let (_, messages) = run(small.args("trace", &["-b", "@missing"]), 1);
    assert!(messages.contains("missing"), "{messages}");
}

#[test]
fn a_recording_in_a_traces_place_and_a_trace_in_a_recordings() {
    let small = Small::new();
    let (trace, recording) = (small.path("t.trace"), small.path("t.recording"));
    let document = small.path("t.json");
    std::fs::write(
        &document,
        printed(small.args("trace", &["--format", "json"])),
    )
    .expect("written");
    for command in ["trace", "latency"] {
        let messages = |trace: &Path, recording: Option<&Path>| {
            let mut args: Vec<OsString> = vec![command.into(), trace.into()];
            args.extend(
                recording
                    .into_iter()
                    .flat_map(|path| ["-b".into(), path.into()]),
            );
            run(args, 2).1
        };
        let shown = recording.display();
        assert!(
            messages(&recording, None)
                .contains(&format!("{shown} is a recording of probes, not a trace"))
        );
        let swapped = messages(&recording, Some(&trace));
        assert!(
            swapped.contains(&format!("use -i {} -b {shown}", trace.display())),
            "{swapped}"
        );
        assert!(messages(&trace, Some(&document)).contains("t.json is a trace, not a recording"));
        assert!(messages(&document, Some(&trace)).contains("t.trace is a trace, not a recording"));
    }
}

#[test]
fn the_demo_makes_its_folder() {
    let small = Small::new();
    let folder = small.path("new/and/deeper");
    run(
        ["demo".into(), "--write".into(), OsString::from(&folder)],
        0,
    );
    assert!(folder.join("demo.trace").exists() && folder.join("demo.recording").exists());
}

/// A reader that stops early is no failure.
#[test]
fn a_reader_who_goes_away() {
    let small = Small::new();
    let load = testkit::Workload {
        requests: 4_000,
        ..testkit::Workload::new(testkit::Era::E)
    }
    .generate();
    load.file.write_to(small.path("t.trace")).expect("written");
    let forms = ["text", "spdk", "json", "ndjson", "csv"]
        .map(|form| small.args("trace", &["--format", form]));
    let others = [&["objects"][..], &["completions", "bash"], &["demo"]];
    let others = others.map(|args| args.iter().map(OsString::from).collect::<Vec<_>>());
    for args in forms
        .into_iter()
        .chain([small.args("latency", &[])])
        .chain(others)
    {
        let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let done = command.args(&args).stdout(writer).output().expect("run");
        let messages = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{args:?}: {messages}");
        assert!(
            !messages.contains("error") && !messages.contains("panic"),
            "{args:?}: {messages}"
        );
    }
}

#[test]
fn a_full_disk() {
    let small = Small::new();
    let others = [&["objects"][..], &["completions", "bash"], &["demo"]];
    let others = others.map(|args| args.iter().map(OsString::from).collect::<Vec<_>>());
    for args in [small.args("trace", &[]), small.args("latency", &[])]
        .into_iter()
        .chain(others)
    {
        let full = std::fs::File::create("/dev/full").expect("/dev/full");
        let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
        let done = command.args(&args).stdout(full).output().expect("run");
        let messages = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{args:?}: {messages}");
        assert!(
            messages.contains("standard output") && messages.contains("No space left"),
            "{args:?}: {messages}"
        );
    }
}
