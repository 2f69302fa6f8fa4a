//! Interprets `chart.css` for the PNG writer: the light colours, and the few properties that charts
//! use.

use super::STYLE;

/// Style of an element.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Style {
    pub(super) fill: Option<Paint>,
    pub(super) stroke: Option<[u8; 3]>,
    /// Line width, in screen pixels.
    pub(super) width: f64,
    /// Lengths of a line that are drawn and left out by turns; empty for a solid line.
    pub(super) dashes: Vec<f64>,
    pub(super) is_bold: bool,
}

/// Fill of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Solid([u8; 3]),
    /// The hatch pattern of holes.
    Hatch,
}

/// Rules of the style sheet, each a selector and its declarations.
pub(super) struct Styles {
    rules: Vec<(&'static str, &'static str)>,
}

impl Styles {
    pub(super) fn read() -> Self {
        let rules = STYLE
            .rsplit_once("/* rules */")
            .map_or("", |(_, rules)| rules);
        let rules = rules.split('}').filter_map(|rule| rule.split_once('{'));
        Self {
            rules: rules
                .map(|(selector, all)| (selector.trim(), all))
                .collect(),
        }
    }

    /// Returns the style of an element: `kind` is its name (`rect`, `text`), `classes` are
    /// separated by blanks.
    pub(super) fn style(&self, kind: &str, classes: &str) -> Style {
        let mut style = Style {
            width: 1.0,
            ..Style::default()
        };
        for (_, declarations) in self
            .rules
            .iter()
            .filter(|(selector, _)| applies(selector, kind, classes))
        {
            for (name, value) in declarations
                .split(';')
                .filter_map(|one| one.split_once(':'))
            {
                style.set(name.trim(), value.trim());
            }
        }
        style
    }
}

impl Style {
    fn set(&mut self, name: &str, value: &str) {
        match name {
            "fill" => self.fill = paint(value),
            "stroke" => self.stroke = colour_of(value),
            "stroke-width" => self.width = value.parse().unwrap_or(1.0),
            "stroke-dasharray" => {
                self.dashes = value
                    .split(' ')
                    .filter_map(|one| one.parse().ok())
                    .collect();
            }
            "font-weight" => self.is_bold = value.parse().is_ok_and(|weight: u32| weight >= 600),
            _ => {}
        }
    }
}

/// Returns whether a selector matches the element: `svg text`, `svg .head`, `.curve.whole`.
fn applies(selector: &str, kind: &str, classes: &str) -> bool {
    let last = selector.rsplit(' ').next().unwrap_or_default();
    let mut parts = last.split('.');
    let name = parts.next().unwrap_or_default();
    if last == "svg" {
        return false;
    }
    (name.is_empty() || name == kind) && parts.all(|class| classes.split(' ').any(|of| of == class))
}

fn paint(value: &str) -> Option<Paint> {
    if value.starts_with("url(") {
        Some(Paint::Hatch)
    } else {
        colour_of(value).map(Paint::Solid)
    }
}

fn colour_of(value: &str) -> Option<[u8; 3]> {
    let name = value.strip_prefix("var(")?.strip_suffix(')')?;
    Some(colour(name))
}

/// Iterates over the variables of the light colours.
pub(super) fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    let light = STYLE
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map_or("", |(light, _)| light);
    light
        .split(';')
        .filter_map(|line| line.trim().split_once(": "))
        .filter(|(name, _)| name.starts_with("--"))
}

/// Returns a light colour as red, green and blue.
pub(super) fn colour(name: &str) -> [u8; 3] {
    let hex = variables()
        .find(|(known, _)| *known == name)
        .map_or("#000000", |(_, value)| value);
    [1, 3, 5].map(|at| {
        hex.get(at..at + 2)
            .and_then(|two| u8::from_str_radix(two, 16).ok())
            .unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Activity;

    #[test]
    fn classes_have_the_colours_of_the_page() {
        assert_eq!(colour("--heat-mid"), [0x00, 0x72, 0xb2]);
        let styles = Styles::read();
        assert_eq!(
            styles.style("text", "strong head").fill,
            Some(Paint::Solid(colour("--text")))
        );
        assert!(
            styles.style("text", "strong head").is_bold && !styles.style("text", "strong").is_bold
        );
        assert_eq!(
            styles.style("text", "").fill,
            Some(Paint::Solid(colour("--quiet")))
        );
        let curve = styles.style("polyline", "curve s2 whole");
        assert_eq!(
            (curve.stroke, curve.width, &curve.dashes[..]),
            (Some(colour("--c2")), 2.5, &[7.0, 3.0][..])
        );
        assert_eq!(curve.fill, None);
        for activity in Activity::ALL {
            assert!(
                styles.style("rect", activity.key()).fill.is_some(),
                "{}",
                activity.key()
            );
        }
        assert_eq!(styles.style("rect", "unknown").fill, Some(Paint::Hatch));
        assert!(
            ["stage", "back", "track"]
                .iter()
                .all(|class| styles.style("rect", class).fill.is_some())
        );
        assert!(styles.style("line", "grid").stroke.is_some());
    }
}
