//! A chart as PNG: its shapes drawn into pixels, with smooth edges, and compressed.

mod canvas;
mod letters;

use std::io::{self, Write as _};

use super::draw::{Anchor, Drawing, Shape};
use super::style::{Paint, Style, Styles, colour};
use super::{Chart, WIDTH};
use crate::escape;
use canvas::Canvas;
use letters::Letters;

/// Picture pixels per screen pixel: letters of this size have a raster, and a finer screen shows
/// more.
const SCALE: f64 = 1.5;

/// Encodes the file, 1,680 pixels wide.
///
/// # Errors
///
/// Returns the compressor's error, which cannot occur when writing to memory.
pub(super) fn file(chart: &Chart) -> io::Result<Vec<u8>> {
    let (head, top) = chart.head();
    let [width, height] = [WIDTH, chart.height()].map(|length| (length * SCALE).ceil() as usize);
    let styles = Styles::read();
    let back = match styles.style("rect", "back").fill {
        Some(Paint::Solid(back)) => back,
        _ => [255; 3],
    };
    let mut painter = Painter {
        canvas: Canvas::new(width, height, back),
        letters: Letters::new(),
        styles,
        top: 0.0,
    };
    painter.draw(&head);
    painter.top = top;
    painter.draw(&chart.drawing);
    encode(width, height, painter.canvas.pixels())
}

/// Painter of shapes.
struct Painter {
    canvas: Canvas,
    letters: Letters,
    styles: Styles,
    /// Top of the drawing, in screen pixels.
    top: f64,
}

impl Painter {
    fn draw(&mut self, drawing: &Drawing) {
        for shape in &drawing.shapes {
            match shape {
                Shape::Rectangle { at, class, .. } => {
                    let style = self.styles.style("rect", class);
                    self.rectangle(*at, style.fill);
                }
                Shape::Cells { colour, cells } => {
                    for cell in cells {
                        self.rectangle(*cell, Some(Paint::Solid(*colour)));
                    }
                }
                Shape::Curve { points, class } => {
                    let style = self.styles.style("polyline", class);
                    self.curve(points, &style);
                }
                Shape::Words {
                    at,
                    class,
                    anchor,
                    text,
                } => {
                    let style = self.styles.style("text", class);
                    self.words(*at, *anchor, text, &style);
                }
            }
        }
    }

    fn rectangle(&mut self, [x, y, width, height]: [f64; 4], fill: Option<Paint>) {
        let at = [x, y + self.top, x + width, y + self.top + height].map(|length| length * SCALE);
        match fill {
            Some(Paint::Solid(colour)) => self.canvas.rectangle(at, |_, _| colour),
            Some(Paint::Hatch) => {
                let (line, back) = (colour("--hole"), colour("--unknown"));
                self.canvas
                    .rectangle(at, |x, y| canvas::mixed(back, line, hatch(x, y)));
            }
            None => {}
        }
    }

    fn curve(&mut self, points: &[(f64, f64)], style: &Style) {
        let Some(stroke) = style.stroke else { return };
        let points: Vec<_> = points
            .iter()
            .map(|(x, y)| (x * SCALE, (y + self.top) * SCALE))
            .collect();
        let dashes: Vec<f64> = style.dashes.iter().map(|length| length * SCALE).collect();
        self.canvas
            .curve(&points, style.width * SCALE, &dashes, stroke);
    }

    fn words(&mut self, (x, y): (f64, f64), anchor: Anchor, text: &str, style: &Style) {
        let Some(Paint::Solid(colour)) = style.fill else {
            return;
        };
        let text = letters::shown(&escape::shown(text));
        let width = self.letters.width(&text);
        let left = match anchor {
            Anchor::Start => x * SCALE,
            Anchor::Middle => x * SCALE - width / 2.0,
            Anchor::End => x * SCALE - width,
        };
        let at = (left.round() as i64, ((y + self.top) * SCALE).round() as i64);
        self.letters
            .draw(&mut self.canvas, at, &text, style.is_bold, colour);
    }
}

/// Returns the part of a pixel covered by the hatch of holes: lines that fall to the left, a sixth
/// of the distance wide.
fn hatch(x: usize, y: usize) -> f64 {
    const DISTANCE: f64 = 6.0 * SCALE;
    const LINE: f64 = 1.0 * SCALE;
    let across = (x as f64 + y as f64) / std::f64::consts::SQRT_2 % DISTANCE;
    let from_middle = (across - LINE / 2.0)
        .abs()
        .min((across - DISTANCE - LINE / 2.0).abs());
    (LINE / 2.0 + 0.5 - from_middle).clamp(0.0, 1.0)
}

