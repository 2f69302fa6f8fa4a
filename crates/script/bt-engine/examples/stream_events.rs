//! Prints the programs that start on this machine, until you press Enter.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use bt_engine::{Event, PrintTo, Script};

const SCRIPT: &str = "tracepoint:sched:sched_process_exec {
    printf(\"%d %s\\n\", pid, str(args.filename));
}";

/// Writes a line for each program to `out`, until `stop` returns true. Returns the number of events
/// that were lost.
pub(crate) fn stream(
    stop: impl FnMut() -> bool,
    mut out: impl Write,
) -> Result<u64, Box<dyn std::error::Error>> {
    let session = Script::builder(SCRIPT).compile()?.load()?;
    let mut written = Ok(());
    let result = session.run_until(stop, |event| match event {
        Event::Printf {
            text,
            to: PrintTo::Output,
            ..
        } if written.is_ok() => written = out.write_all(text.as_bytes()),
        // Events of a later version, and failures in the script.
        other => eprintln!("{other:?}"),
    })?;
    written?;
    Ok(result.totals.lost)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    static DONE: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        // An error is an end, too.
        let _ = std::io::stdin().read(&mut [0]);
        DONE.store(true, Ordering::Relaxed);
    });
    let lost = stream(|| DONE.load(Ordering::Relaxed), std::io::stdout())?;
    eprintln!("{lost} events were lost");
    Ok(())
}
