//! The heat map as a separate chart.

use std::collections::BTreeMap;

use super::axis::{latency_ticks, nice_step, round_time};
use super::draw::{Anchor, Drawing};
use super::style::colour;
use super::{Chart, WIDTH};
use crate::heat::row_begin;
use crate::model::{Activity, Lane, Report};

const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const HEIGHT: f64 = 320.0;
const LANE: f64 = 14.0;
/// Minimum width and height of a cell, in pixels.
const MIN_CELL_PIXELS: f64 = 3.0;
/// Limit on the ticks of the time axis.
const MAX_TICKS: u32 = 8;
/// Number of colour steps.
const STEPS: usize = 12;

/// Draws the requests by end and latency, and the activities of threads below.
pub fn heat(report: &Report) -> Chart {
    let sentence = report
        .verdicts
        .first()
        .map_or("When requests ended, and how long they had taken", |it| {
            &*it.sentence
        });
    Chart::new(report, sentence, drawing(report))
}

/// Scales of the chart.
struct Scales {
    offset: f64,
    span: f64,
    /// The lowest row.
    first: u32,
    rows: f64,
    per_doubling: u32,
}

impl Scales {
    fn x(&self, at: f64) -> f64 {
        LEFT + at / self.span * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, row: f64) -> f64 {
        HEIGHT - (row - f64::from(self.first)) / self.rows * HEIGHT
    }
}

fn drawing(report: &Report) -> Drawing {
    let map = &report.heat;
    let rows = || map.cells.iter().map(|cell| cell.row);
    let (low, high) = (
        rows().min().unwrap_or(0).saturating_sub(1),
        rows().max().unwrap_or(0).saturating_add(2),
    );
    let span = report.span.max(map.column).max(1) as f64;
    let place = Scales {
        offset: report.offset as f64,
        span,
        first: low,
        rows: f64::from(high - low),
        per_doubling: map.per_doubling.max(1),
    };
    let mut it = Drawing::default();
    let lanes = &report.lanes.lanes;
    let bottom = if lanes.is_empty() {
        HEIGHT
    } else {
        HEIGHT + 12.0 + lanes.len() as f64 * (LANE + 4.0)
    };
    axes(&mut it, &place, (high, bottom));
    for hole in &map.holes {
        let (from, to) = (
            place.x(hole.at as f64),
            place.x(hole.at.saturating_add(hole.length) as f64),
        );
        it.rectangle(
            [from, 0.0, (to - from).max(1.0), HEIGHT],
            Activity::Unknown.key(),
            &hole.why,
        );
    }
    let most = cells(&mut it, report, &place);
    for (n, lane) in lanes.iter().enumerate() {
        one_lane(
            &mut it,
            report.lanes.column,
            lane,
            &place,
            HEIGHT + 12.0 + n as f64 * (LANE + 4.0),
        );
    }
    it.height = legend(&mut it, report, most, bottom + 44.0) + 12.0;
    it
}

fn axes(it: &mut Drawing, place: &Scales, (high, bottom): (u32, f64)) {
    let (low, high) = (
        row_begin(place.first, place.per_doubling),
        row_begin(high, place.per_doubling),
    );
    for tick in latency_ticks(low, high, HEIGHT / 22.0) {
        let y = place.y(tick.log2() * f64::from(place.per_doubling));
        it.line((LEFT, y), (WIDTH - RIGHT, y), "grid");
        it.words((LEFT - 8.0, y + 4.0), "", Anchor::End, &round_time(tick));
    }
    let step = nice_step(place.span, f64::from(MAX_TICKS));
    // Ticks are counted, since adding a small step to a large time would not change it.
    let first = (place.offset / step).ceil() * step;
    for at in (0..=MAX_TICKS)
        .map(|n| first + f64::from(n) * step)
        .take_while(|at| *at <= place.offset + place.span)
    {
        let x = place.x(at - place.offset);
        it.line((x, 0.0), (x, bottom), "grid");
        it.words(
            (x, bottom + 16.0),
            "",
            Anchor::Middle,
            &if at == 0.0 {
                "0".to_owned()
            } else {
                round_time(at)
            },
        );
    }
}

