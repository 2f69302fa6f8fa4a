//! Charts: drawn once, as shapes, and written as SVG or as PNG. A separate chart has the light
//! colours, because some SVG viewers lack CSS variables, and is as wide as a page.

pub(crate) mod axis;
mod draw;
mod heat;
mod percentiles;
mod png;
mod style;
mod svg;
pub(crate) mod waterfall;

use draw::{Anchor, Drawing};

pub use heat::heat;
pub use percentiles::percentiles;

use crate::escape;
use crate::model::{Report, Waterfall};

/// Colours and classes of charts.
pub(crate) const STYLE: &str = include_str!("chart.css");
/// Width of the sentence above a chart, in characters.
const COLUMNS: usize = 130;
/// Width of a chart, in pixels.
pub(crate) const WIDTH: f64 = 1120.0;

/// Hatch pattern of holes, defined once per page.
pub(crate) const HATCH: &str = "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
     patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" class=\"hatch-back\"/>\
     <line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" class=\"hatch-line\"/></pattern></defs>";

/// A chart with a sentence and a title above it.
#[derive(Debug)]
pub struct Chart {
    sentence: String,
    title: String,
    drawing: Drawing,
}

impl Chart {
    fn new(report: &Report, sentence: &str, drawing: Drawing) -> Self {
        Self {
            sentence: sentence.to_owned(),
            title: report.title.clone(),
            drawing,
        }
    }

    /// Formats the chart as an SVG file.
    pub fn svg(&self) -> String {
        svg::file(self)
    }

    /// Formats the chart as a PNG file, one and a half times as large as the SVG is shown.
    ///
    /// # Errors
    ///
    /// Returns an error of the compressor.
    pub fn png(&self) -> std::io::Result<Vec<u8>> {
        png::file(self)
    }

    /// Draws the sentence and the title, and returns the height at which the chart begins.
    fn head(&self) -> (Drawing, f64) {
        let mut head = Drawing::default();
        let mut y = 24.0;
        for line in screen::wrap(&self.sentence, COLUMNS) {
            head.words((16.0, y), "strong head", Anchor::Start, &line);
            y += 20.0;
        }
        head.words((16.0, y), "", Anchor::Start, &self.title);
        (head, y + 16.0)
    }

    fn height(&self) -> f64 {
        self.head().1 + self.drawing.height + 12.0
    }
}

/// Draws the waterfall of one request.
pub fn waterfall(report: &Report, request: &Waterfall) -> Chart {
    let took = screen::time(request.length);
    let mut sentence = format!(
        "{} ({}) took {took}",
        escape::shown(&request.name),
        escape::shown(&request.kind)
    );
    if let Some(first) = request.culprits.first() {
        sentence.push_str(": ");
        sentence.push_str(&escape::shown(first));
    }
    Chart::new(report, &sentence, waterfall::drawing(request))
}
