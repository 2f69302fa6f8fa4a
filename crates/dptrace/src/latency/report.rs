//! The report: tables for people, an object a line for programs.

use std::fmt::Write as _;

use spdk_trace::{Nanos, TickRate, Ticks, TpointTable};

use super::spread::Spread;
use super::stages::{Latencies, Life, Stage, Subject, Times};
use crate::trace::format::json_text::string;

/// What a report needs to know beside the times.
pub(crate) struct Names<'a> {
    pub(crate) tpoints: &'a TpointTable,
    pub(crate) rate: TickRate,
    /// The fields grouped by, as typed.
    pub(crate) by: &'a [String],
}

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Columns of a time in microseconds with three decimals.
const TIME_WIDTH: usize = 12;

impl Names<'_> {
    fn tpoint(&self, id: u16) -> &str {
        self.tpoints.get(id).map_or("?", |t| t.name.as_str())
    }

    /// `, FIELD=VALUE` for each field grouped by.
    fn group(&self, group: &[Option<Box<str>>]) -> String {
        let values = self.by.iter().zip(group);
        values.fold(String::new(), |text, (name, v)| format!("{text}, {name}={}", v.as_deref().unwrap_or("-")))
    }

    /// The same as a JSON member behind a comma.
    fn json_group(&self, group: &[Option<Box<str>>]) -> String {
        if self.by.is_empty() {
            return String::new();
        }
        let values = self.by.iter().zip(group);
        let values = values.map(|(name, v)| format!("{}:{}", quoted(name), v.as_deref().map_or("null".into(), quoted)));
        format!(",\"group\":{{{}}}", values.collect::<Vec<_>>().join(","))
    }
}

/// A subject's stages in the order in which they are passed.
fn in_order(times: &Times) -> Vec<(&(u16, u16), &Stage)> {
    let mut stages: Vec<_> = times.stages.iter().collect();
    stages.sort_by_key(|(tpoints, stage)| (stage.place(), **tpoints));
    stages
}

fn micros(nanos: u64) -> String {
    Nanos(nanos).to_string()
}

/// Tables, one a group and object.
pub(crate) fn tables(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (i, (subject, times)) in latencies.subjects.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        table(&mut text, subject, times, names);
    }
    for (i, life) in latencies.slowest.iter().enumerate() {
        text.push('\n');
        slow(&mut text, i + 1, life, names);
    }
    text
}

fn table(text: &mut String, subject: &Subject, times: &Times, names: &Names<'_>) {
    let objects = times.whole.count() + times.unfinished;
    let s = if objects == 1 { "" } else { "s" };
    let _ = write!(text, "{objects} object{s} {} from {}", subject.prefix, names.tpoint(subject.first));
    if times.unfinished > 0 {
        let _ = write!(text, " ({} unfinished)", times.unfinished);
    }
    let _ = writeln!(text, "{}", names.group(&subject.group));
    let stages = in_order(times);
    let label = |(from, to): (u16, u16)| format!("{} -> {}", names.tpoint(from), names.tpoint(to));
    let width = stages.iter().map(|(tpoints, _)| label(**tpoints).chars().count()).max().unwrap_or(0).max(12);
    let _ = write!(text, "  {:<width$} {:>9} {:>6} {:>TIME_WIDTH$}", "stage (us)", "count", "share", "mean");
    for (name, _) in QUANTILES {
        let _ = write!(text, " {name:>TIME_WIDTH$}");
    }
    let _ = writeln!(text, " {:>TIME_WIDTH$}", "max");
    let total: u128 = stages.iter().map(|(_, stage)| stage.spread.sum()).sum();
    for (tpoints, stage) in &stages {
        row(text, &label(**tpoints), width, &stage.spread, Some(total));
    }
    if times.whole.count() > 0 {
        row(text, "whole", width, &times.whole, None);
    }
}