/// Encodes the file (PNG, third edition, sections 5 and 11): 8 bits for each of red, green and
/// blue. Each row is stored as the difference to the one above (filter 2, "Up"), because rows of a
/// chart are alike.
fn encode(width: usize, height: usize, pixels: &[u8]) -> io::Result<Vec<u8>> {
    let length = width * 3;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let mut above = vec![0; length];
    for row in pixels.chunks_exact(length) {
        let up = row
            .iter()
            .zip(&above)
            .map(|(pixel, above)| pixel.wrapping_sub(*above));
        packed.write_all(&[2].into_iter().chain(up).collect::<Vec<u8>>())?;
        above.copy_from_slice(row);
    }
    let packed = packed.finish()?;
    let [width, height] = [width, height].map(|length| (length as u32).to_be_bytes());
    // 8 bits, RGB; the only compression, the only set of filters, not interlaced.
    let header = [width.as_slice(), &height, &[8, 2, 0, 0, 0]].concat();
    // 192 dots per inch are two pixels per screen pixel; one and a half are 144 dots, which is
    // 5,669 per metre.
    let dots = [
        5669_u32.to_be_bytes().as_slice(),
        &5669_u32.to_be_bytes(),
        &[1],
    ]
    .concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [
        (b"IHDR", header),
        (b"pHYs", dots),
        (b"IDAT", packed),
        (b"IEND", Vec::new()),
    ] {
        let start = file.len() + 4;
        file.extend_from_slice(&(data.len() as u32).to_be_bytes());
        file.extend_from_slice(kind);
        file.extend_from_slice(&data);
        let checksum = crc32fast::hash(&file[start..]);
        file.extend_from_slice(&checksum.to_be_bytes());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::Report;

    /// Decodes the pixels of a file with one chunk of them.
    fn decoded(file: &[u8]) -> (usize, usize, Vec<u8>) {
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| {
            u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let (width, height) = (number(16), number(20));
        let (mut at, mut packed) = (8, &[][..]);
        while at < file.len() {
            let (length, kind) = (number(at), &file[at + 4..at + 8]);
            assert_eq!(
                number(at + 8 + length),
                crc32fast::hash(&file[at + 4..at + 8 + length]) as usize
            );
            if kind == b"IDAT" {
                packed = &file[at + 8..at + 8 + length];
            }
            at += length + 12;
        }
        let mut raw = Vec::new();
        flate2::read::ZlibDecoder::new(packed)
            .read_to_end(&mut raw)
            .expect("it was packed");
        let mut pixels: Vec<u8> = vec![0; width * 3];
        for row in raw.chunks_exact(width * 3 + 1) {
            assert_eq!(row[0], 2);
            let above = pixels.len() - width * 3;
            let row: Vec<u8> = row[1..]
                .iter()
                .zip(&pixels[above..])
                .map(|(it, up)| it.wrapping_add(*up))
                .collect();
            pixels.extend(row);
        }
        (width, height, pixels.split_off(width * 3))
    }

    #[test]
    fn a_file_has_the_colours_of_the_chart_and_its_letters() {
        let mut drawing = Drawing {
            height: 40.0,
            ..Drawing::default()
        };
        drawing.rectangle([100.0, 0.0, 100.0, 20.0], "preempted", "");
        drawing.rectangle([300.0, 0.0, 100.0, 20.0], "unknown", "");
        let chart = Chart::new(
            &Report {
                title: "x".to_owned(),
                ..Report::default()
            },
            "What it is",
            drawing,
        );
        let (width, height, pixels) = decoded(&chart.png().expect("it is packed"));
        assert_eq!(
            (width, height),
            (1680, (chart.height() * 1.5).ceil() as usize)
        );
        assert_eq!(pixels.len(), width * height * 3);
        let pixel = |x: usize, y: usize| [0, 1, 2].map(|n| pixels[(y * width + x) * 3 + n]);
        let top = chart.head().1;
        let inside = ((top + 10.0) * SCALE) as usize;
        assert_eq!(
            (pixel(225, inside), pixel(10, inside)),
            (colour("--preempted"), colour("--card"))
        );
        let hatched: std::collections::BTreeSet<_> = (460..580).map(|x| pixel(x, inside)).collect();
        assert!(
            hatched.contains(&colour("--hole")) && hatched.contains(&colour("--unknown")),
            "{hatched:?}"
        );
        let dark = |from: usize, to: usize| {
            let all = (from..to).flat_map(|y| (0..width).map(move |x| (x, y)));
            all.filter(|(x, y)| pixel(*x, *y) == colour("--text"))
                .count()
        };
        assert!(
            dark(15, 40) > 20,
            "the sentence has {} dark pixels",
            dark(15, 40)
        );
    }

    /// Positions beyond the edges, infinite numbers and NaN draw nothing.
    #[test]
    fn nothing_is_drawn_outside() {
        let mut drawing = Drawing {
            height: 1.0,
            ..Drawing::default()
        };
        for n in [-1e300, -5.0, 1e300, f64::NAN, f64::INFINITY] {
            drawing.rectangle([n, n, n, n], "ran", "");
            drawing.line((n, 0.0), (0.0, n), "grid");
            drawing.curve([(n, n), (3.0, 4.0), (n, 0.0)].into_iter(), "curve s2");
            drawing.words((n, n), "strong", Anchor::End, "a\u{4e2d}\u{202e}→…");
        }
        let chart = Chart::new(&Report::default(), "", drawing);
        decoded(&chart.png().expect("it is packed"));
    }
}
