//! Last part of the demo: a target delays its requests on purpose and notes which; `dptrace
//! timeline` explains one of them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use console::interrupt::Interrupt;
use console::messages::{explained, note};
use console::own_process::{OwnProcess, Scratch};
use console::{output, terminal};
use demo_target::{InjectionTruth, Truth};
use screen::{counted, time};
use spdk_trace::Ticks;
use text::printable::{self, path as printable};
use timeline::KnownDelay;

use super::print;

/// Arguments of the target; a user repeats the demo with the same ones, for a longer time.
const TARGET: [&str; 5] = ["demo-target", "--inject", "preempt", "--rate", "20000"];
/// Further arguments used only here: the target waits until the capture has begun, and ends by
/// itself.
const EXTRA_TARGET_ARGS: [&str; 5] = [
    "--inject-every",
    "20ms",
    "--for",
    "600ms",
    "--wait-connected",
];
/// Time limit of the capture.
const CAPTURE_TIME_LIMIT: &str = "10s";

/// Shows the delayed request. If that is impossible here, reports the reason, without an error.
pub(super) fn show() -> anyhow::Result<()> {
    let interrupt = Interrupt::catch()?;
    match text(interrupt) {
        Ok(Some(text)) => print(&text),
        Ok(None) => Ok(()),
        Err(error) => {
            note(&format!(
                "a late request can't be explained here: {}",
                explained(&error)
            ));
            Ok(())
        }
    }
}

/// Returns the text to show. `None` if a signal came meanwhile.
fn text(interrupt: Interrupt) -> anyhow::Result<Option<String>> {
    let folder = Scratch::new("demo")?;
    let [truth, capture] = ["truth.json", "late.capture"].map(|name| folder.file(name));
    if !record(&folder, &truth, &capture, interrupt)? {
        return Ok(None);
    }
    let truth = fs::read(&truth).with_context(|| format!("reading {}", printable(&truth)))?;
    let truth: Truth = serde_json::from_slice(&truth).context("reading the target's own notes")?;
    let nanos = |ticks: u64| {
        u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(truth.tsc_rate.max(1)))
    };
    let delayed = |it: &InjectionTruth| {
        let request = it.requests.first()?;
        let (stage, since) = (request.stage.clone(), Ticks(request.since));
        // Connections of TCP have names in the trace.
        let is_preferred = request.owner != 0;
        Some(KnownDelay {
            stage,
            since,
            is_preferred,
            nanos: ran(it).or_else(|| nanos(it.taken).ok())?,
        })
    };
    let known: Vec<(KnownDelay, &InjectionTruth)> = truth
        .injections
        .iter()
        .filter_map(|it| Some((delayed(it)?, it)))
        .collect();
    let delays: Vec<&KnownDelay> = known.iter().map(|(delayed, _)| delayed).collect();
    let Some(explained) = timeline::explain(
        &capture,
        &delays,
        output::screen(None),
        &terminal::observer(),
    )?
    else {
        bail!(
            "none of the {} that the target delayed was captured completely",
            counted(delays.len() as u64, "request")
        )
    };
    let (delayed, injection) = &known[explained.delay_index];
    let target = TARGET.join(" ");
    let commands = format!(
        "$ dptrace {target} &\n$ dptrace capture -p $! --for 1s -o late.capture\n$ dptrace \
         timeline late.capture"
    );
    Ok(Some(format!(
        "\n{commands}\n{}{}",
        explained.text,
        noted(delayed, injection)
    )))
}

/// Returns how long the thread that took the CPU ran, in nanoseconds.
fn ran(injection: &InjectionTruth) -> Option<u64> {
    injection.by.as_ref()?.ran
}

/// Formats the target's own note of a delay.
fn noted(delayed: &KnownDelay, injection: &InjectionTruth) -> String {
    let who = injection.by.as_ref().map_or("it", |by| by.comm.as_str());
    let who = printable::text(who.as_bytes());
    let on = injection
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    format!(
        "truth: by the target's own notes, {who} ran for {}{on} meanwhile\n",
        time(delayed.nanos)
    )
}

/// Runs the target, captures it, and waits for both; returns false if a signal came meanwhile.
fn record(
    folder: &Scratch,
    truth: &Path,
    capture: &Path,
    interrupt: Interrupt,
) -> anyhow::Result<bool> {
    let args = TARGET
        .iter()
        .chain(&EXTRA_TARGET_ARGS)
        .map(OsStr::new)
        .chain(["--truth".as_ref(), truth.as_os_str()]);
    let mut target = OwnProcess::start("target", folder, args, Stdio::piped())?;
    if !target.wait_for("demo-target: pid", interrupt)? {
        return Ok(false);
    }
    let pid = target.pid().to_string();
    let args = [
        "capture",
        "-p",
        &pid,
        "--no-probes",
        "--for",
        CAPTURE_TIME_LIMIT,
        "-o",
    ]
    .map(OsStr::new);
    let mut recorder = OwnProcess::start(
        "capture",
        folder,
        args.into_iter().chain([capture.as_os_str()]),
        Stdio::null(),
    )?;
    if !recorder.wait_for("capturing process", interrupt)? {
        return Ok(false);
    }
    // Closing its input lets the target begin.
    target.close_input();
    Ok(target.wait(interrupt)? && recorder.wait(interrupt)?)
}
