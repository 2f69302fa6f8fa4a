//! Kernel tests of our crates, one command for each test.

use anyhow::ensure;
use xtask::{GuestAnswer, GuestCommand};

use super::{Check, Needs};
use crate::vm::build::TestProgram;

/// Number of random scripts for the verifier, and of those compared with their values: it takes a
/// hundred times longer under emulation.
const FEWER: [(&str, &str); 2] = [
    ("DPTRACE_TEST_SCRIPTS", "40"),
    ("DPTRACE_TEST_TRUTHS", "15"),
];
/// Variable that makes a test fail that can't run.
const REQUIRED: (&str, &str) = ("DPTRACE_REQUIRE_KERNEL_TESTS", "1");

/// Needs of a program's tests: the program, the prefix of the tests' names, and the needs.
const NEEDS: [(&str, &str, &[Needs]); 6] = [
    (
        "kernel_delay",
        "triggers::kernel_functions",
        &[Needs::Feature("kprobes", "CONFIG_KPROBES")],
    ),
    (
        "scripts",
        "iterators::functions_in_which",
        &[Needs::Feature("fentry", "fentry")],
    ),
    ("scripts", "language::flow", &[Needs::Release(5, 17)]),
    ("scripts", "language::strings", &[Needs::Release(5, 17)]),
    ("scripts", "language::aggregates", &[Needs::Release(5, 17)]),
    ("scripts", "language::scalar_maps", &[Needs::Release(5, 13)]),
];

/// Prefixes of the names of tests that only `cargo test` runs: the guests lack what they need.
const NOT_IN_GUESTS: [&str; 9] = [
    "triggers::triggers_of_a_command_are_found_in_its_libraries",
    // These need a compiler.
    "family::",
    "leaderless::",
    // These need control groups.
    "limits::",
    "several::a_control_group_is_measured_as_a_whole",
    // This needs a shell.
    "several::a_command_is_measured_with_what_it_starts",
    // These need another user, and a kernel without kprobes.
    "mistakes::a_right_that_is_missing",
    "mistakes::a_function_without_a_type",
    // This needs time for seven targets at once.
    "eras::requests_of_every_era_and_transport",
];

/// Returns a check for each test.
pub(super) fn checks(program: &TestProgram) -> impl Iterator<Item = Check> + '_ {
    let is_for_guests = |case: &&String| {
        !NOT_IN_GUESTS
            .iter()
            .any(|beginning| case.starts_with(beginning))
    };
    program.cases.iter().filter(is_for_guests).map(|case| {
        let mut needs = NEEDS
            .iter()
            .filter(|(name, beginning, _)| *name == program.name && case.starts_with(beginning));
        let needs = needs.next().map_or(&[][..], |(.., needs)| *needs);
        let name = format!("{}{case}", program.prefix);
        let arguments = [
            program.name,
            "--exact",
            &name,
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
        ];
        let variables = FEWER.into_iter().chain([REQUIRED]);
        let command = variables.fold(GuestCommand::new(&arguments), |command, (name, value)| {
            command.with_variable(name, value)
        });
        let works = if program.name == "kernel_delay" {
            passed_whole
        } else {
            passed
        };
        Check::new(program.about, &readable(case), command, needs, works)
    })
}

/// Returns `triggers::static_probes_are_triggers` as a sentence.
fn readable(case: &str) -> String {
    case.rsplit("::").next().unwrap_or(case).replace('_', " ")
}

/// Checks that a test passed without a refusal, as a command that works on every kernel must. A
/// test of scripts has parts for which an old kernel lacks something, and reports these.
fn passed_whole(answer: &GuestAnswer) -> anyhow::Result<()> {
    let refused = answer
        .stdout
        .lines()
        .find_map(|line| line.split_once("REFUSED: "));
    ensure!(
        refused.is_none(),
        "refused: {}",
        refused.unwrap_or_default().1
    );
    passed(answer)
}

fn passed(answer: &GuestAnswer) -> anyhow::Result<()> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    ensure!(answer.stdout.contains("1 passed"), "no test ran");
    // Printed behind the test's name, or on a line of its own.
    let skipped = |text: &str| {
        text.lines()
            .any(|line| line.contains("SKIPPED") || line.starts_with("skipped"))
    };
    ensure!(
        !skipped(&answer.stdout) && !skipped(&answer.stderr),
        "skipped"
    );
    Ok(())
}
