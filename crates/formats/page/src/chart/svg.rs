//! A chart as SVG. All text in it is escaped here.

use std::fmt::Write as _;

use super::draw::{Anchor, Drawing, Shape};
use super::{Chart, HATCH, STYLE, WIDTH, style};
use crate::escape::html;

/// Formats a separate file, with literal colours.
pub(super) fn file(chart: &Chart) -> String {
    let (head, top) = chart.head();
    let height = chart.height();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\
         <title>{}</title><style>{}</style>{HATCH}<rect width=\"{WIDTH}\" height=\"{height}\" class=\"back\"/>{}\
         <g transform=\"translate(0 {top})\">{}</g></svg>\n",
        html(&chart.sentence),
        literal_style(),
        elements(&head),
        elements(&chart.drawing),
    )
}

/// Returns the style with its variables replaced by the light colours.
fn literal_style() -> String {
    let rules = STYLE
        .rsplit_once("/* rules */")
        .map_or("", |(_, rules)| rules);
    style::variables().fold(rules.to_owned(), |rules, (name, value)| {
        rules.replace(&format!("var({name})"), value)
    })
}

fn elements(drawing: &Drawing) -> String {
    let mut text = String::new();
    for shape in &drawing.shapes {
        // SANITY: writing to a String doesn't fail.
        let _ = match shape {
            Shape::Rectangle { at, class, title } => rectangle(&mut text, *at, class, title),
            Shape::Cells { colour, cells } => path(&mut text, *colour, cells),
            Shape::Curve { points, class } => curve(&mut text, points, class),
            Shape::Words {
                at,
                class,
                anchor,
                text: words,
            } => write_words(&mut text, *at, class, *anchor, words),
        };
    }
    text
}

/// Rounds to a tenth of a pixel.
fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded}")
}

fn rectangle(text: &mut String, at: [f64; 4], class: &str, title: &str) -> std::fmt::Result {
    let [x, y, width, height] = at.map(number);
    write!(
        text,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\""
    )?;
    match title {
        "" => write!(text, "/>"),
        title => write!(text, "><title>{}</title></rect>", html(title)),
    }
}

/// Writes cells of one colour as one path, which is shorter than single rectangles.
fn path(text: &mut String, [red, green, blue]: [u8; 3], cells: &[[f64; 4]]) -> std::fmt::Result {
    write!(text, "<path fill=\"#{red:02x}{green:02x}{blue:02x}\" d=\"")?;
    for [x, y, width, height] in cells.iter().map(|cell| cell.map(number)) {
        write!(text, "M{x} {y}h{width}v{height}h-{width}z")?;
    }
    text.write_str("\"/>")
}

fn curve(text: &mut String, points: &[(f64, f64)], class: &str) -> std::fmt::Result {
    if let [from, to] = points {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        return write!(
            text,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>"
        );
    }
    let points: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
        .collect();
    write!(
        text,
        "<polyline points=\"{}\" class=\"{class}\"/>",
        points.join(" ")
    )
}

fn write_words(
    text: &mut String,
    at: (f64, f64),
    class: &str,
    anchor: Anchor,
    words: &str,
) -> std::fmt::Result {
    let [x, y] = [at.0, at.1].map(number);
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    write!(
        text,
        "<text x=\"{x}\" y=\"{y}\"{class}{anchor}>{}</text>",
        html(words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_alone_has_no_variables() {
        let style = literal_style();
        assert!(
            !style.contains("var(") && style.contains("fill: #d55e00"),
            "{style}"
        );
    }

    #[test]
    fn elements_are_what_a_browser_draws() {
        let mut drawing = Drawing::default();
        drawing.rectangle([1.04, 2.0, 3.0, 4.0], "ran", "a<b");
        drawing.cells([0, 16, 255], vec![[1.0, 2.0, 3.0, 4.0]]);
        drawing.line((0.0, 1.0), (2.0, 3.0), "grid");
        drawing.curve([(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)].into_iter(), "curve");
        drawing.words((1.0, 2.0), "", Anchor::End, "\"x\"");
        let expected = "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" class=\"ran\"><title>a&lt;b</title></rect>\
            <path fill=\"#0010ff\" d=\"M1 2h3v4h-3z\"/><line x1=\"0\" y1=\"1\" x2=\"2\" y2=\"3\" class=\"grid\"/>\
            <polyline points=\"0,1 2,3 4,5\" class=\"curve\"/><text x=\"1\" y=\"2\" text-anchor=\"end\">&quot;x&quot;</text>";
        assert_eq!(elements(&drawing), expected);
    }
}
