//! One request: a bar for each stage, and below them the activities of its threads.

use ordering::Order as _;
use screen::{shorten, time};

use super::WIDTH;
use super::axis::{nice_step, round_time};
use super::draw::{Anchor, Drawing};
use crate::model::{Activity, Span, WaterStage, Waterfall};
use crate::words;

/// Left end of the bars, in pixels.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 24.0;
const ROW: f64 = 18.0;
const LANE: f64 = 18.0;
/// Width of a stage name, in characters.
const NAME: usize = 34;
/// Minimum width of a visible bar.
const MIN_BAR_PIXELS: f64 = 1.0;

pub(super) fn drawing(request: &Waterfall) -> Drawing {
    let mut it = Drawing::default();
    let scale = Scale {
        length: request.length.max(1) as f64,
    };
    let rows = request.stages.len() as f64;
    let top = 8.0;
    let lanes = request.threads.len() as f64 * (LANE + 16.0);
    let bottom = top + rows * ROW + 8.0 + lanes;
    axis(&mut it, &scale, top, bottom);
    let start = common_start(&request.stages);
    for (n, stage) in request.stages.iter().enumerate() {
        one_stage(&mut it, &scale, stage, start, top + n as f64 * ROW);
    }
    let mut y = top + rows * ROW + 8.0;
    for (name, spans) in &request.threads {
        thread(&mut it, &scale, (name, spans), y);
        y += LANE + 16.0;
    }
    it.height = bottom + 24.0;
    if !request.threads.is_empty() {
        legend(&mut it, request, bottom + 40.0);
        it.height = bottom + 52.0;
    }
    it
}

/// Scale from times to horizontal positions.
struct Scale {
    length: f64,
}

impl Scale {
    fn x(&self, at: u64) -> f64 {
        LEFT + (at as f64 / self.length).min(1.0) * (WIDTH - LEFT - RIGHT)
    }
}

fn axis(it: &mut Drawing, scale: &Scale, top: f64, bottom: f64) {
    let step = nice_step(scale.length, 7.0);
    let mut at = 0.0;
    while at <= scale.length * 1.0001 {
        let x = scale.x(at as u64);
        it.line((x, top), (x, bottom), "grid");
        let text = if at == 0.0 {
            "0".to_owned()
        } else {
            round_time(at)
        };
        it.words((x, bottom + 15.0), "", Anchor::Middle, &text);
        at += step;
    }
}

fn one_stage(it: &mut Drawing, scale: &Scale, stage: &WaterStage, start: &str, y: f64) {
    let name = |name: &str| name.get(start.len()..).unwrap_or(name).to_owned();
    let label = format!("{} → {}", name(&stage.from), name(&stage.to));
    it.words(
        (LEFT - 82.0, y + 12.5),
        "",
        Anchor::End,
        &shorten(&label, NAME),
    );
    it.words(
        (LEFT - 12.0, y + 12.5),
        "strong",
        Anchor::End,
        &time(stage.length),
    );
    let (from, to) = (
        scale.x(stage.at),
        scale.x(stage.at.saturating_add(stage.length)),
    );
    let lost = words::lost(stage.lost)
        .map_or_else(String::new, |lost| format!("; others took {lost} of it"));
    let title = format!(
        "{} → {}: {}{lost}; ends by {}",
        stage.from,
        stage.to,
        time(stage.length),
        stage.ends
    );
    it.rectangle(
        [from, y + 4.0, (to - from).max(MIN_BAR_PIXELS), ROW - 7.0],
        "stage",
        &title,
    );
}

fn thread(it: &mut Drawing, scale: &Scale, (name, spans): (&str, &[Span]), y: f64) {
    it.words(
        (LEFT - 12.0, y + 13.0),
        "",
        Anchor::End,
        &shorten(name, NAME + 10),
    );
    it.rectangle(
        [LEFT, y, WIDTH - LEFT - RIGHT, LANE],
        Activity::Ran.key(),
        "ran its own code",
    );
    for span in spans {
        let (from, to) = (
            scale.x(span.at),
            scale.x(span.at.saturating_add(span.length)),
        );
        let title = format!("{}, {}", span.what, time(span.length));
        it.rectangle(
            [from, y, (to - from).max(MIN_BAR_PIXELS), LANE],
            span.activity.key(),
            &title,
        );
    }
    // The longest ones are labelled below, as far as there is room.
    let mut longest: Vec<&Span> = spans.iter().collect();
    longest.order_by_key(|span| std::cmp::Reverse(span.length));
    let mut used: Vec<(f64, f64)> = Vec::new();
    for span in longest.into_iter().take(4) {
        let text = format!("{} {}", shorten(&span.what, 32), time(span.length));
        let half = text.chars().count() as f64 * 3.3;
        let middle = f64::midpoint(
            scale.x(span.at),
            scale.x(span.at.saturating_add(span.length)),
        );
        let middle = middle.clamp(LEFT + half, (WIDTH - RIGHT - half).max(LEFT + half));
        if used
            .iter()
            .all(|(from, to)| middle + half + 8.0 < *from || middle - half - 8.0 > *to)
        {
            used.push((middle - half, middle + half));
            it.words((middle, y + LANE + 12.0), "strong", Anchor::Middle, &text);
        }
    }
}

/// Draws a legend of the colours in use.
fn legend(it: &mut Drawing, request: &Waterfall, y: f64) {
    let mut x = LEFT;
    let seen = |activity: &Activity| {
        request
            .threads
            .iter()
            .flat_map(|(_, spans)| spans)
            .any(|span| span.activity == *activity)
    };
    for activity in Activity::ALL
        .into_iter()
        .filter(|activity| *activity == Activity::Ran || seen(activity))
    {
        it.rectangle([x, y - 9.0, 12.0, 10.0], activity.key(), "");
        it.words((x + 17.0, y), "", Anchor::Start, activity.label());
        x += 17.0 + activity.label().len() as f64 * 6.4 + 16.0;
    }
}

/// Returns the common start of all tracepoint names, up to an underscore.
pub(crate) fn common_start(stages: &[WaterStage]) -> &str {
    let mut names = stages.iter().flat_map(|stage| [&*stage.from, &*stage.to]);
    let first = names.next().unwrap_or_default();
    let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let common = names.fold(first.len(), |common, name| common.min(same(first, name)));
    let end = first.as_bytes()[..common]
        .iter()
        .rposition(|byte| *byte == b'_')
        .map_or(0, |at| at + 1);
    &first[..end]
}
