//! A C program and its library, built from one source: with -DLIBRARY it is the library, otherwise
//! the program.

use tempfile::TempDir;

/// Builds `NAME` and `libNAME.so` from `tests/SOURCE`, with `spec.toml` beside them.
#[track_caller]
pub(crate) fn build(name: &str, source: &str, program_flags: &[&str], spec: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let source = format!("{}/tests/it/{source}", env!("CARGO_MANIFEST_DIR"));
    let library = format!("lib{name}.so");
    for arguments in [
        &["-DLIBRARY", "-shared", "-fPIC", "-o", &library],
        &[&["-o", name], program_flags].concat()[..],
    ] {
        let mut compiler = testkit::command("gcc");
        compiler
            .args(["-O1", "-Wall", "-Werror", &source])
            .args(arguments)
            .current_dir(&dir);
        assert!(compiler.status().expect("gcc runs").success());
    }
    std::fs::write(dir.path().join("spec.toml"), spec).expect("it is ours");
    dir
}
