//! Systemd's units: how confined they are, and that they permit what dptrace does.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use testkit::kernel::skip_if_permitted;

use super::root;

/// Units of `packaging/`, with the system calls that `strace -f` showed for each beside those of
/// `@system-service`.
const UNITS: [(&str, &[&str]); 2] = [
    (
        "dptrace-serve.service",
        &["sched_setaffinity", "sched_setattr", "setpriority"],
    ),
    ("dptrace-record@.service", &[]),
];

/// Limit on the exposure of a unit, in tenths, as `systemd-analyze security` computes it.
const MAX_EXPOSURE: &str = "30";

/// System calls that both make, and few other programs.
const NEEDED_CALLS: &[&str] = &["bpf", "perf_event_open", "process_vm_readv", "pidfd_open"];

fn unit(name: &str) -> PathBuf {
    root().join("packaging").join(name)
}

/// Returns what `systemd-analyze` prints; `None`, with the reason, if it is not there.
fn analyzed(args: &[&str]) -> Option<(bool, String)> {
    let done = testkit::command("systemd-analyze").args(args).output();
    match done {
        Ok(done) => {
            let text = [done.stdout, done.stderr].concat();
            Some((
                done.status.success(),
                String::from_utf8_lossy(&text).into_owned(),
            ))
        }
        Err(error) => {
            skip_if_permitted("systemd-analyze", &error.to_string());
            None
        }
    }
}

#[test]
fn units_have_few_rights() {
    for (name, _) in UNITS {
        let path = unit(name).display().to_string();
        let threshold = format!("--threshold={MAX_EXPOSURE}");
        let args = [
            "security",
            "--offline=true",
            "--no-pager",
            &threshold,
            &path,
        ];
        let Some((is_confined, text)) = analyzed(&args) else {
            return;
        };
        assert!(text.contains("Overall exposure level"), "{text}");
        assert!(is_confined, "{name}: {text}");
    }
}

/// Returns the system calls that a group of systemd's contains.
fn group(name: &str) -> Option<BTreeSet<String>> {
    let (_, text) = analyzed(&["syscall-filter", "--no-pager", name])?;
    let mut calls = BTreeSet::new();
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|it| !it.is_empty() && !it.starts_with('#') && *it != name) {
        if line.starts_with('@') {
            calls.extend(group(line)?);
        } else {
            calls.insert(line.to_owned());
        }
    }
    Some(calls)
}

/// Returns the system calls that a unit permits: lines add to those before, or remove from them
/// (systemd.exec(5), "SystemCallFilter=").
fn permitted(text: &str) -> Option<BTreeSet<String>> {
    let mut calls = group("@default")?;
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("SystemCallFilter="));
    for line in lines {
        let (removes, names) = match line.strip_prefix('~') {
            Some(names) => (true, names),
            None => (false, line),
        };
        for name in names.split(' ') {
            let chosen = match name.strip_prefix('@') {
                Some(_) => group(name)?,
                None => BTreeSet::from([name.to_owned()]),
            };
            if removes {
                calls.retain(|it| !chosen.contains(it));
            } else {
                calls.extend(chosen);
            }
        }
    }
    Some(calls)
}

#[test]
fn units_permit_the_system_calls_that_dptrace_makes() {
    for (name, more) in UNITS {
        let text = fs::read_to_string(unit(name)).unwrap();
        let Some(permitted) = permitted(&text) else {
            return;
        };
        let missing: Vec<_> = NEEDED_CALLS
            .iter()
            .chain(more)
            .filter(|it| !permitted.contains(**it))
            .collect();
        assert!(missing.is_empty(), "{name} does not permit {missing:?}");
        // Groups are expanded: it is a list of what is permitted, and not of everything.
        for forbidden in ["io_uring_setup", "mount", "nice", "ptrace", "setuid"] {
            assert!(!permitted.contains(forbidden), "{name} permits {forbidden}");
        }
    }
}

#[test]
fn units_have_the_capabilities_that_the_documents_name() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    for (name, _) in UNITS {
        let text = fs::read_to_string(unit(name)).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("CapabilityBoundingSet="))
            .unwrap();
        for capability in line.split(' ') {
            assert!(page.contains(capability), "{name}: {capability}");
        }
    }
}
