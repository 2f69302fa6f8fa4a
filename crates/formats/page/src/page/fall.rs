//! The waterfall of one request in the page. Positions are percentages of the width, so that it
//! fits a phone and a wall.

use std::fmt::Write as _;

use ordering::Order as _;
use screen::{shorten, time};

use super::parts::legend;
use crate::chart::axis::{nice_step, round_time};
use crate::chart::waterfall::common_start;
use crate::escape::html;
use crate::model::{Activity, Span, WaterStage, Waterfall};
use crate::words;

/// Height of a stage, in pixels; `page.css` has the same value for the names beside them.
const ROW: u32 = 18;
/// Height of a thread's strip and labels, in pixels; `page.css` has the same value.
const THREAD: u32 = 36;
/// Room above the rows, in pixels.
const TOP: u32 = 6;
/// Percentage of the width below which a bar has a fixed width of 1.5 pixels.
const NARROW_PERCENT: f64 = 0.2;
/// Assumed width of the bars, in pixels, for placing labels below a strip.
const ASSUMED_WIDTH: f64 = 780.0;
/// Width of a letter of these labels, in pixels.
const LETTER: f64 = 6.6;

/// Formats stages with their names, strips of thread activities below them, and a legend.
pub(super) fn waterfall(request: &Waterfall) -> String {
    let start = common_start(&request.stages);
    let mut names = String::new();
    for stage in &request.stages {
        names.push_str(&name(stage, start));
    }
    for (thread, _) in &request.threads {
        let _ = write!(
            names,
            "<li class=\"thread\"><span>{}</span></li>",
            html(thread)
        );
    }
    let has = |activity: &Activity| {
        request
            .threads
            .iter()
            .any(|(_, spans)| spans.iter().any(|it| it.activity == *activity))
    };
    let used = Activity::ALL
        .into_iter()
        .filter(|it| *it == Activity::Ran || has(it));
    let legend = if request.threads.is_empty() {
        String::new()
    } else {
        legend(used)
    };
    let label = format!(
        "The stages of {} over time, and what its thread did",
        request.name
    );
    let (bars, height) = bars(request);
    format!(
        "<div class=\"fall\"><ol>{names}</ol><svg width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{}\">{bars}</svg></div>{legend}",
        html(&label)
    )
}

/// Formats a stage. Where there is little room, only its end is shown: the next one begins with it.
fn name(stage: &WaterStage, start: &str) -> String {
    let short = |name: &str| html(name.get(start.len()..).unwrap_or(name));
    let (from, to, took) = (short(&stage.from), short(&stage.to), time(stage.length));
    format!("<li><span><span class=\"from\">{from} </span>→ {to}</span> <b>{took}</b></li>")
}

fn bars(request: &Waterfall) -> (String, u32) {
    let mut text = String::new();
    let length = request.length.max(1) as f64;
    let (stages, threads) = (request.stages.len() as u32, request.threads.len() as u32);
    let bottom = TOP + stages * ROW + threads * THREAD;
    axis(&mut text, length, bottom);
    for (y, stage) in (TOP..).step_by(ROW as usize).zip(&request.stages) {
        let lost = words::lost(stage.lost)
            .map_or_else(String::new, |lost| format!("; others took {lost} of it"));
        let title = format!(
            "{} → {}: {}{lost}; ends by {}",
            stage.from,
            stage.to,
            time(stage.length),
            stage.ends
        );
        rectangle(
            &mut text,
            (stage.at, stage.length, length),
            (y + 4, ROW - 7),
            "stage",
            &title,
        );
    }
    for (y, (_, spans)) in (TOP + stages * ROW..)
        .step_by(THREAD as usize)
        .zip(&request.threads)
    {
        strip(&mut text, spans, length, y);
    }
    (text, bottom + 22)
}

/// Draws ticks with their times; on a phone every other one is unlabelled.
fn axis(text: &mut String, length: f64, bottom: u32) {
    let step = nice_step(length, 7.0);
    let ticks = (0u32..)
        .map(|n| (n, f64::from(n) * step))
        .take_while(|(_, at)| *at <= length * 1.0001);
    for (n, at) in ticks {
        let x = at / length * 100.0;
        let _ = write!(
            text,
            "<line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{TOP}\" y2=\"{bottom}\" class=\"grid\"/>"
        );
        let anchor = if n == 0 {
            "start"
        } else if x > 95.0 {
            "end"
        } else {
            "middle"
        };
        let class = if n % 2 == 1 { " class=\"odd\"" } else { "" };
        let label = if n == 0 {
            "0".to_owned()
        } else {
            round_time(at)
        };
        let y = bottom + 15;
        let _ = write!(
            text,
            "<text x=\"{x:.2}%\" y=\"{y}\" text-anchor=\"{anchor}\"{class}>{label}</text>"
        );
    }
}

/// Draws a bar from `at` on, of `length`, on a scale of `all`.
fn rectangle(
    text: &mut String,
    (at, length, all): (u64, u64, f64),
    (y, height): (u32, u32),
    class: &str,
    title: &str,
) {
    let x = (at as f64 / all).min(1.0) * 100.0;
    let width = (length as f64 / all * 100.0).min(100.0 - x);
    // A narrow bar at the right end moves left to stay visible.
    let (x, width) = if width < NARROW_PERCENT {
        (x.min(100.0 - NARROW_PERCENT), "1.5".to_owned())
    } else {
        (x, format!("{width:.2}%"))
    };
    let title = html(title);
    let _ = write!(
        text,
        "<rect x=\"{x:.2}%\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"><title>{title}</title></rect>"
    );
}

fn strip(text: &mut String, spans: &[Span], all: f64, y: u32) {
    let _ = write!(
        text,
        "<rect y=\"{y}\" width=\"100%\" height=\"{ROW}\" class=\"ran\"><title>ran its own code</title></rect>"
    );
    for span in spans {
        let title = format!("{}, {}", span.what, time(span.length));
        rectangle(
            text,
            (span.at, span.length, all),
            (y, ROW),
            span.activity.key(),
            &title,
        );
    }
    // The longest ones are labelled below, as far as there is room.
    let mut longest: Vec<&Span> = spans.iter().collect();
    longest.order_by_key(|span| std::cmp::Reverse(span.length));
    let mut used: Vec<(f64, f64)> = Vec::new();
    for span in longest.into_iter().take(4) {
        let label = format!("{} {}", shorten(&span.what, 32), time(span.length));
        let half = label.chars().count() as f64 * LETTER / 2.0 / ASSUMED_WIDTH * 100.0;
        let middle = (span.at as f64 + span.length as f64 / 2.0) / all * 100.0;
        let middle = middle.clamp(half, (100.0 - half).max(half));
        if used
            .iter()
            .all(|(from, to)| middle + half + 1.0 < *from || middle - half - 1.0 > *to)
        {
            used.push((middle - half, middle + half));
            let (y, label) = (y + ROW + 12, html(&label));
            let _ = write!(
                text,
                "<text x=\"{middle:.2}%\" y=\"{y}\" text-anchor=\"middle\" class=\"strong did\">{label}</text>"
            );
        }
    }
}
