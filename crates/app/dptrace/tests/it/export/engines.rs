//! SQL engines as Python packages: `duckdb`, installed by `.ci/run`, and `chdb`, installed by
//! `cargo xtask deep peers`.

use std::path::Path;
use std::process::{Command, Stdio};

use testkit::kernel::skip_if_permitted;

/// Folder of packages installed for tests, in addition to the machine's.
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/python");

fn command() -> Command {
    let mut command = testkit::command("python3");
    let others = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let paths = std::iter::once(PACKAGES.into()).chain(std::env::split_paths(&others));
    command.env(
        "PYTHONPATH",
        std::env::join_paths(paths).expect("paths without a colon"),
    );
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    command
}

/// Runs a script of this folder with DuckDB; returns its output. `None` if the engine is missing;
/// with `DPTRACE_REQUIRE_ENGINES`, that is a failure.
#[track_caller]
pub(crate) fn python(script: &str, args: &[&str], dir: &Path) -> Option<String> {
    with_engines("duckdb", script, args, dir)
}

/// Runs a script with these packages, named as in `import`.
#[track_caller]
pub(crate) fn with_engines(
    engines: &str,
    script: &str,
    args: &[&str],
    dir: &Path,
) -> Option<String> {
    let import = format!("import {engines}");
    let is_there = command()
        .args(["-c", &import])
        .output()
        .is_ok_and(|done| done.status.success());
    if !is_there {
        let required = std::env::var_os("DPTRACE_REQUIRE_ENGINES").is_some();
        assert!(
            !required,
            "{engines} are required, and Python does not find them"
        );
        skip_if_permitted("engines", &format!("Python has no {engines}"));
        return None;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/export")
        .join(script);
    let done = command()
        .arg(path)
        .args(args)
        .current_dir(dir)
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{script} {args:?}: {errors}");
    Some(String::from_utf8(done.stdout).expect("UTF-8"))
}
