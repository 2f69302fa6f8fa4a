//! Table of parts: command, requirements and concerned paths of each.

use std::process::Command;
use std::time::{Duration, Instant};

use super::tests::{Repetition, run_marked};
use super::{Outcome, packages};
use crate::suite::{self, LoadSample, SEED_VARIABLE, run_limited};

/// Part of the deep check.
pub(crate) struct Part {
    /// Name on the command line, and in `#[ignore = "deep NAME: .."]`.
    pub(super) name: &'static str,
    /// Description, for people.
    pub(super) about: &'static str,
    /// Time limit.
    pub(super) limit: Duration,
    /// Debian packages that it needs.
    packages: &'static [&'static str],
    /// Prefixes of the paths that it concerns.
    paths: &'static [&'static str],
    body: fn(Deadline) -> anyhow::Result<Outcome>,
}

/// End of a part's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Returns the remaining time.
    pub(super) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// All parts, in the order in which they run: the short ones first.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "deny",
        about: "licences, sources, duplicates and advisories of dependencies",
        limit: Duration::from_mins(15),
        packages: &[],
        paths: &["Cargo.lock", "deny.toml"],
        body: deny,
    },
    Part {
        name: "publish",
        about: "bt-engine and its crates as packages for crates.io, each built from its package",
        limit: Duration::from_mins(30),
        packages: &[],
        paths: &["Cargo.", "crates/script/", "crates/INTERNAL.md"],
        body: super::release::publish,
    },
    Part {
        name: "aarch64",
        about: "the lints on the other machine",
        limit: Duration::from_mins(20),
        packages: &[],
        paths: &[
            "crates/bpf/bpf-insn/",
            "crates/app/demo-target/",
            "crates/machine/elf/",
            "crates/base/sys/",
            "crates/machine/symbolize/",
            "crates/base/uapi/",
            "crates/machine/usdt/",
        ],
        body: aarch64,
    },
    Part {
        name: "truth",
        about: "tests that judge time, shares and the scheduler: three times each, by the median",
        limit: Duration::from_hours(1),
        packages: &[
            "bpftool",
            "postgresql-15",
            "bpftrace",
            "llvm",
            "tmux",
            "iproute2",
        ],
        paths: &[
            "crates/bpf/",
            "crates/formats/bt-lang/",
            "crates/script/",
            "crates/engines/",
            "crates/app/",
            "crates/machine/host/",
            "crates/formats/spdk-trace",
            "crates/base/sys/",
            "scripts/",
        ],
        body: |deadline| run_marked("truth", Repetition::Median, None, deadline),
    },
    Part {
        name: "peers",
        about: "tests beside programs that the gate does not install",
        limit: Duration::from_mins(30),
        packages: &[
            "babeltrace2",
            "dpdk-dev",
            "prometheus",
            "openvswitch-switch-dpdk",
            "openvswitch-switch",
            "dpdk",
        ],
        paths: &[
            "crates/formats/ctf/",
            "crates/engines/export/",
            "crates/engines/serve/",
            "crates/formats/metrics/",
            "crates/engines/pmd/",
            "crates/formats/tables/",
            "packaging/",
            "queries/",
        ],
        body: peers,
    },
    Part {
        name: "soak",
        about: "tests whose verdict always holds, and whose length finds what is rare",
        limit: Duration::from_mins(45),
        packages: &["bpftool"],
        paths: &[
            "crates/engines/live-objects/",
            "crates/bpf/bpf-session/",
            "crates/formats/bt-lang/",
            "crates/script/",
            "crates/app/dptrace/",
            "crates/formats/spdk-trace",
        ],
        body: |deadline| run_marked("soak", Repetition::Once, None, deadline),
    },
    Part {
        name: "again",
        about: "the gate's tests ten times, with more and with fewer of them at a time",
        limit: Duration::from_hours(1),
        packages: &[],
        paths: &["crates/testing/testkit/", "crates/testing/xtask/src/suite/"],
        body: super::again::run,
    },
    Part {
        name: "random",
        about: "property tests with a new seed, and generated scripts",
        limit: Duration::from_mins(45),
        packages: &[],
        paths: &[
            "crates/bpf/bpf-insn/",
            "crates/testing/bpf-interp/",
            "crates/formats/bt-lang/",
            "crates/script/",
            "crates/engines/capture/",
            "crates/testing/compiler-testkit/",
            "crates/formats/spdk-trace",
            "crates/testing/testkit/",
            "crates/machine/usdt/",
        ],
        body: random,
    },
    Part {
        name: "fuzz",
        about: "each fuzz target for 20 seconds",
        limit: Duration::from_mins(40),
        packages: &[],
        paths: &[
            "fuzz/",
            "crates/formats/bt-lang/",
            "crates/script/",
            "crates/engines/capture/",
            "crates/formats/ctf/",
            "crates/machine/elf/",
            "crates/machine/kernel-text/",
            "crates/formats/objects/",
            "crates/formats/perfetto/",
            "crates/engines/pmd/",
            "crates/formats/page/",
            "crates/formats/spdk-trace",
            "crates/machine/typeinfo/",
            "crates/machine/usdt/",
        ],
        body: fuzz,
    },
    Part {
        name: "dist",
        about: "the release: fat LTO, static, at most 12 MiB, archive and packages; its demo runs",
        limit: Duration::from_mins(40),
        packages: &["libcap2-bin"],
        paths: &[
            "Cargo.",
            "crates/app/dptrace/Cargo.toml",
            "crates/testing/xtask/src/dist/",
            "packaging/",
        ],
        body: super::release::dist,
    },
    Part {
        name: "install",
        about: "Debian's package on a fresh Debian: program, man pages, completion, removal",
        limit: Duration::from_hours(1),
        packages: &["debootstrap", "rpm"],
        paths: &[
            "crates/app/dptrace/Cargo.toml",
            "crates/testing/xtask/src/dist/",
        ],
        body: super::release::install,
    },
    Part {
        name: "kernels",
        about: "the matrix of kernels in virtual machines",
        limit: Duration::from_hours(1),
        packages: &["qemu-system-x86"],
        paths: &[
            "crates/bpf/",
            "crates/formats/bt-lang/",
            "crates/script/",
            "crates/engines/cpus/",
            "crates/app/dptrace/",
            "crates/machine/host/",
            "crates/engines/kernel-",
            "crates/engines/live-objects/",
            "crates/base/sys/",
            "crates/testing/xtask/src/vm/",
            "scripts/",
        ],
        body: |deadline| xtask(&["vm", "5.10", "6.1", "6.12"], deadline),
    },
    Part {
        name: "starve",
        about: "threads of the real-time class, in a virtual machine",
        limit: Duration::from_mins(30),
        packages: &["qemu-system-x86"],
        paths: &["crates/engines/cpus/", "crates/app/dptrace/src/cpus/"],
        body: |deadline| xtask(&["vm", "6.12", "--starve", "--only", "cpus"], deadline),
    },
];

