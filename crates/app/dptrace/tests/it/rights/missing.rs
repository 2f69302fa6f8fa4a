//! Rights that are missing, and the advice that comes with it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Granted, NOTHING, Other, mode, shared};
use crate::common::kernel::{kernel, skip};
use crate::common::small::Small;

/// The recipe without rights to files.
const NO_FILES: &str = "cap_bpf,cap_perfmon,cap_sys_ptrace+ep";

#[test]
fn without_rights_to_files_tracepoints_are_not_permitted() {
    let Some(_guard) = kernel() else { return };
    let Some(granted) = Granted::new(NO_FILES) else {
        return;
    };
    let other = Other::start(&granted.path("other"));
    let (status, all) = granted.run(["list", "-p", &other.pid()]);
    assert_eq!(status, 3, "{all}");
    let small = Small::new();
    let (trace, app) = shared("no");
    std::fs::copy(small.path("t.trace"), &trace.0).expect("copied");
    mode(&trace.0, 0o600);
    let (status, all) = granted.run(["trace", "-s", &app, "-p", "1"]);
    assert_eq!(status, 3, "{all}");
    mode(&granted.path("other"), 0o755);
    assert!(
        granted
            .works(["list", "-p", &other.pid()])
            .contains("spdk:")
    );
    assert!(
        granted
            .works(["record", "-p", &other.pid(), "--for", "200ms"])
            .contains("the time is up")
    );
    let tracing = Path::new("/sys/kernel/tracing");
    let is_open = tracing
        .metadata()
        .is_ok_and(|folder| folder.permissions().mode() & 0o005 != 0);
    if is_open && tracing.join("events").exists() {
        return skip("tracefs", "all users may read it here");
    }
    for args in [
        vec!["list", "--tracepoints"],
        vec!["run", "-l", "tracepoint:*"],
        vec!["run", "-l", "tracepoint:sched:sched_switch"],
        vec!["run", "-e", "tracepoint:sched:sched_switch { exit() }"],
        vec!["run", "-e", "tracepoint:sched:* { exit() }"],
    ] {
        let (status, all) = granted.run(&args);
        assert_eq!(status, 3, "{args:?}: {all}");
        assert!(all.contains("tracefs"), "{args:?}: {all}");
    }
}

/// A user without rights, or with some of them, gets advice on all at once; missing rights are not
/// reported as a mistake in the script.
#[test]
fn a_missing_permission_comes_with_advice() {
    let Some(_guard) = kernel() else { return };
    for (has, may_load) in [
        (NOTHING, false),
        ("cap_bpf+ep", false),
        ("cap_bpf,cap_perfmon+ep", true),
    ] {
        let Some(granted) = Granted::new(has) else {
            return;
        };
        let other = Other::start(&granted.path("other"));
        let pid = other.pid();
        // All CPUs: none is left for dptrace itself, which a note would say.
        let cpus = format!("0-{}", testkit::last_cpu());
        let mut refused = vec![
            vec!["list", "-p", &pid],
            vec!["run", "-p", &pid, "-e", "begin { exit() }"],
            vec!["record", "-p", &pid],
        ];
        if !may_load {
            refused.extend([
                vec!["run", "-e", "begin { exit() }"],
                vec!["kernel-delay", "-p", &pid],
                vec!["top", "--once", "-p", &pid],
                vec!["cpus", &cpus],
            ]);
        }
        let tracepoints = [
            vec!["run", "-e", "tracepoint:sched:sched_switch { exit() }"],
            vec!["run", "execs"],
            vec!["run", "-l", "tracepoint:*"],
            vec!["list", "--tracepoints"],
        ];
        if granted.run(["list", "--tracepoints"]).0 == 0 {
            skip("tracefs", "all users may read it here");
        } else {
            refused.extend(tracepoints);
        }
        for args in refused {
            let (status, all) = granted.run(&args);
            assert_eq!(status, 3, "{has} {args:?}: {all}");
            let recipe = "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep";
            let advice = format!("\n    {recipe} {}\n", granted.program().display());
            assert!(
                all.contains("run dptrace as root, or ") && all.contains(&advice),
                "{has} {args:?}: {all}"
            );
            // Neither of its sources can be had, and one text says how to get both.
            let is_once = args[0] != "top" || all.matches(recipe).count() == 1;
            assert!(is_once, "{has} {args:?}: {all}");
            // What did not begin needs no notes.
            let is_alone = args[0] != "cpus" || all.starts_with("error: ");
            assert!(is_alone, "{has} {args:?}: {all}");
            assert!(
                !all.contains("mistake") && all.matches("error: ").count() == 1,
                "{has} {args:?}: {all}"
            );
        }
    }
}

/// The program's capabilities do not apply to files that the user names, so the advice does not
/// mention them.
#[test]
fn a_file_of_others_in_a_script_is_no_mistake() {
    let Some(_guard) = kernel() else { return };
    let Some(granted) = Granted::new(NOTHING) else {
        return;
    };
    let secret = granted.secret("secret", b"\x7fELF");
    for kind in ["uprobe", "usdt"] {
        let (status, all) = granted.run([
            "run",
            "-e",
            &format!("{kind}:{}:main {{ exit() }}", secret.display()),
        ]);
        assert!(
            status == 3 && all.contains("Permission denied: run dptrace as root, or as a user who"),
            "{all}"
        );
        assert!(!all.contains("mistake") && !all.contains("setcap"), "{all}");
    }
}
