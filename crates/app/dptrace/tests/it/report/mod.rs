//! `dptrace report`: its figures are those of `dptrace latency`, and a real browser shows them.

pub(crate) mod browser;
mod browsing;
mod compared;
mod looks;
mod steering;

use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::kernel::{PROGRAM, Process};
use serde_json::Value;
use tempfile::TempDir;

fn dptrace(args: &[&str], dir: &Path) -> Output {
    let mut command = testkit::command(PROGRAM);
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[track_caller]
fn printed(args: &[&str], dir: &Path) -> String {
    let done = dptrace(args, dir);
    assert!(
        done.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Makes a folder with the demo's sample, and a report of it.
fn sample() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    printed(
        &["demo", "--write", dir.path().to_str().unwrap()],
        dir.path(),
    );
    printed(&["report", "demo.trace", "-o", "report.html"], dir.path());
    dir
}

fn page(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("report.html")).unwrap()
}

/// Returns the data that the scripts of a page read.
pub(crate) fn data(page: &str) -> Value {
    let data = page
        .split_once("id=\"data\">")
        .unwrap()
        .1
        .split_once("</script>")
        .unwrap()
        .0;
    serde_json::from_str(data).unwrap()
}

fn nanos(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Returns the figures of a line of `latency --json`, in the page's order.
fn figures(line: &Value) -> Vec<u64> {
    let of = [
        "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns",
    ];
    [line["count"].as_u64().unwrap()]
        .into_iter()
        .chain(of.iter().map(|name| nanos(&line[name])))
        .collect()
}

/// Returns the same figures from the page.
fn shown(it: &Value) -> Vec<u64> {
    let number = |value: &Value| value.as_u64().unwrap();
    let quantiles = it["p"].as_array().unwrap().iter().map(number);
    [number(&it["n"]), number(&it["mean"])]
        .into_iter()
        .chain(quantiles)
        .chain([number(&it["max"])])
        .collect()
}

/// Compares all figures of a page with the output of `dptrace latency` for the same file, from the
/// start of the page's charts.
#[track_caller]
fn compare(data: &Value, file: &str, dir: &Path) {
    let since = (data["offset"].as_u64().unwrap() as f64 / 1_000.0).to_string();
    let of = |what: &[&str]| {
        lines(&printed(
            &[&["latency", file, "--since", &since, "--json"], what].concat(),
            dir,
        ))
    };
    let groups = data["groups"].as_array().unwrap();
    let printed_lines = of(&[]);
    let mut compared = 0;
    // Requests that wait by design have tables of their own there.
    for line in printed_lines
        .iter()
        .filter(|line| line["excluded"].is_null())
    {
        let group = groups
            .iter()
            .find(|group| group["first"] == line["first"])
            .unwrap();
        let found = if line["stage"] == "whole" {
            assert_eq!(group["unfinished"], line["unfinished"]);
            group["whole"].clone()
        } else {
            let wanted = serde_json::json!([line["stage"]["from"], line["stage"]["to"]]);
            let stages = group["stages"].as_array().unwrap();
            stages
                .iter()
                .find(|it| stage(data, &it[0]) == wanted)
                .unwrap()[1]
                .clone()
        };
        if line["count"] != 0 {
            assert_eq!(shown(&found), figures(line), "{line}");
        }
        compared += 1;
    }
    let count = groups
        .iter()
        .map(|group| group["stages"].as_array().unwrap().len() + 1)
        .sum::<usize>();
    assert_eq!(compared, count, "nothing else is in the page");
    compare_connections(data, &of(&["--summary"]));
}

/// Returns a stage by its number in a page.
fn stage(data: &Value, number: &Value) -> Value {
    data["stages"][number.as_u64().unwrap() as usize].clone()
}

/// Compares the connections of a page with the rows of `latency --summary`.
#[track_caller]
fn compare_connections(data: &Value, rows: &[Value]) {
    let groups = data["groups"].as_array().unwrap();
    let connections = data["connections"].as_array().unwrap();
    assert!(!connections.is_empty());
    for connection in connections {
        let group = &groups[connection["group"].as_u64().unwrap() as usize];
        let matches = |row: &&Value| {
            row["group"]["qpair"] == connection["name"]
                && row["first"] == group["first"]
                && row["excluded"] == connection["excluded"]
        };
        let row = rows
            .iter()
            .find(matches)
            .unwrap_or_else(|| panic!("no row of {connection}"));
        let whole = shown(&connection["whole"]);
        if row["count"] != 0 {
            let expected = ["p50_ns", "p99_ns", "max_ns"].map(|name| nanos(&row[name]));
            assert_eq!([whole[2], whole[4], whole[6]], expected, "{row}");
        }
        assert_eq!(
            (whole[0], &connection["unfinished"]),
            (row["count"].as_u64().unwrap(), &row["unfinished"])
        );
        let most = &row["most_of_p99"];
        if !most.is_null() {
            assert_eq!(
                stage(data, &connection["most"][0]),
                serde_json::json!([most["from"], most["to"]])
            );
        }
    }
}

#[test]
fn figures_are_those_of_latency() {
    let dir = sample();
    let page = page(dir.path());
    let data = data(&page);
    compare(&data, "demo.trace", dir.path());
    // Each complete request that is no I/O of a block device is in one cell.
    let cells = data["heat"]["cells"].as_array().unwrap();
    let requests: u64 = cells
        .iter()
        .skip(2)
        .step_by(3)
        .map(|count| count.as_u64().unwrap())
        .sum();
    let is_request = |group: &&Value| group["name"].as_str().unwrap().ends_with("_REQ");
    let groups = data["groups"].as_array().unwrap().iter().filter(is_request);
    let whole: u64 = groups
        .map(|group| group["whole"]["n"].as_u64().unwrap())
        .sum();
    assert!(
        requests > 0 && requests.abs_diff(whole) <= 2,
        "{requests}, {whole}"
    );
    assert!(
        !page.contains("id=\"who\"") && page.contains("without the kernel") && page.len() < 1 << 20
    );
}

#[test]
fn a_page_goes_where_it_is_asked_to_go() {
    let dir = sample();
    assert!(printed(&["report", "demo.trace", "-o", "-"], dir.path()) == page(dir.path()));
    let itself = dptrace(&["report", "demo.trace", "-o", "demo.trace"], dir.path());
    let both = dptrace(
        &["report", "demo.trace", "-o", "a.html", "--svg", "b.svg"],
        dir.path(),
    );
    let no_chart = dptrace(&["report", "demo.trace", "--chart", "heat"], dir.path());
    let two = dptrace(
        &["report", "demo.trace", "--png", "a.png", "--svg", "b.svg"],
        dir.path(),
    );
    assert_eq!(
        [itself, both, no_chart, two].map(|done| done.status.code()),
        [Some(2); 4]
    );
    for chart in ["heat", "percentiles", "waterfall"] {
        let svg = printed(
            &["report", "demo.trace", "--svg", "-", "--chart", chart],
            dir.path(),
        );
        assert!(
            svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n") && !svg.contains("var("),
            "{chart}: {svg}"
        );
        assert!(
            !svg.contains("NaN") && !svg.contains("inf"),
            "{chart}: {svg}"
        );
        printed(
            &[
                "report",
                "demo.trace",
                "--png",
                "chart.png",
                "--chart",
                chart,
            ],
            dir.path(),
        );
        let png = std::fs::read(dir.path().join("chart.png")).unwrap();
        // The header states the width (PNG, 11.2.1).
        assert!(
            png.starts_with(b"\x89PNG\r\n\x1a\n") && png[16..20] == 1680_u32.to_be_bytes(),
            "{chart}"
        );
        assert!(
            png.len() > 10_000 && png.len() < 400_000 && png.ends_with(b"IEND\xae\x42\x60\x82"),
            "{}",
            png.len()
        );
    }
}
