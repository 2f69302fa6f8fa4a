//! Counts the system calls of a program while it runs: `count_syscalls ls -l`.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

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
    let target = Target::Command {
        program,
        arguments: words.collect(),
    };

    // A mistake in a script is an `Error::Script`, whose text shows the place.
    let mut session = Script::builder(SCRIPT).target(target).compile()?.load()?;
    session.attach()?;
    while !session.is_over() {
        // This script prints nothing while it runs; the output of another one comes here.
        for event in session.poll(Duration::from_millis(50))? {
            writeln!(out, "{event:?}")?;
        }
    }
    for table in session.finish()?.maps {
        for (call, count) in &table.rows {
            writeln!(out, "{call}: {count}")?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    count(std::env::args_os().skip(1), std::io::stdout())
}
