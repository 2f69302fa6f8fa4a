//! Files of stacks, `--stacks FILE`: their forms, and the flame graph in a browser.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::kernel::{kernel, needs};
use crate::common::run::run;
use crate::report::browser::Browser;
use crate::run_stacks;

/// Script that prints two stacks among other lines.
const PRINTED: &str = r#"begin { printf("a;b;c 7\nother\na;d 3\n"); exit(); }"#;

/// Runs the script; returns standard output and the file.
fn written(dir: &Path, file: &str, words: &[&str]) -> (String, Vec<u8>) {
    let path = dir.join(file);
    let (out, _) = run(&[words, &["--stacks", path.to_str().unwrap()]].concat());
    (out, std::fs::read(path).unwrap_or_default())
}

#[test]
fn stacks_are_in_the_file_and_the_rest_is_printed() {
    let Some(_alone) = kernel() else { return };
    let temp = tempfile::tempdir().unwrap();
    let of = |file| written(temp.path(), file, &["-e", PRINTED]);
    let (out, folded) = of("x.folded");
    assert_eq!(out.trim(), "other");
    assert_eq!(String::from_utf8_lossy(&folded), "a;b;c 7\na;d 3\n");
    let (_, speedscope) = of("x.speedscope.json");
    let speedscope: Value = serde_json::from_slice(&speedscope).unwrap();
    assert_eq!(speedscope["profiles"][0]["weights"], json!([7, 3]));
    let (_, pprof) = of("x.pb.gz");
    assert_eq!(pprof[..2], [0x1f, 0x8b], "gzip");
    // Without a stack there is no file.
    let (_, nothing) = written(temp.path(), "none.html", &["-e", "begin { exit(); }"]);
    assert_eq!(nothing, b"");
}

#[test]
fn keys_of_maps_with_stacks_are_stacks() {
    let Some(_alone) = kernel() else { return };
    let temp = tempfile::tempdir().unwrap();
    let Some(program) = run_stacks::build(temp.path()) else {
        return;
    };
    let program = program.display().to_string();
    let script =
        format!("uprobe:{program}:leaf {{ @[comm, ustack] = count(); @n = count(); exit(); }}");
    let words = ["-e", script.as_str(), "-c", program.as_str()];
    let (out, folded) = written(temp.path(), "x.folded", &words);
    assert_eq!(out.trim(), "@n: 1");
    let folded = String::from_utf8_lossy(&folded).replace("inner;", "");
    assert_eq!(folded, "stack;[no code];main;middle;ends;leaf 1\n");
}

#[test]
fn calls_are_stacks_with_their_times() {
    let Some(_alone) = kernel() else { return };
    if !needs("sleep") {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("calls.folded");
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    command.args(["kernel-delay", "-s", "--stacks"]).arg(&path);
    let done = command.args(["--", "sleep", "0.3"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let folded = std::fs::read_to_string(&path).unwrap();
    let slept = folded
        .lines()
        .find(|line| line.contains(";clock_nanosleep;"));
    let (stack, nanos) = slept.and_then(|line| line.rsplit_once(' ')).expect(&folded);
    assert!(stack.starts_with("sleep;"), "{stack}");
    let nanos: u64 = nanos.parse().unwrap();
    assert!((300_000_000..60_000_000_000).contains(&nanos), "{nanos} ns");
}

#[test]
fn a_flame_graph_in_a_browser() {
    let Some(_alone) = kernel() else { return };
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let temp = tempfile::tempdir().unwrap();
    let (_, page) = written(temp.path(), "x.html", &["-e", PRINTED]);
    assert!(!page.is_empty());
    browser.open(&temp.path().join("x.html"), 1280);
    let count = |browser: &mut Browser, selector: &str| {
        browser.value(&format!("document.querySelectorAll({selector:?}).length"))
    };
    assert_eq!(count(&mut browser, "#graph rect"), 5);
    browser.value("const find = document.getElementById('find'); find.value = 'D'; find.dispatchEvent(new Event('input'))");
    assert_eq!(count(&mut browser, "#graph rect.hit"), 1);
    assert_eq!(
        browser.value("document.getElementById('found').textContent"),
        "30.00% in matching functions"
    );
    // The frame `b`, with the two that called it.
    browser.click("#graph rect[data-node='2']");
    assert_eq!(browser.value("location.hash"), "#frame=2");
    assert_eq!(count(&mut browser, "#graph rect.outer"), 2);
    assert_eq!(count(&mut browser, "#graph rect"), 4);
    browser.key("Escape");
    assert_eq!(browser.value("location.hash"), "");
    // A wrong address shows all.
    browser.value("location.hash = '#frame=99999999'");
    browser.wait("document.querySelectorAll('#graph rect').length === 5");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    assert!(browser.requests.iter().all(|url| url.starts_with("file:")));
}
