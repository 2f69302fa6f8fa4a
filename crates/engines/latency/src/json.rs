//! The tables for programs: an object a line.

use stats::Histogram;
use std::fmt::Write as _;

use super::names::{Names, micros, quoted};
use super::quantiles::QUANTILES;
use super::stages::{Latencies, Subject};
use super::tables::in_order;

/// Each stage and each whole.
pub fn stages(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (subject, times) in &latencies.subjects {
        for ((from, to), stage) in in_order(times) {
            let head =
                format!("\"stage\":{{\"from\":{},\"to\":{}}}", quoted(names.tpoint(*from)), quoted(names.tpoint(*to)));
            line(&mut text, &head, subject, &stage.spread, names, "");
        }
        let unfinished = format!(",\"unfinished\":{}", times.unfinished);
        line(&mut text, "\"stage\":\"whole\"", subject, &times.whole, names, &unfinished);
    }
    text
}

fn line(text: &mut String, head: &str, subject: &Subject, spread: &Histogram, names: &Names<'_>, tail: &str) {
    let first = quoted(names.tpoint(subject.first));
    let _ = write!(text, "{{{head},\"object\":{},\"first\":{first}", quoted(&subject.prefix.to_string()));
    text.push_str(&names.json_group(&subject.group));
    if let Some(excluded) = subject.excluded {
        let _ = write!(text, ",\"excluded\":\"{}\"", excluded.word());
    }
    let _ = write!(text, ",\"count\":{},\"mean_us\":{}", spread.count(), micros(spread.mean()));
    for (name, quantile) in QUANTILES {
        let _ = write!(text, ",\"{}_us\":{}", name.replace('.', "_"), micros(spread.quantile(quantile)));
    }
    let _ = writeln!(text, ",\"max_us\":{}{tail}}}", micros(spread.max()));
}
