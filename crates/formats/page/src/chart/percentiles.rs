//! The percentiles of one kind of request as a separate chart, on a scale of nines.

use ordering::Order as _;

use super::axis::{latency_ticks, round_time};
use super::draw::{Anchor, Drawing};
use super::{Chart, WIDTH};
use crate::model::{Figures, Report};

const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const HEIGHT: f64 = 320.0;
/// Limit on the curves, so that they can be distinguished.
const MAX_CURVES: usize = 8;
/// Percentiles with a grid line, and their number of nines.
const LINES: [(&str, f64); 7] = [
    ("p50", std::f64::consts::LOG10_2),
    ("p90", 1.0),
    ("p99", 2.0),
    ("p99.9", 3.0),
    ("p99.99", 4.0),
    ("p99.999", 5.0),
    ("p99.9999", 6.0),
];

/// Draws the latency of the first kind of request, and of its stages.
pub fn percentiles(report: &Report) -> Chart {
    let Some(group) = report.groups.first() else {
        return Chart::new(
            report,
            "No request is complete: there is nothing to draw",
            Drawing::default(),
        );
    };
    let sentence = format!(
        "{} from {}: the time that this share of them did not exceed",
        screen::counted(group.whole.count, "request"),
        group.first
    );
    let mut curves = vec![("whole request".to_owned(), &group.whole)];
    let mut stages: Vec<_> = group
        .stages
        .iter()
        .filter(|stage| !stage.figures.curve.is_empty())
        .collect();
    stages.order_by_key(|stage| std::cmp::Reverse(stage.figures.quantiles[2]));
    curves.extend(
        stages
            .into_iter()
            .take(MAX_CURVES - 1)
            .map(|stage| (format!("{} → {}", stage.from, stage.to), &stage.figures)),
    );
    curves.retain(|(_, figures)| !figures.curve.is_empty());
    Chart::new(report, &sentence, drawing(&curves))
}

/// Ranges of both axes.
struct Scale {
    /// Shortest and longest time, in nanoseconds.
    lowest: f64,
    highest: f64,
    /// Nines of the highest percentile.
    nines: f64,
}

impl Scale {
    /// Chooses the ranges that hold all curves.
    fn for_curves(curves: &[(String, &Figures)]) -> Self {
        let all = || curves.iter().map(|(_, it)| it);
        let lowest = all().map(|it| it.curve[0].max(1)).min().unwrap_or(1);
        let highest = all().map(|it| it.max).max().unwrap_or(1).max(2);
        Self {
            lowest: lowest as f64 / 1.1,
            highest: highest as f64 * 1.15,
            nines: all()
                .map(|it| (it.count.max(1) as f64).log10())
                .fold(2.0, f64::max),
        }
    }

    fn x(&self, n: f64) -> f64 {
        LEFT + n / self.nines * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, nanos: f64) -> f64 {
        let Self {
            lowest, highest, ..
        } = self;
        HEIGHT * (1.0 - (nanos.max(*lowest) / lowest).ln() / (highest / lowest).ln())
    }

    /// Draws the lines of the grid, with their times and percentiles.
    fn draw_grid(&self, it: &mut Drawing) {
        for tick in latency_ticks(self.lowest, self.highest, HEIGHT / 22.0) {
            let y = self.y(tick);
            it.line((LEFT, y), (WIDTH - RIGHT, y), "grid");
            it.words((LEFT - 8.0, y + 4.0), "", Anchor::End, &round_time(tick));
        }
        for (name, n) in LINES.into_iter().filter(|(_, n)| *n <= self.nines + 1e-9) {
            let x = self.x(n);
            it.line((x, 0.0), (x, HEIGHT), "grid");
            let anchor = if x > WIDTH - 60.0 {
                Anchor::End
            } else {
                Anchor::Middle
            };
            it.words((x, HEIGHT + 16.0), "", anchor, name);
        }
    }
}

fn drawing(curves: &[(String, &Figures)]) -> Drawing {
    let mut it = Drawing::default();
    let scale = Scale::for_curves(curves);
    scale.draw_grid(&mut it);
    for (n, (name, figures)) in curves.iter().enumerate() {
        let class = format!("curve s{n}{}", if n == 0 { " whole" } else { "" });
        let points = figures
            .curve
            .iter()
            .enumerate()
            .map(|(step, nanos)| (scale.x(step as f64 / 10.0), scale.y(*nanos as f64)));
        let last = (
            scale.x((figures.count.max(1) as f64).log10()),
            scale.y(figures.max as f64),
        );
        it.curve(points.chain([last]), class.clone());
        let row = HEIGHT + 40.0 + (n / 2) as f64 * 18.0;
        let column = LEFT + (n % 2) as f64 * 510.0;
        it.line((column, row - 4.0), (column + 26.0, row - 4.0), class);
        let [p50, p99] = [0, 2].map(|at| screen::time(figures.quantiles[at]));
        it.words(
            (column + 34.0, row),
            "",
            Anchor::Start,
            &format!("{name}: p50 {p50}, p99 {p99}"),
        );
    }
    it.height = HEIGHT + 40.0 + curves.len().div_ceil(2) as f64 * 18.0;
    it
}