impl Part {
    /// Installs the part's packages, and runs it.
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let deadline = Deadline(Instant::now() + self.limit);
        packages::install(self.packages, deadline.left())?;
        (self.body)(deadline)
    }

    /// Returns whether one of these files concerns the part.
    pub(super) fn is_touched_by(&self, files: &[String]) -> bool {
        files
            .iter()
            .any(|file| self.paths.iter().any(|start| file.starts_with(start)))
    }
}

/// Runs a command as a step of a part; prints its output if it failed.
pub(super) fn step(
    outcome: &mut Outcome,
    name: &str,
    command: &mut Command,
    deadline: Deadline,
) -> anyhow::Result<()> {
    let load = LoadSample::now();
    let ended = run_limited(command.current_dir(suite::root()), deadline.left())?;
    println!("{name}: {} ({})", ended.verdict(), load.until_now());
    if !ended.succeeded() {
        println!("{}", ended.output);
    }
    outcome.add(name, ended.succeeded());
    Ok(())
}

/// Returns cargo with these arguments.
pub(super) fn cargo(args: &[&str]) -> Command {
    let mut cargo = crate::cargo();
    cargo.args(args);
    cargo
}

fn xtask(args: &[&str], deadline: Deadline) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    step(
        &mut outcome,
        &args.join(" "),
        cargo(&["xtask"]).args(args),
        deadline,
    )?;
    Ok(outcome)
}

