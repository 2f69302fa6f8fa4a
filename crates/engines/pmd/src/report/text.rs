//! The report as text.

use std::fmt::Write as _;

use ordering::Order as _;
use screen::{counted, time};
use text::printable;

use super::{Report, ThreadReport};
use crate::{ExplainedStretch, Figures, Queue};

/// Limit on the stretches listed of each thread.
const MAX_LISTED_STRETCHES: usize = 3;
/// Limit on the causes named of a stretch, and on the threads that had a CPU.
const MAX_NAMED_CAUSES: usize = 4;
/// Settings shown.
const SETTINGS: [&str; 13] = [
    "pmd-cpu-mask",
    "pmd-perf-metrics",
    "pmd-rxq-assign",
    "pmd-rxq-isolate",
    "pmd-sleep-max",
    "pmd-maxsleep",
    "pmd-auto-lb",
    "pmd-auto-lb-load-threshold",
    "pmd-auto-lb-improvement-threshold",
    "pmd-auto-lb-rebal-interval",
    "dpdk-lcore-mask",
    "smc-enable",
    "tx-flush-interval",
];

/// Formats the report.
pub(super) fn report(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut out, report);
    out
}

fn write(out: &mut String, report: &Report) -> std::fmt::Result {
    for thread in &report.threads {
        writeln!(out, "{}", thread.sentence(&report.names))?;
    }
    for thread in &report.threads {
        writeln!(out)?;
        write_thread(out, thread, report)?;
    }
    for (port, counters) in &report.ports.0 {
        let counters: Vec<String> = counters
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        writeln!(out, "\nport {port} of DPDK: {}", counters.join(", "))?;
    }
    write_settings(out, report)
}

fn write_thread(out: &mut String, thread: &ThreadReport, report: &Report) -> std::fmt::Result {
    let on = thread
        .thread
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    writeln!(
        out,
        "{} [{}]{on}, {}",
        thread.thread.name,
        thread.thread.tid,
        time(report.nanos)
    )?;
    let mut slow: Vec<&ExplainedStretch> = thread.slow.iter().flatten().collect();
    slow.order_by_key(|explained| std::cmp::Reverse(explained.stretch.length()));
    for explained in slow.iter().take(MAX_LISTED_STRETCHES) {
        write_stretch(out, explained, report)?;
    }
    writeln!(out, "  time: {}", budget(thread))?;
    if let Some(figures) = &thread.figures {
        write_figures(out, figures)?;
    }
    if !thread.queues.is_empty() {
        let queues: Vec<String> = thread.queues.iter().map(queue).collect();
        let isolated = if thread.is_isolated == Some(true) {
            ", isolated"
        } else {
            ""
        };
        writeln!(out, "  queues{isolated}: {}", queues.join(", "))?;
    }
    Ok(())
}

/// Writes a stretch with its causes.
fn write_stretch(
    out: &mut String,
    explained: &ExplainedStretch,
    report: &Report,
) -> std::fmt::Result {
    // Threads of one name count as one.
    let mut named: Vec<(String, u64)> = Vec::new();
    for (cause, nanos) in &explained.shares {
        let name = report.names.cause(*cause);
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => *all += nanos,
            None => named.push((name, *nanos)),
        }
    }
    named.order_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    let shares: Vec<String> = named
        .iter()
        .take(MAX_NAMED_CAUSES)
        .map(|(name, nanos)| format!("{name} {}", time(*nanos)))
        .collect();
    let stretch = &explained.stretch;
    let why = if shares.is_empty() {
        "nothing that the kernel did".to_owned()
    } else {
        shares.join(", ")
    };
    let row = &stretch.row;
    let upcalls = if row.upcalls > 0 {
        format!(", {}", counted(row.upcalls, "upcall"))
    } else {
        String::new()
    };
    let goes_on = if stretch.goes_on { " so far" } else { "" };
    writeln!(
        out,
        "  {} ms{goes_on}: {}: {why}; {}, {}{upcalls}",
        stretch.length(),
        report.names.cause(explained.cause),
        counted(row.iterations, "iteration"),
        counted(row.packets, "packet"),
    )
}

/// Formats the time budget, in percent.
fn budget(thread: &ThreadReport) -> String {
    let (off, all) = (&thread.off, thread.off.all().max(1) as f64);
    let takers = thread
        .takers
        .iter()
        .take(MAX_NAMED_CAUSES)
        .map(|(name, nanos)| format!("{name} {}", time(*nanos)));
    let takers = takers.collect::<Vec<_>>().join(", ");
    let places = [
        ("own code", off.own),
        ("system calls", off.in_calls),
        ("waited for the CPU", off.waited),
        ("stopped", off.stopped),
        ("interrupts", off.interrupted),
        ("blocked", off.blocked),
        ("asleep", off.asleep),
        ("unknown", off.unknown),
    ];
    let part = |(name, nanos): (&str, u64)| {
        let who = if name.starts_with("waited") && !takers.is_empty() {
            format!(" ({takers})")
        } else {
            String::new()
        };
        format!("{name} {}{who}", screen::percent(nanos as f64 / all, 1))
    };
    let parts: Vec<String> = places
        .into_iter()
        .filter(|(_, nanos)| *nanos > 0)
        .map(part)
        .collect();
    parts.join(", ")
}

fn write_figures(out: &mut String, figures: &Figures) -> std::fmt::Result {
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| screen::percent(share, 1))
    };
    let cycles = |cycles: Option<f64>| {
        cycles.map_or_else(|| "-".to_owned(), |cycles| format!("{cycles:.0}"))
    };
    writeln!(out, "  {:<18}{:>12}{:>12}", "", "as it says", "true")?;
    writeln!(
        out,
        "  {:<18}{:>12}{:>12}",
        "busy",
        percent(figures.said_busy()),
        percent(figures.true_busy())
    )?;
    let (said, so) = (
        figures.said_cycles_per_packet(),
        figures.true_cycles_per_packet(),
    );
    writeln!(
        out,
        "  {:<18}{:>12}{:>12}",
        "cycles a packet",
        cycles(said),
        cycles(so)
    )?;
    let counters = &figures.counters;
    let counts = [
        ("packets", counters.packets),
        ("iterations", counters.iterations),
        ("upcalls", counters.upcalls),
        ("lost upcalls", counters.lost_upcalls),
        ("sent", counters.sent),
        ("batches", counters.batches),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter_map(|(name, count)| Some(format!("{name} {}", count?)))
        .collect();
    writeln!(out, "  {}", counts.join(", "))
}

fn queue(queue: &Queue) -> String {
    let percent = queue.percent.map_or_else(String::new, |percent| {
        format!(" {}", screen::percent(f64::from(percent) / 100.0, 0))
    });
    format!(
        "{}:{}{percent}",
        printable::text(queue.port.as_bytes()),
        queue.queue
    )
}

fn write_settings(out: &mut String, report: &Report) -> std::fmt::Result {
    let settings = report
        .settings
        .iter()
        .flatten()
        .filter(|(name, _)| SETTINGS.contains(&name.as_str()));
    let shown: Vec<String> = settings
        .map(|(name, value)| format!("{name}={}", printable::text(value.as_bytes())))
        .collect();
    if report.settings.is_some() || !report.advice.is_empty() {
        writeln!(out, "\nSettings")?;
    }
    if !shown.is_empty() {
        writeln!(out, "  {}", shown.join(" "))?;
    }
    for line in &report.advice {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}
