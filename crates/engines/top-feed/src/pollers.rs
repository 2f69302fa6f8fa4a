//! Pollers' part of each second: the counters of SPDK's pollers in the process's memory, read from
//! the first time on that somebody wants to see them.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::time::Instant;

use live_objects::alive::Value;
use live_objects::{Finder, Snapshot};
use text::printable;
use top::Poller;

use super::{Beat, Part};

/// Specs of pollers, and of the reactors' threads.
const SPECS: &str = include_str!("pollers.toml");
/// Name of the spec of the reactors' threads; the others are pollers.
const REACTOR_THREADS: &str = "lw_thread";
/// Limit on the distance of a `spdk_lw_thread` behind the begin of its `spdk_thread`.
const MAX_THREAD_BYTES: u64 = 4096;

/// Poller as it was read.
struct Counters {
    /// Address of the poller.
    address: u64,
    /// Address of its SPDK thread.
    thread: u64,
    thread_name: String,
    name: String,
    period: u64,
    runs: u64,
    busy: u64,
}

/// Reads the counters at the end of each second until the end of the feeds, and sends their rates.
pub(crate) fn run(pid: u32, beat: &Beat, parts: &Sender<Part>) -> anyhow::Result<()> {
    // Reading the debug information takes its time.
    let finder = Finder::open(pid, &objects::parse_specs(SPECS)?, &[])?;
    let names = finder.kinds().iter().map(|kind| kind.spec.name.as_str());
    let can_read = !finder.is_of_pointers() && names.clone().any(|name| name != REACTOR_THREADS);
    if !can_read {
        let why = finder.misfits().first();
        let why = why.map_or("the symbol g_threads is missing", String::as_str);
        anyhow::bail!("SPDK's pollers can't be found in its memory: {why}");
    }
    let mut second = beat.now();
    beat.wait_until(beat.end_of(second));
    let (mut read_at, mut ticks) = (Instant::now(), sys::clock::ticks());
    let (mut before, _) = counters(&finder, &finder.read_once());
    while !beat.is_over() {
        second = beat.now().max(second + 1);
        beat.wait_until(beat.end_of(second));
        if beat.is_over() {
            break;
        }
        let (now, reactors) = counters(&finder, &finder.read_once());
        let (read_now, ticks_now) = (Instant::now(), sys::clock::ticks());
        let seconds = (read_now - read_at).as_secs_f64();
        let tick_rate = (ticks_now - ticks) as f64 / seconds;
        let known: HashMap<u64, &Counters> = before.iter().map(|it| (it.address, it)).collect();
        let pollers = now.iter().filter_map(|it| {
            let earlier = known.get(&it.address)?;
            rates(earlier, it, seconds, tick_rate, &reactors)
        });
        if parts
            .send(Part::Pollers(second, pollers.collect()))
            .is_err()
        {
            break;
        }
        (before, read_at, ticks) = (now, read_now, ticks_now);
    }
    Ok(())
}

/// Returns the rates of a poller between two readings; `None` if another poller has its memory now.
fn rates(
    before: &Counters,
    now: &Counters,
    seconds: f64,
    tick_rate: f64,
    reactors: &[(u64, u64)],
) -> Option<Poller> {
    if (before.thread, &before.name) != (now.thread, &now.name) || now.runs < before.runs {
        return None;
    }
    let runs = now.runs - before.runs;
    let busy = now.busy.saturating_sub(before.busy).min(runs);
    let is_after = |place: u64| place > now.thread && place - now.thread <= MAX_THREAD_BYTES;
    let reactor = reactors.iter().find(|(place, _)| is_after(*place));
    Some(Poller {
        address: now.address,
        name: now.name.clone(),
        thread: now.thread_name.clone(),
        reactor: reactor.map(|(_, lcore)| format!("reactor_{lcore}")),
        runs: runs as f64 / seconds,
        busy: if runs == 0 {
            0.0
        } else {
            busy as f64 / runs as f64
        },
        period: (now.period > 0).then(|| (now.period as f64 / tick_rate * 1e9) as u64),
        taken: None,
        longest_wait: None,
    })
}

/// Returns the pollers of a reading, and the address of each `spdk_lw_thread` with its lcore.
fn counters(finder: &Finder, snapshot: &Snapshot) -> (Vec<Counters>, Vec<(u64, u64)>) {
    let (mut pollers, mut reactors) = (Vec::new(), Vec::new());
    for (kind, found) in finder.kinds().iter().zip(&snapshot.found) {
        let names = kind.compiled.names();
        for object in &found.objects {
            let value = |name: &str| {
                let at = names.iter().position(|it| it == name)?;
                object.values.get(at)
            };
            let number = |name| match value(name) {
                Some(Value::Int(number)) => *number,
                _ => 0,
            };
            let text = |name| match value(name) {
                Some(Value::Text(bytes)) => printable::text(bytes).into_owned(),
                _ => String::new(),
            };
            if kind.spec.name == REACTOR_THREADS {
                reactors.push((number("lw"), number("lcore")));
            } else {
                pollers.push(Counters {
                    address: number("poller"),
                    thread: number("address"),
                    thread_name: text("thread"),
                    name: text("name"),
                    period: number("period"),
                    runs: number("runs"),
                    busy: number("busy"),
                });
            }
        }
    }
    (pollers, reactors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, runs: u64, busy: u64) -> Counters {
        Counters {
            address: 0x5000,
            thread: 0x1000,
            thread_name: "app_thread".to_owned(),
            name: name.to_owned(),
            period: 2_000_000,
            runs,
            busy,
        }
    }

    #[test]
    fn rates_are_those_between_two_readings() {
        let reactors = [(0x900, 7), (0x1348, 1), (0x9000, 2)];
        let of = |before, now| rates(&before, &now, 2.0, 1e9, &reactors);
        let poller = of(read("accept", 100, 10), read("accept", 500, 110)).expect("the same");
        assert_eq!((poller.runs, poller.busy), (200.0, 0.25));
        assert_eq!(poller.period, Some(2_000_000));
        assert_eq!(poller.reactor.as_deref(), Some("reactor_1"));
        // Another poller at the same address, or one that began anew.
        assert_eq!(of(read("accept", 1, 0), read("other", 2, 0)), None);
        assert_eq!(of(read("accept", 9, 0), read("accept", 2, 0)), None);
        let idle = of(read("accept", 5, 5), read("accept", 5, 5)).expect("the same");
        assert_eq!((idle.runs, idle.busy), (0.0, 0.0));
    }
}