fn deny(deadline: Deadline) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    packages::install_cargo("deny", deadline.left())?;
    step(
        &mut outcome,
        "bans, licences, sources",
        &mut cargo(&["deny", "check", "bans", "licenses", "sources"]),
        deadline,
    )?;
    // The advisories are a foreign database, which not every machine can reach.
    if run_limited(
        cargo(&["deny", "fetch", "db"]).current_dir(suite::root()),
        deadline.left(),
    )?
    .succeeded()
    {
        step(
            &mut outcome,
            "advisories",
            &mut cargo(&["deny", "check", "advisories"]),
            deadline,
        )?;
    } else {
        println!("SKIPPED (advisories): their database cannot be fetched here");
    }
    Ok(outcome)
}

fn aarch64(deadline: Deadline) -> anyhow::Result<Outcome> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let mut outcome = Outcome::default();
    let mut rustup = Command::new("rustup");
    if !run_limited(rustup.args(["target", "add", TARGET]), deadline.left())?.succeeded() {
        println!("SKIPPED (aarch64): its standard library cannot be fetched here");
        return Ok(outcome);
    }
    let mut clippy = cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--target",
        TARGET,
        "--",
        "-D",
        "warnings",
    ]);
    step(&mut outcome, "clippy", &mut clippy, deadline)?;
    Ok(outcome)
}

fn peers(deadline: Deadline) -> anyhow::Result<Outcome> {
    packages::install_python(&["duckdb", "chdb", "chdb-core"], deadline.left())?;
    run_marked("peers", Repetition::Once, None, deadline)
}

fn random(deadline: Deadline) -> anyhow::Result<Outcome> {
    let seed = u64::from(std::process::id())
        ^ std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_secs());
    println!("{SEED_VARIABLE}={seed}");
    let mut outcome = run_marked("random", Repetition::Once, Some(seed), deadline)?;
    // Only the tests that compute: our seeds do not determine the kernel's behaviour.
    let mut tests = cargo(&[
        "test",
        "--workspace",
        "--no-fail-fast",
        "--exclude",
        "dptrace",
        "--lib",
        "--tests",
    ]);
    tests
        .env(SEED_VARIABLE, seed.to_string())
        .env("DPTRACE_NO_KERNEL_TESTS", "1")
        .env_remove("DPTRACE_REQUIRE_KERNEL_TESTS");
    step(&mut outcome, "property tests", &mut tests, deadline)?;
    Ok(outcome)
}

fn fuzz(deadline: Deadline) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    step(
        &mut outcome,
        "fuzz/smoke.sh 20",
        Command::new("fuzz/smoke.sh").arg("20"),
        deadline,
    )?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_the_parts_that_are_about_it() {
        let touched = |file: &str| -> Vec<&str> {
            PARTS
                .iter()
                .filter(|part| part.is_touched_by(&[file.to_owned()]))
                .map(|part| part.name)
                .collect()
        };
        assert_eq!(touched("Cargo.lock"), ["deny", "publish", "dist"]);
        assert_eq!(touched("crates/formats/ctf/src/lib.rs"), ["peers", "fuzz"]);
        assert_eq!(
            touched("crates/engines/cpus/src/audit/model.rs"),
            ["truth", "kernels", "starve"]
        );
        assert!(touched("docs/trace.md").is_empty());
    }
}
