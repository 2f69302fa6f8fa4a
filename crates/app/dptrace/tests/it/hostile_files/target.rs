//! Programs with traps for debug files, built for each test.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::kernel::Process;

/// Placeholder in the source for the debug file's checksum.
const CHECKSUM: [u8; 4] = 0x5ec4_e7f1_u32.to_le_bytes();

/// A stripped program, `trap`; only its debug file names its function.
pub(crate) struct Trap {
    pub(crate) dir: TempDir,
}

/// Compiles the program with a function of this name.
pub(crate) fn compile(dir: &Path, name: &str, function: &str, flags: &[&str]) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hostile_files/trap.c");
    let program = dir.join(name);
    let mut compiler = testkit::command("gcc");
    compiler.args([
        "-O1",
        "-static",
        "-Wl,--build-id=0x5a5b5c5d5e5f",
        &format!("-DFUNCTION={function}"),
        source,
        "-o",
    ]);
    assert!(
        compiler
            .arg(&program)
            .args(flags)
            .status()
            .unwrap()
            .success()
    );
    program
}

/// Replaces bytes with others of the same length.
fn exchange(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let place = bytes
        .windows(old.len())
        .position(|window| window == old)
        .unwrap();
    bytes[place..place + old.len()].copy_from_slice(new);
}

impl Trap {
    /// Builds the program; returns it and the bytes of its debug file.
    pub(crate) fn build() -> (Self, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        // User nobody has to be able to enter.
        fs::set_permissions(
            dir.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let named = compile(dir.path(), "named", crate::hostile_files::NAME, &["-g"]);
        let debug = fs::read(&named).unwrap();
        fs::remove_file(named).unwrap();
        let program = compile(dir.path(), "trap", "never_named", &["-s"]);
        let mut bytes = fs::read(&program).unwrap();
        exchange(
            &mut bytes,
            &CHECKSUM,
            &crc32fast::hash(&debug).to_le_bytes(),
        );
        exchange(&mut bytes, b"\0.gnu_trap_link\0", b"\0.gnu_debuglink\0");
        testkit::write_program(&program, &bytes);
        (Self { dir }, debug)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts the program.
    pub(crate) fn start(&self) -> Process {
        let mut process = Process::start(&mut testkit::command(self.path("trap")));
        process.wait_for("ready");
        process
    }
}
