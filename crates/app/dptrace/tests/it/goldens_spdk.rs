//! `--format spdk` and `--format json` compared with the output of each version's own `spdk_trace`
//! for the same file.

use crate::common::shared::{Sample, assert_same};
use crate::common::{dptrace, printed};
use serde_json::Value;

/// Versions whose printer leaves out records older than the first of the latest-starting lcore even
/// if no ring wrapped. `--common` does so only if one did, like newer versions.
const ALWAYS_COMMON: [&str; 5] = ["v21.10", "v22.09", "v23.05", "v24.09", "v26.01"];

fn trace(sample: &Sample, extension: &str, more: &[&str]) -> String {
    let path = sample.path(extension);
    printed(["trace", "-i", &path.to_string_lossy()].iter().chain(more))
}

/// Returns the number of our records that the version's own printer leaves out although no ring
/// wrapped: those before the first record of the lcore that began last.
fn left_out(sample: &Sample, lcores: &[u64]) -> usize {
    let path = sample.path("trace");
    let always = ALWAYS_COMMON
        .iter()
        .any(|version| path.parent().is_some_and(|p| p.ends_with(version)));
    if !always || !path.to_string_lossy().contains("nowrap") {
        return 0;
    }
    let mut seen = Vec::new();
    let mut latest = 0;
    for (at, lcore) in lcores.iter().enumerate() {
        if !seen.contains(lcore) {
            seen.push(*lcore);
            latest = at;
        }
    }
    latest
}

/// A line of the listing, with its times parsed out.
#[derive(Debug)]
struct Line {
    /// Thread name and lcore.
    head: String,
    time: f64,
    age: Option<f64>,
    rest: String,
}

impl Line {
    /// Parses `thread lcore: time rest`, where the thread's name may be blank.
    fn parse(line: &str) -> Option<Self> {
        let (head, behind) = line
            .split_once(": ")
            .filter(|(head, _)| head.ends_with(|c: char| c.is_ascii_digit()))?;
        let (time, rest) = behind.trim_start().split_once(' ')?;
        let time = time.parse().ok()?;
        let mut rest = rest.to_owned();
        let mut age = None;
        if let Some(at) = rest.find(" time:  ") {
            let number = at + " time:  ".len();
            let end = rest[number..]
                .find(' ')
                .map_or(rest.len(), |length| number + length);
            age = Some(rest[number..end].parse().ok()?);
            // The column is 16 wide: a longer number takes blanks from after it.
            let until = rest.len().min(number + 16);
            assert!(rest[end..until].trim().is_empty(), "{line}");
            rest.replace_range(number..until, "AGE");
        }
        Some(Self {
            head: head.to_owned(),
            time,
            age,
            rest,
        })
    }

    fn lcore(&self) -> u64 {
        self.head
            .rsplit(' ')
            .next()
            .and_then(|lcore| lcore.parse().ok())
            .expect("an lcore")
    }
}

/// Returns the line with `N/A` padded to the 17 columns of an object's id if an argument follows.
/// v23.05 forgot that padding; the other versions have it.
fn padded(line: &str) -> String {
    match line.split_once(" id:    N/A") {
        Some((head, args)) if args.starts_with(|c: char| c.is_ascii_alphabetic()) => format!(
            "{head} id:    {:<17} {args}",
            "N/A"
        )
        .replacen("N/A               ", "N/A              ", 1),
        _ => line.to_owned(),
    }
}

/// Compares within SPDK's precision. It computes times in 32-bit floats, which keep 24 bits of a
/// number, in five steps (ticks, times 1000 twice, rate, quotient), and prints three decimals.
fn is_near(exact: f64, float: f64) -> bool {
    (exact - float).abs() <= exact.abs() * 5.0 / f64::from(1 << 24) + 0.001
}

