//! Prints the first hits of a process's static probe: `usdt_events PID PROVIDER:PROBE [COUNT]`.

use std::io::Write;
use std::time::Duration;

use bt_engine::{Event, Script, Target};

/// Writes the hits for `words` to `out`.
pub(crate) fn listen(
    words: &[String],
    mut out: impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let [pid, probe, rest @ ..] = words else {
        return Err("usage: usdt_events PID PROVIDER:PROBE [COUNT]".into());
    };
    let wanted: usize = rest.first().map_or(Ok(10), |count| count.parse())?;

    // `print()` of a tuple hands out its values with their types.
    let text = format!("usdt:*:{probe} {{ print((tid, comm, nsecs)); }}");
    let mut session = Script::builder(&text)
        .target(Target::Pid(pid.parse()?))
        .compile()?
        .load()?;
    session.attach()?;

    let mut seen = 0;
    while seen < wanted && !session.is_over() {
        for event in session.poll(Duration::from_millis(50))?.take(wanted - seen) {
            if let Event::Value(value) = event {
                writeln!(out, "{value}")?;
                seen += 1;
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    listen(&words, std::io::stdout())
}