fn row(text: &mut String, label: &str, width: usize, spread: &Spread, total: Option<u128>) {
    let share = total
        .filter(|&t| t > 0)
        .map_or_else(String::new, |total| format!("{:.1}%", spread.sum() as f64 * 100.0 / total as f64));
    let _ = write!(text, "  {label:<width$} {:>9} {share:>6} {:>TIME_WIDTH$}", spread.count(), micros(spread.mean()));
    for (_, quantile) in QUANTILES {
        let _ = write!(text, " {:>TIME_WIDTH$}", micros(spread.quantile(quantile)));
    }
    let _ = writeln!(text, " {:>TIME_WIDTH$}", micros(spread.max()));
}

fn slow(text: &mut String, rank: usize, life: &Life, names: &Names<'_>) {
    let nanos = |from: Ticks, to: Ticks| micros(names.rate.nanos(Ticks(to.0.saturating_sub(from.0))).0);
    let (first, last) = life.span();
    let group = names.group(&life.group);
    let state = if life.unfinished { ", unfinished" } else { "" };
    let _ = writeln!(text, "slowest {rank}: {}, {} us{state}{group}", life.name, nanos(first, last));
    let _ = writeln!(text, "  {:<24} {:>TIME_WIDTH$} {:>TIME_WIDTH$}", "tracepoint", "at (us)", "took (us)");
    let mut before = first;
    for &(tpoint, tsc) in &life.records {
        let (at, took) = (nanos(first, tsc), nanos(before, tsc));
        let _ = writeln!(text, "  {:<24} {at:>TIME_WIDTH$} {took:>TIME_WIDTH$}", names.tpoint(tpoint));
        before = tsc;
    }
}

/// An object a line: each stage, each whole, each of the slowest.
pub(crate) fn json(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (subject, times) in &latencies.subjects {
        for ((from, to), stage) in in_order(times) {
            let head =
                format!("\"stage\":{{\"from\":{},\"to\":{}}}", quoted(names.tpoint(*from)), quoted(names.tpoint(*to)));
            json_line(&mut text, &head, subject, &stage.spread, names, "");
        }
        let unfinished = format!(",\"unfinished\":{}", times.unfinished);
        json_line(&mut text, "\"stage\":\"whole\"", subject, &times.whole, names, &unfinished);
    }
    for (i, life) in latencies.slowest.iter().enumerate() {
        json_slow(&mut text, i + 1, life, names);
    }
    text
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    string(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn json_line(text: &mut String, head: &str, subject: &Subject, spread: &Spread, names: &Names<'_>, tail: &str) {
    let first = quoted(names.tpoint(subject.first));
    let _ = write!(text, "{{{head},\"object\":{},\"first\":{first}", quoted(&subject.prefix.to_string()));
    text.push_str(&names.json_group(&subject.group));
    let _ = write!(text, ",\"count\":{},\"mean_us\":{}", spread.count(), micros(spread.mean()));
    for (name, quantile) in QUANTILES {
        let _ = write!(text, ",\"{}_us\":{}", name.replace('.', "_"), micros(spread.quantile(quantile)));
    }
    let _ = writeln!(text, ",\"max_us\":{}{tail}}}", micros(spread.max()));
}

fn json_slow(text: &mut String, rank: usize, life: &Life, names: &Names<'_>) {
    let (first, last) = life.span();
    let nanos = |to: Ticks| micros(names.rate.nanos(Ticks(to.0.saturating_sub(first.0))).0);
    let stages = life.records.iter().map(|&(tpoint, tsc)| {
        format!("{{\"tpoint\":{},\"tsc\":{},\"at_us\":{}}}", quoted(names.tpoint(tpoint)), tsc.0, nanos(tsc))
    });
    let stages = stages.collect::<Vec<_>>().join(",");
    let object = quoted(&life.name.to_string());
    let (whole, group) = (nanos(last), names.json_group(&life.group));
    let state = if life.unfinished { ",\"unfinished\":true" } else { "" };
    let head = format!("\"slowest\":{rank},\"object\":{object}{group},\"whole_us\":{whole}{state}");
    let _ = writeln!(text, "{{{head},\"records\":[{stages}]}}");
}
