//! Engines of SQL as Python has them: the packages `duckdb` and `chdb`, which `.ci/run` installs.

use std::path::Path;
use std::process::{Command, Stdio};

/// Packages that are installed for tests, beside what the machine has.
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python");

fn command() -> Command {
    let mut command = Command::new("python3");
    let others = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let paths = std::iter::once(PACKAGES.into()).chain(std::env::split_paths(&others));
    command.env("PYTHONPATH", std::env::join_paths(paths).expect("paths without a colon"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command
}

/// What a script of this folder prints; `None` if the engines are not here. With `DPTRACE_REQUIRE_ENGINES`, that is a failure.
#[track_caller]
pub(crate) fn python(script: &str, args: &[&str], dir: &Path) -> Option<String> {
    let is_there = command().args(["-c", "import duckdb, chdb"]).output().is_ok_and(|done| done.status.success());
    if !is_there {
        let required = std::env::var_os("DPTRACE_REQUIRE_ENGINES").is_some();
        assert!(!required, "DuckDB and chDB are required, and Python does not find them");
        println!("SKIPPED (engines): Python has no duckdb and chdb");
        return None;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export").join(script);
    let done = command().arg(path).args(args).current_dir(dir).output().expect("python3 runs");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{script} {args:?}: {errors}");
    Some(String::from_utf8(done.stdout).expect("UTF-8"))
}
