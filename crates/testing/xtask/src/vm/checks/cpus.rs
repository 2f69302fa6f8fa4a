//! Checks of `dptrace cpus`: an audit of a CPU, also of a starved one.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use xtask::{GuestAnswer, GuestCommand};

use super::{Check, Known, Needs};

/// Tracepoints newer than the oldest kernel: their release, and the words of the report if they are
/// missing.
const NEWER: [((u32, u32), &str); 2] = [
    ((6, 4), "who sends interrupts for the scheduler (Linux 6.4"),
    ((6, 5), "requested them (Linux 6.5"),
];
/// Function of the work that `starve` queues for each CPU.
const STARVED: &str = "refresh_vm_stats";

/// Returns all checks; the one of a starved CPU only if `starve`.
pub(super) fn all(starve: bool) -> Vec<Check> {
    const GROUP: &str = "`cpus`";
    let command = GuestCommand::new(&["dptrace", "cpus", "0", "--for", "1s", "--json"]);
    let starved = GuestCommand::new(&["starve", "dptrace", "cpus", "0", "--for", "8s", "--json"]);
    let mut all = vec![
        Check::by_release(
            GROUP,
            "the budget adds up to the window, and what the kernel lacks is named with its release",
            command,
            &[],
            audited,
        ),
        Check::new(
            GROUP,
            "work that waits behind a thread with `SCHED_FIFO` is named while it waits",
            starved,
            &[Needs::Guest],
            named,
        ),
    ];
    all.truncate(if starve { all.len() } else { 1 });
    all
}

/// Returns the line of CPU 0, after checking that its budget adds up.
fn report(answer: &GuestAnswer) -> anyhow::Result<Value> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    let mut lines = answer.stdout.lines();
    let cpu: Value =
        serde_json::from_str(lines.next().context("no line")?).context("reading the report")?;
    ensure!(lines.next().is_none(), "more than one line for one CPU");
    let parts = cpu["budget"].as_array().context("no budget")?;
    let sum: u64 = parts.iter().filter_map(|part| part["ns"].as_u64()).sum();
    ensure!(
        sum > 0 && cpu["window_ns"] == sum,
        "the budget is {sum} of {}",
        cpu["window_ns"]
    );
    let rest = parts
        .iter()
        .find(|part| part["what"] == "rest")
        .context("no rest")?;
    ensure!(
        rest["ns"] == 0,
        "of the budget, {} ns are unexplained",
        rest["ns"]
    );
    Ok(cpu)
}

fn audited(known: &Known, answer: &GuestAnswer) -> anyhow::Result<()> {
    let cpu = report(answer)?;
    let missing = cpu["missing"]
        .as_array()
        .context("no list of what is missing")?;
    let is_said = |what: &str| {
        missing
            .iter()
            .any(|said| said.as_str().is_some_and(|said| said.contains(what)))
    };
    for (since, what) in NEWER {
        ensure!(
            is_said(what) == (known.release < since),
            "missing: {missing:?}, on {:?}",
            known.release
        );
    }
    let wanted = NEWER
        .iter()
        .filter(|(since, _)| known.release < *since)
        .count();
    ensure!(
        missing.len() == wanted,
        "missing: {missing:?}, on {:?}",
        known.release
    );
    ensure!(cpu["lost"]["counts"] == 0, "lost: {}", cpu["lost"]);
    Ok(())
}

/// Checks that the spinner is the poller, and that the work is named twice: while it waits, and as
/// a victim at the end.
fn named(answer: &GuestAnswer) -> anyhow::Result<()> {
    let cpu = report(answer)?;
    let poller = cpu["poller"]["name"].as_str().unwrap_or_default();
    ensure!(
        poller.starts_with("spinner ["),
        "the poller is {:?}",
        cpu["poller"]["name"]
    );
    let policy = &cpu["poller"]["thread"]["policy"];
    ensure!(*policy == "SCHED_FIFO 1", "the poller's policy is {policy}");
    let early = format!("CPU 0: work {STARVED} has been queued for");
    ensure!(
        answer.stderr.lines().any(|line| line.contains(&early)),
        "not said while it waits: {early}"
    );
    let victims = cpu["victims"].as_array().context("no victims")?;
    let matches = |victim: &&Value| {
        victim["name"]
            .as_str()
            .is_some_and(|name| name.starts_with(STARVED))
    };
    let victim = victims
        .iter()
        .find(matches)
        .with_context(|| format!("no victim {STARVED}"))?;
    ensure!(
        victim["waits_still_ns"].as_u64() > Some(1_000_000_000),
        "it waits for {}",
        victim["waits_still_ns"]
    );
    Ok(())
}

#[cfg(test)]
mod self_test {
    use super::*;
    use crate::vm::hardware::Architecture;

    const REPORT: &str = r#"{"budget":[{"what":"idle","ns":70},{"what":"rest","ns":0}],"window_ns":70,"lost":{"counts":0},
        "missing":["who sends interrupts for the scheduler (Linux 6.4 and later does)","who requested them (Linux 6.5 and later does)"],
        "poller":{"name":"spinner [7]","thread":{"policy":"SCHED_FIFO 1"}},
        "victims":[{"name":"refresh_vm_stats (mm_percpu_wq)","waits_still_ns":1500000000}]}"#;

    fn answer(report: &str) -> GuestAnswer {
        GuestAnswer {
            status: Some(0),
            stdout: report.replace('\n', ""),
            stderr: "[1.5 s] CPU 0: work refresh_vm_stats has been queued for 1.00 s and has not \
                 begun\n"
                .to_owned(),
            ..GuestAnswer::default()
        }
    }

    fn known(release: (u32, u32)) -> Known {
        Known {
            release,
            debians: Some(Architecture::X86_64),
            doctor: [].into(),
        }
    }

    #[test]
    fn inconsistent_or_unnamed_results_are_failures() {
        audited(&known((6, 1)), &answer(REPORT)).unwrap();
        named(&answer(REPORT)).unwrap();
        assert!(audited(&known((6, 12)), &answer(REPORT)).is_err());
        for (right, wrong) in [
            ("\"ns\":70", "\"ns\":69"),
            ("Linux 6.5", "Linux 6.6"),
            ("counts\":0", "counts\":1"),
        ] {
            assert!(
                audited(&known((6, 1)), &answer(&REPORT.replace(right, wrong))).is_err(),
                "{right}"
            );
        }
        for (right, wrong) in [
            ("spinner", "other"),
            ("FIFO 1", "FIFO 2"),
            ("refresh", "other"),
            (":1500", ":1"),
        ] {
            assert!(
                named(&answer(&REPORT.replace(right, wrong))).is_err(),
                "{right}"
            );
        }
        assert!(
            named(&GuestAnswer {
                stderr: String::new(),
                ..answer(REPORT)
            })
            .is_err()
        );
    }
}