#[test]
fn the_spdk_format_is_spdk_traces_listing_with_exact_times() {
    for sample in Sample::with(&[], &["txt"]) {
        let (ours, theirs) = (
            trace(&sample, "trace", &["--format", "spdk", "--common"]),
            sample.text("txt"),
        );
        let head = |text: &str| {
            text.lines()
                .filter(|l| Line::parse(l).is_none())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(head(&ours), head(&theirs), "{sample:?}");
        let ours: Vec<_> = ours.lines().filter_map(Line::parse).collect();
        let theirs: Vec<_> = theirs
            .lines()
            .filter_map(|line| Line::parse(&padded(line)))
            .collect();
        let skipped = left_out(&sample, &ours.iter().map(Line::lcore).collect::<Vec<_>>());
        assert_eq!(ours.len() - skipped, theirs.len(), "{sample:?}");
        // If the oldest slot of a wrapped ring is a leftover of an overwritten record, SPDK counts
        // from its time; dptrace counts from the first record shown.
        let base = ours[skipped].time - theirs[0].time;
        assert!(
            theirs[0].time == 0.0 || !sample.path("trace").to_string_lossy().contains("nowrap"),
            "{sample:?}"
        );
        for (at, (line, wanted)) in ours[skipped..].iter().zip(&theirs).enumerate() {
            assert_eq!(
                (&line.head, &line.rest),
                (&wanted.head, &wanted.rest),
                "{sample:?}, record {at}"
            );
            assert!(
                is_near(line.time - base, wanted.time),
                "{sample:?}, record {at}: {line:?}, not {wanted:?}"
            );
            let ages = (line.age.unwrap_or(-1.0), wanted.age.unwrap_or(-1.0));
            assert!(
                is_near(ages.0, ages.1),
                "{sample:?}, record {at}: {line:?}, not {wanted:?}"
            );
        }
    }
}

/// Compares values including the order of their members, which `==` of two JSON objects ignores.
#[track_caller]
fn assert_same_json(ours: &Value, theirs: &Value, what: &dyn std::fmt::Debug) {
    assert_eq!(ours.to_string(), theirs.to_string(), "{what:?}");
}

#[test]
fn the_json_format_has_spdk_traces_fields_in_their_order() {
    for sample in Sample::with(&[], &["json"]) {
        let ours = trace(&sample, "trace", &["--format", "json", "--common"]);
        let mut ours: Value = serde_json::from_str(&ours).expect("JSON");
        let text = sample.text("json");
        let theirs = serde_json::Deserializer::from_str(&text)
            .into_iter::<Value>()
            .next();
        let theirs = theirs.expect("a document").expect("JSON");
        let document = ours.as_object_mut().expect("an object");
        // Our JSON has the owners and their properties even if the version's JSON has not (v24.09).
        document.shift_remove("annotations");
        let has_owners = theirs.get("owners").is_some();
        if !has_owners {
            document.shift_remove("owners");
        }
        let names = |value: &Value| {
            value
                .as_object()
                .expect("an object")
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&ours), names(&theirs), "{sample:?}");
        for name in ["tsc_rate", "tpoints", "owners"] {
            assert_same_json(&ours[name], &theirs[name], &(&sample, name));
        }
        let theirs = theirs["entries"].as_array().expect("entries");
        let ours = ours["entries"].as_array_mut().expect("entries");
        let lcores: Vec<_> = ours
            .iter()
            .map(|entry| entry["lcore"].as_u64().expect("an lcore"))
            .collect();
        let skipped = left_out(&sample, &lcores);
        assert_eq!(ours.len() - skipped, theirs.len(), "{sample:?}");
        for (at, (entry, wanted)) in ours[skipped..].iter_mut().zip(theirs).enumerate() {
            if !has_owners {
                entry
                    .as_object_mut()
                    .expect("an object")
                    .shift_remove("owner");
            }
            assert_same_json(entry, wanted, &(&sample, at));
        }
    }
}

fn trace_stdin(input: &str) -> String {
    let done = dptrace()
        .args(["trace", "-i", "-"])
        .write_stdin(input)
        .assert()
        .success();
    String::from_utf8_lossy(&done.get_output().stdout).into_owned()
}

#[test]
fn json_goes_through_our_json_unchanged() {
    for sample in Sample::with(&[], &["json"]) {
        let again = trace(&sample, "json", &["--format", "json"]);
        assert_same(&trace_stdin(&again), &trace(&sample, "json", &[]), &sample);
    }
}

/// The annotations are part of the document: read without the recording, it prints the same as with
/// it.
#[test]
fn annotated_json_reads_back_annotated() {
    for sample in Sample::with(&["v23.05"], &["json", "bpftraces"]) {
        let recording = sample.path("bpftraces");
        let recording = recording.to_string_lossy();
        let annotated = trace(&sample, "trace", &["-b", &recording, "--format", "json"]);
        let expected = trace(&sample, "json", &["-b", &recording]);
        assert!(
            expected.contains("qpair(ptr=0x"),
            "{sample:?} has something to annotate"
        );
        assert_same(&trace_stdin(&annotated), &expected, &sample);
        let again = trace(&sample, "json", &["-b", &recording, "--format", "json"]);
        assert_same(&trace_stdin(&again), &expected, &sample);
    }
}
