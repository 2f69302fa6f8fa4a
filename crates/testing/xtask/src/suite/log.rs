//! Parser of the output of `cargo test`: the failed tests of each program, and their output.

use std::path::PathBuf;

use super::programs::TestProgram;

/// A failed test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Path of the program, relative to the workspace.
    pub(crate) program: PathBuf,
    /// Full name of the test.
    pub(crate) test: String,
    /// Output of the test.
    pub(crate) output: String,
}

impl Failure {
    /// Returns the program of this failure. Cargo names programs `NAME-HASH`, and runs them in the
    /// folder of their package.
    pub(crate) fn program_among<'a>(&self, programs: &'a [TestProgram]) -> Option<&'a TestProgram> {
        programs
            .iter()
            .find(|program| program.path.file_name() == self.program.file_name())
    }
}

/// A run of `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) failures: Vec<Failure>,
    /// Number of programs that printed a result.
    pub(crate) programs: usize,
    /// Lines that show other failures than tests: a program that broke off, a test that did not
    /// compile, a test in a doc comment.
    pub(crate) others: Vec<String>,
}

impl Log {
    /// Parses standard output and standard error of `cargo test --no-fail-fast`, in one stream.
    pub(crate) fn parse(text: &str) -> Self {
        let mut log = Self::default();
        let mut program: Option<PathBuf> = None;
        let mut output_of: Option<usize> = None;
        for line in text.lines() {
            let trimmed = line.trim_start();
            if let Some(running) = trimmed
                .strip_prefix("Running ")
                .filter(|_| line.starts_with("     "))
            {
                let path = running
                    .rsplit_once('(')
                    .and_then(|(_, path)| path.strip_suffix(')'));
                (program, output_of) = (path.map(PathBuf::from), None);
            } else if trimmed.starts_with("Doc-tests ") && line.starts_with("   ") {
                (program, output_of) = (None, None);
            } else if let Some(test) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.strip_suffix(" ... FAILED"))
            {
                // `name - should panic`
                let name = test.split(" - ").next().unwrap_or(test).to_owned();
                match program.clone() {
                    Some(program) => log.failures.push(Failure {
                        program,
                        test: name,
                        output: String::new(),
                    }),
                    None => log.others.push(line.to_owned()),
                }
            } else if let Some(test) = line
                .strip_prefix("---- ")
                .and_then(|rest| rest.strip_suffix(" stdout ----"))
            {
                output_of = log
                    .failures
                    .iter()
                    .rposition(|failure| failure.test == test);
            } else if line.starts_with("test result: ") || line == "failures:" {
                log.programs += usize::from(line.starts_with("test result: "));
                output_of = None;
            } else if line.contains("process didn't exit successfully")
                && !line.contains("exit status: 101")
                || line.starts_with("error: could not compile")
            {
                log.others.push(line.to_owned());
            } else if let Some(failure) = output_of.and_then(|at| log.failures.get_mut(at)) {
                failure.output.push_str(line);
                failure.output.push('\n');
            }
        }
        log
    }
}

/// Limit on the lines of a panic's message that a list of failures repeats.
const MESSAGE_LINES: usize = 4;
/// Limit on the characters of such a line.
const MESSAGE_WIDTH: usize = 300;

/// Returns the location and the start of the message of the first panic in an output, indented;
/// without a panic, the output's last line.
pub(crate) fn reason(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let begin = lines
        .iter()
        .position(|line| line.contains("panicked at"))
        .unwrap_or(lines.len().saturating_sub(1));
    let shown = lines.iter().skip(begin).take(MESSAGE_LINES);
    let indented = shown.map(|line| {
        format!(
            "    {}",
            line.chars().take(MESSAGE_WIDTH).collect::<String>()
        )
    });
    indented.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_first_panic() {
        let output =
            "some words\nthread 'a' panicked at b.rs:1:1:\nleft is not right\nnote: run with\n";
        assert_eq!(
            reason(output),
            "    thread 'a' panicked at b.rs:1:1:\n    left is not right\n    note: run with"
        );
        assert_eq!(
            (reason("one\ntwo\n"), reason("")),
            ("    two".into(), String::new())
        );
        let long = format!("panicked at {}", "é".repeat(MESSAGE_WIDTH));
        assert_eq!(reason(&long).chars().count(), MESSAGE_WIDTH + 4);
    }

    const TEXT: &str = "\
   Compiling elf v0.1.0 (/w/crates/machine/elf)
     Running unittests src/lib.rs (target/debug/deps/elf-01)

running 2 tests
test a::works ... ok
test a::breaks ... FAILED

failures:

---- a::breaks stdout ----

thread 'a::breaks' panicked at crates/machine/elf/src/lib.rs:1:1:
left is not right

failures:
    a::breaks

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p elf --lib`
     Running tests/it/main.rs (target/debug/deps/it-02)

running 1 test
test b::other ... FAILED
";

    #[test]
    fn failed_tests_are_found_with_their_programs_and_outputs() {
        let log = Log::parse(TEXT);
        let names: Vec<_> = log
            .failures
            .iter()
            .map(|it| (it.program.to_str().unwrap(), it.test.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("target/debug/deps/elf-01", "a::breaks"),
                ("target/debug/deps/it-02", "b::other")
            ]
        );
        assert!(
            log.failures[0].output.contains("left is not right"),
            "{log:?}"
        );
        assert_eq!((log.programs, log.others.len()), (1, 0));
    }

    #[test]
    fn a_failure_outside_tests_is_reported_separately() {
        let broke_off = "error: test failed\n\nCaused by:\n  process didn't exit successfully: `x` (signal: 6, SIGABRT)\n";
        let doc = "   Doc-tests elf\ntest crates/machine/elf/src/lib.rs - f (line 3) ... FAILED\n";
        for text in [
            broke_off,
            doc,
            "error: could not compile `elf` (lib) due to 1 previous error\n",
        ] {
            assert_eq!(Log::parse(text).others.len(), 1, "{text}");
        }
        let usual = "  process didn't exit successfully: `x` (exit status: 101)\n";
        assert!(Log::parse(usual).others.is_empty());
    }
}
