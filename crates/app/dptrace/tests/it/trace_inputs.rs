//! `dptrace trace`: the sources of a trace.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::common::small::Small;
use crate::common::{dptrace, printed};

/// Trace file in shared memory, removed when dropped.
struct Shared {
    app: String,
    path: PathBuf,
}

impl Shared {
    /// Creates `APP_trace.NAME`, of an application with a unique name.
    fn new(app: &str, name: &str) -> Self {
        let app = format!("dptrace_test_{app}_{}", std::process::id());
        let path = PathBuf::from(format!("/dev/shm/{app}_trace.{name}"));
        std::fs::write(&path, crate::common::small::builder().build())
            .expect("/dev/shm can be written to");
        Self { app, path }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn expected() -> String {
    printed(Small::new().args("trace", &[]))
}

/// Returns the same from JSON, which leaves out the time of the record that creates an object.
fn expected_of_json() -> String {
    expected().replace("time: 0.000    ", "")
}

#[test]
fn an_application_is_named_with_its_process_id() {
    let shared = Shared::new("pid", "pid4711");
    assert_eq!(
        printed(["trace", "-s", &shared.app, "-p", "4711"]),
        expected()
    );
    assert!(printed(["latency", "-s", &shared.app, "-p", "4711"]).contains("TCP_REQ_NEW"));
}

#[test]
fn an_application_is_named_with_its_shared_memory_id() {
    let shared = Shared::new("id", "7");
    assert_eq!(
        printed(["trace", "-s", &shared.app, "--shm-id", "7"]),
        expected()
    );
}

/// Sets the time of a shared file that many hours into the future: it is newer than those of other
/// tests.
fn make_newer(shared: &Shared, hours: u64) {
    let file = File::options()
        .write(true)
        .open(&shared.path)
        .expect("opened");
    let time = SystemTime::now() + Duration::from_hours(hours);
    file.set_modified(time).expect("its time is set");
}

#[test]
fn an_application_that_is_not_there_is_reported_with_those_that_are() {
    let shared = Shared::new("absent", "pid4711");
    // Of the files of processes that have ended, the newest alone is named.
    make_newer(&shared, 12);
    let done = dptrace()
        .args(["trace", "-s", &shared.app, "-p", "4712"])
        .assert()
        .code(1);
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        messages.contains(&format!("{}_trace.pid4712", shared.app)),
        "{messages}"
    );
    assert!(
        messages.contains(&format!("{}_trace.pid4711", shared.app)),
        "{messages}"
    );
}

#[test]
fn an_application_is_one_process_or_one_id() {
    dptrace().args(["trace", "-s", "nvmf"]).assert().code(2);
    dptrace().args(["trace", "-p", "99999999"]).assert().code(1);
    dptrace()
        .args(["trace", "-s", "nvmf", "-p", "1", "--shm-id", "1"])
        .assert()
        .code(2);
    dptrace()
        .args(["trace", "-s", "nvmf", "-p", "1", "-i", "x"])
        .assert()
        .code(2);
}

/// The newest file has the latest modification time; this test's file has one in the future, since
/// there may be others.
#[test]
fn without_any_input_the_newest_in_shared_memory_is_read() {
    let shared = Shared::new("newest", "pid1");
    make_newer(&shared, 24);
    for input in ["/dev/null", ""] {
        let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
        let stdin = if input.is_empty() {
            Stdio::piped()
        } else {
            File::open(input).expect("opened").into()
        };
        let done = command.arg("trace").stdin(stdin).output().expect("run");
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            expected(),
            "standard input {input:?}"
        );
        let messages = String::from_utf8_lossy(&done.stderr);
        assert!(
            messages.contains(&*shared.path.to_string_lossy()),
            "{messages}"
        );
    }
}

#[test]
fn standard_input_is_read_where_something_is_piped_into_it() {
    let small = Small::new();
    let json = printed(small.args("trace", &["--format", "json"]));
    let raw = crate::common::small::builder().build();
    for args in [&["trace"][..], &["trace", "-i", "-"]] {
        for (input, expected) in [
            (raw.clone(), expected()),
            (json.clone().into_bytes(), expected_of_json()),
        ] {
            let done = dptrace().args(args).write_stdin(input).assert().success();
            assert_eq!(
                String::from_utf8_lossy(&done.get_output().stdout),
                expected,
                "{args:?}"
            );
        }
    }
}

#[test]
fn standard_input_may_be_a_file() {
    let small = Small::new();
    for args in [&["trace"][..], &["trace", "-i", "-"]] {
        let input = File::open(small.path("t.trace")).expect("opened");
        let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
        let done = command.args(args).stdin(input).output().expect("run");
        assert!(done.status.success());
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            expected(),
            "{args:?}"
        );
    }
}

/// `spdk_trace -j` prints lines of its own before or after the document.
#[test]
fn text_around_the_document_does_not_matter() {
    let small = Small::new();
    let json = printed(small.args("trace", &["--format", "json"]));
    let around = format!(
        "Using newest trace file: /dev/shm/x\n{}Trace Size of lcore (0): 64\n",
        json.trim_end()
    );
    let done = dptrace()
        .arg("trace")
        .write_stdin(around)
        .assert()
        .success();
    assert_eq!(
        String::from_utf8_lossy(&done.get_output().stdout),
        expected_of_json()
    );
    assert!(done.get_output().stderr.is_empty());
}

/// Raw files and JSON are recognized by content, under any name.
#[test]
fn a_file_is_known_by_its_content() {
    let small = Small::new();
    let json = printed(small.args("trace", &["--format", "json"]));
    std::fs::write(small.path("really.json.trace"), json).expect("written");
    std::fs::write(
        small.path("really.raw.json"),
        crate::common::small::builder().build(),
    )
    .expect("written");
    for (name, expected) in [
        ("really.json.trace", expected_of_json()),
        ("really.raw.json", expected()),
    ] {
        assert_eq!(
            printed([
                "trace".into(),
                "-i".into(),
                small.path(name).into_os_string()
            ]),
            expected,
            "{name}"
        );
    }
}

/// The file of every era yields the same load with the same stages.
#[test]
fn files_of_every_era_are_read() {
    for era in testkit::Era::ALL {
        let generated = testkit::Workload {
            requests: 20,
            ..testkit::Workload::new(era)
        }
        .generate();
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("t");
        generated.file.write_to(&path).expect("written");
        let listed = printed(["trace", "-i", &path.to_string_lossy()]);
        assert_eq!(listed.lines().count(), generated.truth.len(), "era {era:?}");
        for survivor in &generated.truth {
            assert!(
                listed.contains(&survivor.tpoint),
                "era {era:?}: {}",
                survivor.tpoint
            );
        }
    }
}

/// SPDK's annotation script prints an object's name even if it is empty, and no blanks at the end
/// of a line.
#[test]
fn an_objects_empty_name_is_printed_as_the_annotation_script_does() {
    let text = r#"{"tsc_rate":1000000,"tpoints":[{"name":"NEW","id":1,"new_object":true,"args":[]},
        {"name":"DONE","id":2,"new_object":false,"args":[{"name":"n","type":0,"size":4}]}],"entries":[
        {"lcore":0,"tpoint":1,"tsc":1,"object":{"id":"","value":5}},
        {"lcore":0,"tpoint":2,"tsc":3,"object":{"id":"","value":5,"time":2},"args":[7]}]}"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    std::fs::write(&path, text).expect("it can be written");
    let out = printed(["trace", "-i", &path.display().to_string()]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].ends_with(" id:") && lines[1].ends_with(" id:              time: 2.000    n: 7"),
        "{out}"
    );
}
