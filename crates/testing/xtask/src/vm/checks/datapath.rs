//! Comparison of upcalls of the kernel's Open vSwitch with the counters of the datapath.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use xtask::{DatapathTruth, GuestAnswer, GuestCommand, TRUTH_OF_DATAPATH};

use super::{Check, Needs};

/// `EAGAIN` of `linux/errno.h` with its text: the listener has no room.
const EAGAIN: (u64, &str) = (11, "Resource temporarily unavailable");
/// `ECONNREFUSED` of `linux/errno.h` with its text: there is no listener.
const NOBODY_LISTENS: (u64, &str) = (111, "Connection refused");

/// Returns all checks.
pub(super) fn all() -> Vec<Check> {
    let check = |name, command: &[&str], needs, works: fn(&GuestAnswer) -> anyhow::Result<()>| {
        let argv = [&["datapath"], command].concat();
        Check::new(
            "Open vSwitch",
            name,
            GuestCommand::new(&argv).with_file(TRUTH_OF_DATAPATH),
            needs,
            works,
        )
    };
    vec![
        check(
            "`kernel-delay`: upcalls of a datapath, and the failed ones by error",
            &[
                "dptrace",
                "kernel-delay",
                "--json",
                "--sample-time",
                "300",
                "--",
                "datapath",
            ],
            &[Needs::Guest],
            reported,
        ),
        check(
            "the script `upcalls`: the same, by port",
            &["dptrace", "run", "-q", "upcalls", "-c", "datapath"],
            &[Needs::Guest, Needs::Release(5, 14)],
            printed,
        ),
    ]
}

fn truth_of(answer: &GuestAnswer) -> anyhow::Result<DatapathTruth> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    let truth = answer
        .file
        .as_deref()
        .context("the datapath wrote no truth")?;
    let truth: DatapathTruth = serde_json::from_str(truth).context("reading the truth")?;
    ensure!(
        truth.received > 0 && truth.lost > truth.unheard,
        "the datapath tried too little: {truth:?}"
    );
    Ok(truth)
}

fn reported(answer: &GuestAnswer) -> anyhow::Result<()> {
    let truth = truth_of(answer)?;
    let report: Value = serde_json::from_str(&answer.stdout).context("reading the report")?;
    let upcalls = &report["upcalls"];
    let errors = upcalls["errors"].as_array().context("no errors")?;
    let failed = |number: u64| {
        errors
            .iter()
            .find(|error| error["error"] == number)
            .map(|error| &error["count"])
    };
    let counted = (
        &upcalls["total"],
        &upcalls["successful"],
        &upcalls["failed"],
    );
    let [total, successful, failures] = [counted.0, counted.1, counted.2];
    ensure!(
        *total == truth.missed && *successful == truth.received && *failures == truth.lost,
        "{counted:?}, but {truth:?}"
    );
    let counted = (failed(EAGAIN.0), failed(NOBODY_LISTENS.0));
    let wanted = (
        Value::from(truth.lost - truth.unheard),
        Value::from(truth.unheard),
    );
    ensure!(
        counted == (Some(&wanted.0), Some(&wanted.1)),
        "{counted:?}, but {truth:?}"
    );
    let by_cpu = upcalls["cpus"]
        .as_array()
        .context("no CPUs")?
        .iter()
        .filter_map(|cpu| cpu["count"].as_u64());
    ensure!(
        by_cpu.sum::<u64>() == truth.missed,
        "by CPU {upcalls}, but {truth:?}"
    );
    Ok(())
}

fn printed(answer: &GuestAnswer) -> anyhow::Result<()> {
    let truth = truth_of(answer)?;
    let port = &truth.port;
    let lines = [
        format!("@all_upcalls[{port}, {port}, miss]: {}", truth.missed),
        format!("@all_failed[{}]: {}", EAGAIN.1, truth.lost - truth.unheard),
        format!("@all_failed[{}]: {}", NOBODY_LISTENS.1, truth.unheard),
    ];
    for line in lines {
        ensure!(
            answer.stdout.lines().any(|shown| shown == line),
            "no line {line:?}"
        );
    }
    let others = answer
        .stdout
        .lines()
        .filter(|line| line.starts_with("@all_"))
        .count();
    ensure!(others == 3, "{others} lines of sums instead of 3");
    Ok(())
}

#[cfg(test)]
mod self_test {
    use super::*;

    const TRUTH: &str = r#"{"missed":307,"lost":207,"received":100,"unheard":7,"port":"dp"}"#;

    fn answer(stdout: &str) -> GuestAnswer {
        GuestAnswer {
            status: Some(0),
            stdout: stdout.to_owned(),
            file: Some(TRUTH.to_owned()),
            ..GuestAnswer::default()
        }
    }

    #[test]
    fn a_wrong_count_is_a_failure() {
        let report = r#"{"upcalls":{"total":307,"successful":100,"failed":207,"cpus":[{"cpu":1,"count":307}],
            "errors":[{"error":11,"count":200},{"error":111,"count":7}]}}"#;
        reported(&answer(report)).unwrap();
        for (right, wrong) in [
            ("307,", "308,"),
            (":100", ":101"),
            (":207", ":206"),
            (":200", ":199"),
            (":7}", ":8}"),
        ] {
            assert!(
                reported(&answer(&report.replace(right, wrong))).is_err(),
                "{right}"
            );
        }
        let lines = "@all_upcalls[dp, dp, miss]: 307\n@all_failed[Connection refused]: 7\n\
                     @all_failed[Resource temporarily unavailable]: 200\n";
        printed(&answer(lines)).unwrap();
        assert!(printed(&answer(&lines.replace("307", "308"))).is_err());
        assert!(
            printed(&answer(&format!(
                "{lines}@all_upcalls[dp, dp, action]: 1\n"
            )))
            .is_err()
        );
    }
}
