//! The elements of a drawing, as data: [`super::svg`] writes them as text, [`super::png`] draws
//! them.

use std::borrow::Cow;

/// A drawing and its height. Lengths are in screen pixels; colours are classes of `chart.css`.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    pub(super) shapes: Vec<Shape>,
    pub(super) height: f64,
}

/// An element. Later ones are drawn on top.
#[derive(Debug)]
pub(super) enum Shape {
    /// A rectangle: left, top, width, height, and a tooltip.
    Rectangle {
        at: [f64; 4],
        class: &'static str,
        title: String,
    },
    /// Rectangles of one colour: red, green and blue.
    Cells {
        colour: [u8; 3],
        cells: Vec<[f64; 4]>,
    },
    /// A line through these points.
    Curve {
        points: Vec<(f64, f64)>,
        class: Cow<'static, str>,
    },
    /// Text; `y` is its baseline.
    Words {
        at: (f64, f64),
        class: &'static str,
        anchor: Anchor,
        text: String,
    },
}

/// Part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing {
    /// Adds a rectangle: left, top, width, height, and a tooltip.
    pub(super) fn rectangle(&mut self, at: [f64; 4], class: &'static str, title: &str) {
        self.shapes.push(Shape::Rectangle {
            at,
            class,
            title: title.to_owned(),
        });
    }

    /// Adds rectangles of one colour: left, top, width, height.
    pub(super) fn cells(&mut self, colour: [u8; 3], cells: Vec<[f64; 4]>) {
        self.shapes.push(Shape::Cells { colour, cells });
    }

    /// Adds a line between two points.
    pub(super) fn line(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        class: impl Into<Cow<'static, str>>,
    ) {
        self.curve([from, to].into_iter(), class);
    }

    /// Adds a line through these points.
    pub(super) fn curve(
        &mut self,
        points: impl Iterator<Item = (f64, f64)>,
        class: impl Into<Cow<'static, str>>,
    ) {
        self.shapes.push(Shape::Curve {
            points: points.collect(),
            class: class.into(),
        });
    }

    /// Adds text at a position.
    pub(super) fn words(
        &mut self,
        at: (f64, f64),
        class: &'static str,
        anchor: Anchor,
        text: &str,
    ) {
        self.shapes.push(Shape::Words {
            at,
            class,
            anchor,
            text: text.to_owned(),
        });
    }
}
