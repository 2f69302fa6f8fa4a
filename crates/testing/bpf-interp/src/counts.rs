//! Number of instructions of each program, held against a file: a change must not make events
//! costlier unnoticed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bpf_insn::{Code, Listing};

/// Checks that programs have as many instruction slots as the lines in `expected` say:
/// `PROGRAM: SETTING COUNT SETTING COUNT ...`, sorted by program. Each program comes with its
/// setting and name.
///
/// If the variable `DPTRACE_LISTINGS` names a folder, the listings are written there for
/// comparison, as `ROOM SETTING PROGRAM.txt`.
///
/// # Panics
/// If a count differs; the message has the lines as they should be.
#[track_caller]
pub fn check_counts(
    room: &str,
    programs: impl IntoIterator<Item = (&'static str, String, Code)>,
    expected: &str,
) {
    let folder = std::env::var("DPTRACE_LISTINGS");
    let mut counts = BTreeMap::<String, String>::new();
    for (setting, program, code) in programs {
        if let Ok(folder) = &folder {
            let path = format!("{folder}/{room} {setting} {program}.txt");
            let written = std::fs::write(&path, Listing::new(&code).to_string());
            written.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        let line = counts.entry(program).or_default();
        let _ = write!(line, " {setting} {}", code.slots());
    }
    let lines = counts
        .iter()
        .map(|(program, counts)| format!("{program}:{counts}"));
    let actual = lines.collect::<Vec<String>>().join("\n");
    assert!(
        actual == expected.trim_end(),
        "the instruction counts should be:\n{actual}"
    );
}
