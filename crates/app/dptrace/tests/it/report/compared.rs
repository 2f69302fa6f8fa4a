//! `dptrace report A B`: two captures compared.

use std::path::Path;

use serde_json::{Value, json};
use testkit::Record;

use super::browser::Browser;
use super::{Process, dptrace, printed, sample};
use crate::common::kernel::PROGRAM;
use crate::common::schema::validated;
use crate::common::small::{START, declared};

/// Time between two requests.
const PERIOD: u64 = 100_000;

/// Writes a trace of 400 requests. Each takes 10 us to its execution, and that long from there, with
/// some microseconds of noise; with `rdma`, there are 30 requests of another kind.
fn write_trace(path: &Path, device: u64, rdma: bool) {
    let mut trace = declared().slots(4_096);
    for nth in 0..400 {
        let at = START + nth * PERIOD;
        let request = |id, tsc| Record::new(id, tsc).owner(256).object(0xa000 + nth);
        let executing = at + 10_000 + nth * 7 % 11 * 100;
        let completed = executing + device + nth * 5 % 13 * 1_000;
        trace.record(0, request(320, at).int(1));
        trace.record(0, request(321, executing).size(512));
        trace.record(0, request(322, completed).int(0));
    }
    for nth in 0..if rdma { 30 } else { 0 } {
        let at = START + nth * PERIOD;
        let request = |id, tsc| Record::new(id, tsc).object(0xc000 + nth).ptr(0xc0);
        trace.record(2, request(256, at));
        trace.record(2, request(257, at + 5_000));
    }
    std::fs::write(path, trace.build()).unwrap();
}

/// Makes a folder with a trace, one of a slower device, and one of other noise.
fn traces() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_trace(&dir.path().join("before"), 100_000, false);
    write_trace(&dir.path().join("after"), 400_000, true);
    write_trace(&dir.path().join("same"), 100_300, false);
    dir
}

#[test]
fn a_slower_stage_is_named_and_noise_is_not() {
    let dir = traces();
    let text = printed(&["report", "before", "after"], dir.path());
    let joined = text.replace('\n', " ");
    assert!(
        joined.contains(
            "TCP_REQ: median 116 us -> 416 us (3.6 times), p99 123 us -> 423 us (3.4 times); the \
             mean is 300 us more; of it 300 us in EXECUTING -> COMPLETED"
        ),
        "{text}"
    );
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
    assert!(row("NEW -> EXECUTING").ends_with(" ~"), "{text}");
    assert!(
        row("  EXECUTING -> COMPLETED").contains("+300 us"),
        "{text}"
    );
    // 400 requests in 40 ms, in the captures' own lengths.
    assert!(row("TCP_REQ: A 400").contains("B 400 ("), "{text}");
    for note in [
        "A and B have no kernel events: stages are compared",
        "only B has 30 RDMA_REQ",
    ] {
        assert!(joined.contains(note), "{text}");
    }
    let same = printed(&["report", "before", "same"], dir.path());
    assert!(
        same.contains("(within the noise)") && !same.contains('+'),
        "{same}"
    );
}

#[test]
fn a_comparison_as_json_has_the_figures_of_latency() {
    let dir = traces();
    let lines = validated(&printed(
        &["report", "before", "after", "--json"],
        dir.path(),
    ));
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&line["kind"], &line["whole"]["p50"]["difference"]),
        (&json!("TCP_REQ"), &json!("change"))
    );
    for (file, key) in [("before", "a_ns"), ("after", "b_ns")] {
        let rows = super::lines(&printed(&["latency", file, "--json"], dir.path()));
        let whole = |row: &&Value| row["first"] == "TCP_REQ_NEW" && row["stage"] == "whole";
        let row = rows.iter().find(whole).unwrap();
        for name in ["p50", "p99"] {
            assert_eq!(line["whole"][name][key], row[format!("{name}_ns")]);
        }
        assert_eq!(line["whole"]["mean"][key], row["mean_ns"]);
    }
}

#[test]
fn what_is_not_for_two_captures_is_refused() {
    let dir = traces();
    let refused = |more: &[&str], expected: &str| {
        let args = [&["report", "before", "after"], more].concat();
        let done = dptrace(&args, dir.path());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    refused(&["same"], "or two to compare");
    for option in [
        "--all",
        "--ndjson",
        "--over=1ms",
        "--slowest=3",
        "--png=x.png",
    ] {
        let name = option.split('=').next().unwrap();
        refused(&[option], &format!("{name} is not for a comparison"));
    }
    refused(&["--perfetto", "x.pftrace"], "--perfetto is not for");
    refused(&["--text", "--parquet", "x"], "--parquet is not for");
    refused(&["-o", "before"], "before");
    assert!(!dir.path().join("x.png").exists() && !dir.path().join("x").exists());
}

#[test]
fn a_page_of_a_comparison_opens_without_a_script() {
    let dir = traces();
    printed(
        &["report", "before", "after", "-o", "compared.html"],
        dir.path(),
    );
    let page = std::fs::read_to_string(dir.path().join("compared.html")).unwrap();
    assert!(page.contains("script-src 'none'") && !page.contains("<script"));
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(&dir.path().join("compared.html"), 1280);
    let first = browser.value("document.querySelector('.first').textContent");
    assert!(
        first
            .as_str()
            .unwrap()
            .starts_with("TCP_REQ: median 116 us")
    );
    let cell = "[...document.querySelectorAll('td')].find(it => it.textContent === 'EXECUTING → COMPLETED').parentElement.cells[5].textContent";
    assert_eq!(browser.value(cell), "+300 us");
    assert_eq!(
        browser.value("document.documentElement.scrollWidth <= innerWidth"),
        true
    );
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn a_sample_differs_in_nothing_from_itself() {
    let dir = sample();
    let args = ["report", "demo.trace", "demo.trace", "--json"];
    let lines = validated(&printed(&args, dir.path()));
    assert!(lines.len() > 1);
    let text = serde_json::to_string(&lines).unwrap();
    assert!(!text.contains(r#""difference":"change""#), "{text}");
}

/// The takers of a request's time take all of it.
#[test]
fn takers_of_a_capture_take_the_whole_time() {
    let Some(_alone) = crate::common::kernel::kernel() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut command = testkit::command(PROGRAM);
    command.args(["demo-target", "--rate", "2000", "--for", "1m"]);
    command.current_dir(dir.path());
    let mut target = Process::start(command.stdout(std::process::Stdio::null()));
    target.wait_for("trace file");
    let pid = target.pid().to_string();
    let capture = ["capture", "-p", &pid, "--for", "1s", "-o", "it"];
    printed(&capture, dir.path());
    target.signal("INT");
    target.end();
    let lines = validated(&printed(&["report", "it", "it", "--json"], dir.path()));
    let requests = lines.iter().filter(|it| it["causes"] != json!([]));
    let mut compared = 0;
    for line in requests {
        let mean = super::nanos(&line["whole"]["mean"]["b_ns"]);
        let causes = line["causes"].as_array().unwrap().iter();
        let taken: u64 = causes.map(|it| super::nanos(&it["took"]["b_ns"])).sum();
        // Others have no row if they took less than a 200th.
        assert!(
            taken <= mean && taken * 100 > mean * 99,
            "{taken} {mean}: {line}"
        );
        compared += 1;
    }
    assert!(compared > 0, "{lines:?}");
}
