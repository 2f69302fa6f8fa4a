//! `dptrace cpus --check` on this machine: its findings depend on the machine, their form does not.

use std::sync::mpsc;
use std::thread;

use crate::common::{dptrace, printed};
use serde_json::Value;

/// Parses the objects that `--json` prints.
fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect()
}

#[test]
fn each_check_has_a_finding_as_text_and_as_json() {
    let text = printed(["cpus", "--check", "0"]);
    assert!(text.starts_with("CPU 0: "), "{text}");
    let findings = objects(&printed(["cpus", "--check", "0", "--json"]));
    assert_eq!(
        (&findings[0]["type"], &findings[0]["cpus"]),
        (&"cpus.checked".into(), &"0".into())
    );
    for key in [
        "isolcpus",
        "nohz-full",
        "rcu-nocbs",
        "irq-affinity",
        "rps",
        "workqueue",
        "shared-cpu",
        "real-time",
        "clocksource",
    ] {
        let finding = findings
            .iter()
            .find(|it| it["key"] == key)
            .unwrap_or_else(|| panic!("{key}: {findings:#?}"));
        assert!(
            finding["reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty()),
            "{finding}"
        );
        assert!(text.contains(key), "{key}: {text}");
    }
    let first = findings
        .iter()
        .find(|it| it["key"] == "cpu-0")
        .expect("CPU 0 is checked");
    assert_eq!(
        (&first["level"], &first["cpus"]),
        (&"yellow".into(), &"0".into())
    );
}

#[test]
fn strict_fails_if_a_finding_is_red() {
    let done = dptrace()
        .args(["cpus", "--check", "--strict", "--json", "0"])
        .assert()
        .get_output()
        .clone();
    let is_red = objects(&String::from_utf8_lossy(&done.stdout))
        .iter()
        .any(|it| it["level"] == "red");
    assert_eq!(done.status.code(), Some(i32::from(is_red)));
}

/// A thread pinned to one CPU is a poller of its process, running or not.
#[test]
fn a_pinned_thread_is_found() {
    let cpus = sys::sched::allowed_cpus().expect("the affinity");
    let [_, .., cpu] = cpus[..] else {
        testkit::kernel::skip_if_permitted(
            "CPUs",
            "there is one CPU, to which everything is pinned",
        );
        return;
    };
    let (ready, is_ready) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let pinned = thread::Builder::new()
        .name("polls here".into())
        .spawn(move || {
            testkit::stay_on_last_cpu();
            ready.send(()).expect("the test waits");
            let _ = ended.recv();
        });
    let pinned = pinned.expect("a thread");
    is_ready.recv().expect("it is pinned");
    let own = std::process::id().to_string();
    let found = objects(&printed(["cpus", "--check", "--json", "-p", &own]));
    let pollers = found[0]["pollers"].as_array().expect("pollers");
    let it = pollers
        .iter()
        .find(|it| it["name"] == "polls here")
        .unwrap_or_else(|| panic!("{pollers:#?}"));
    assert_eq!((&it["cpu"], &it["pinned"]), (&cpu.into(), &true.into()));
    assert!(
        found.iter().any(|it| it["key"] == "cpu-quota"),
        "its process is checked, too"
    );
    drop(end);
    pinned.join().expect("it ends");
}

#[test]
fn an_invalid_list_of_cpus_is_refused() {
    for (words, part) in [
        (&["cpus", "--check"][..], "no CPUs to check"),
        (&["cpus", "--check", "nvmf_tgt"], "is not a list of CPUs"),
        (&["cpus", "--check", "9999"], "CPU 9999 is not online"),
        (&["cpus", "--strict", "0"], "--check"),
    ] {
        let done = dptrace().args(words).assert().code(2).get_output().clone();
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(message.contains(part), "{words:?}: {message}");
    }
}
