//! The tables for programs: an object a line.

use std::fmt::Write as _;

use stats::Histogram;
use text::json::{begin, quoted};

use super::names::Names;
use super::quantiles::QUANTILES;
use super::stages::{Latencies, Subject};
use super::tables::in_order;

/// Each stage and each whole.
pub fn stages(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (subject, times) in &latencies.subjects {
        for ((from, to), stage) in in_order(times) {
            let head = format!(
                "\"stage\":{{\"from\":{},\"to\":{}}}",
                quoted(names.tpoint(*from)),
                quoted(names.tpoint(*to))
            );
            line(&mut text, &head, subject, &stage.spread, names, "");
        }
        let unfinished = format!(",\"unfinished\":{}", times.unfinished);
        line(
            &mut text,
            "\"stage\":\"whole\"",
            subject,
            &times.whole,
            names,
            &unfinished,
        );
    }
    text
}

fn line(
    text: &mut String,
    head: &str,
    subject: &Subject,
    spread: &Histogram,
    names: &Names<'_>,
    tail: &str,
) {
    let first = quoted(names.tpoint(subject.first));
    let (envelope, prefix) = (begin("latency.stage"), quoted(&subject.prefix.to_string()));
    let _ = write!(
        text,
        "{envelope},{head},\"object\":{prefix},\"first\":{first}"
    );
    text.push_str(&names.json_group(&subject.group));
    if let Some(excluded) = subject.excluded {
        let _ = write!(text, ",\"excluded\":\"{}\"", excluded.word());
    }
    let _ = write!(
        text,
        ",\"count\":{},\"mean_ns\":{}",
        spread.count(),
        spread.mean()
    );
    for (name, quantile) in QUANTILES {
        let _ = write!(
            text,
            ",\"{}_ns\":{}",
            name.replace('.', "_"),
            spread.quantile(quantile)
        );
    }
    let _ = writeln!(text, ",\"max_ns\":{}{tail}}}", spread.max());
}