/// Draws the cells grouped by colour. Returns the largest number of requests in a cell.
fn cells(it: &mut Drawing, report: &Report, place: &Scales) -> u64 {
    let map = &report.heat;
    let columns = (MIN_CELL_PIXELS / (place.x(map.column as f64) - LEFT))
        .ceil()
        .max(1.0) as u32;
    let rows = (MIN_CELL_PIXELS / (HEIGHT / place.rows)).ceil().max(1.0) as u32;
    let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for cell in &map.cells {
        let sum = counts
            .entry((cell.column / columns, cell.row / rows))
            .or_default();
        *sum = sum.saturating_add(cell.count);
    }
    let most = counts.values().max().copied().unwrap_or(1);
    let mut cells = vec![Vec::new(); STEPS];
    for ((column, row), count) in counts {
        let part = if most > 1 {
            (count as f64).ln() / (most as f64).ln()
        } else {
            0.5
        };
        let of_colour = &mut cells[((part * STEPS as f64) as usize).min(STEPS - 1)];
        let at = |column: f64| place.x(column * f64::from(columns) * map.column as f64);
        let (from, to) = (at(f64::from(column)), at(f64::from(column) + 1.0));
        let height = |row: f64| place.y(row * f64::from(rows));
        let (low, high) = (height(f64::from(row)), height(f64::from(row) + 1.0));
        of_colour.push([from, high, (to - from).max(1.0), low - high]);
    }
    for (step, cells) in cells
        .into_iter()
        .enumerate()
        .filter(|(_, cells)| !cells.is_empty())
    {
        it.cells(ramp(step as f64 / (STEPS - 1) as f64), cells);
    }
    most
}

/// Returns the colour for a part of the maximum, from 0 to 1.
fn ramp(part: f64) -> [u8; 3] {
    let stops = ["--heat-low", "--heat-mid", "--heat-high"].map(colour);
    let (from, to, part) = if part < 0.5 {
        (stops[0], stops[1], part * 2.0)
    } else {
        (stops[1], stops[2], part * 2.0 - 1.0)
    };
    let mix = |n: usize| {
        (f64::from(from[n]) + (f64::from(to[n]) - f64::from(from[n])) * part).round() as u8
    };
    [mix(0), mix(1), mix(2)]
}

fn one_lane(it: &mut Drawing, column: u64, lane: &Lane, place: &Scales, y: f64) {
    it.words(
        (LEFT - 8.0, y + LANE - 3.0),
        "",
        Anchor::End,
        &screen::shorten(&lane.name, 11),
    );
    it.rectangle(
        [LEFT, y, WIDTH - LEFT - RIGHT, LANE],
        Activity::Ran.key(),
        "",
    );
    for (n, sums) in lane.columns.iter().enumerate() {
        let (from, to) = (
            place.x(n as f64 * column as f64),
            place.x((n + 1) as f64 * column as f64).min(WIDTH - RIGHT),
        );
        let mut base = y + LANE;
        for (activity, sum) in Activity::ALL.into_iter().zip(sums) {
            let height = *sum as f64 / column.max(1) as f64 * LANE;
            if activity == Activity::Ran || height < 0.1 {
                continue;
            }
            base -= height;
            it.rectangle(
                [from, base.max(y), (to - from).max(0.5), height.min(LANE)],
                activity.key(),
                "",
            );
        }
    }
}

/// Draws the legend from line `y` on, wrapping if there is no room. Returns the last line.
fn legend(it: &mut Drawing, report: &Report, most: u64, mut y: f64) -> f64 {
    let mut x = LEFT;
    for step in 0..STEPS {
        it.cells(
            ramp(step as f64 / (STEPS - 1) as f64),
            vec![[x, y - 9.0, 8.0, 10.0]],
        );
        x += 8.0;
    }
    let requests = match most {
        1 => "1 request".to_owned(),
        _ => format!("1 to {most} requests"),
    };
    let text = format!("{requests}, by the time of their end");
    it.words((x + 8.0, y), "", Anchor::Start, &text);
    x += 32.0 + text.len() as f64 * 6.2;
    let sums = |n: usize| {
        report
            .lanes
            .lanes
            .iter()
            .any(|lane| lane.columns.iter().any(|sums| sums[n] > 0))
    };
    for (_, activity) in Activity::ALL
        .into_iter()
        .enumerate()
        .filter(|(n, _)| sums(*n))
    {
        let length = 28.0 + activity.label().len() as f64 * 6.2;
        if x + length > WIDTH {
            (x, y) = (LEFT, y + 18.0);
        }
        it.rectangle([x, y - 9.0, 12.0, 10.0], activity.key(), "");
        it.words((x + 16.0, y), "", Anchor::Start, activity.label());
        x += length;
    }
    y
}
