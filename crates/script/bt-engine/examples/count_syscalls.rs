//! Counts the system calls of a program while it runs: `count_syscalls ls -l`.

use std::ffi::OsString;
use std::io::Write;

use bt_engine::{Script, Target};

const SCRIPT: &str = "tracepoint:raw_syscalls:sys_enter { @calls[@syscall[args.id]] = count(); }";

/// Counts the calls of the command in `words`, and writes them to `out`.
pub(crate) fn count(
    mut words: impl Iterator<Item = OsString>,
    mut out: impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let program = words
        .next()
        .ok_or("usage: count_syscalls PROGRAM [ARGUMENT]...")?;

    // A mistake in a script is an `Error::Script`, whose text shows the place.
    let session = Script::builder(SCRIPT)
        .target(Target::command(program, words))
        .compile()?
        .load()?;
    // The script sends no events; failures of its probes would be some.
    let result = session.run(|event| eprintln!("{event:?}"))?;
    for table in &result.maps {
        for (call, count) in &table.rows {
            writeln!(out, "{call}: {count}")?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    count(std::env::args_os().skip(1), std::io::stdout())
}
