//! `--mode bench`: probes that are run by hand and timed.

use std::time::{Duration, Instant};

use bpf_program::event::RING;
use bpf_session::Session;
use bt_abi::Attach;
use bt_abi::Script;
use bt_runtime::Printer;

use super::events::Event;
use crate::output::Output;

/// How long a benchmark runs at least.
const LEAST: Duration = Duration::from_millis(1);

/// Runs each benchmark until it has run for long enough. The time is that of a call from here: with the system call.
pub(super) fn bench(script: &Script, session: &Session, printer: Printer, mut output: Output) -> anyhow::Result<()> {
    output.buffer.extend(printer.benchmark_head().as_bytes());
    for probe in &script.probes {
        let Attach::Manual { name } = &probe.attach else { continue };
        let mut runs = 1_u64;
        let took = loop {
            let start = Instant::now();
            for _ in 0..runs {
                session.run(probe.program, &[])?;
            }
            let took = start.elapsed();
            // What it prints is not wanted here, and must not fill the ring.
            session.drain_now(RING, Event::of)?;
            if took >= LEAST {
                break took;
            }
            runs *= 2;
        };
        let average = took.as_nanos() / u128::from(runs);
        output.buffer.extend(printer.benchmark(name, average as u64, runs).as_bytes());
    }
    Ok(output.flush()?)
}
