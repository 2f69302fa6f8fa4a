//! Letters: Noto Sans Mono (SIL Open Font License 1.1), rasterized with smooth edges by the crate
//! `noto-sans-mono-bitmap`.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, RasterizedChar, get_raster};

use super::canvas::Canvas;

const SIZE: RasterHeight = RasterHeight::Size20;
/// A letter that ends on the baseline, used to measure it.
const UPRIGHT: char = 'H';

/// The letters of a picture.
pub(super) struct Letters {
    /// Number of raster rows above the baseline.
    above: i64,
    width: i64,
}

impl Letters {
    pub(super) fn new() -> Self {
        let has_ink = |row: &[u8]| row.iter().any(|part| *part > 127);
        let rows: Vec<&[u8]> = raster(UPRIGHT)
            .map(|it| it.rows().collect())
            .unwrap_or_default();
        let above = rows
            .iter()
            .rposition(|row| has_ink(row))
            .map_or(0, |last| signed(last) + 1);
        Self {
            above,
            width: raster(UPRIGHT).map_or(0, |it| signed(it.width())),
        }
    }

    /// Returns the width of a text, in pixels.
    pub(super) fn width(&self, text: &str) -> f64 {
        text.chars().count() as f64 * self.width as f64
    }

    /// Draws text on the baseline `y`, starting at `x`.
    pub(super) fn draw(
        &self,
        canvas: &mut Canvas,
        (x, y): (i64, i64),
        text: &str,
        is_bold: bool,
        colour: [u8; 3],
    ) {
        let top = y.saturating_sub(self.above);
        for (n, letter) in (0..).zip(text.chars()) {
            let Some(raster) = raster(letter) else {
                continue;
            };
            let left = x.saturating_add(self.width * n);
            for (row, parts) in (0..).zip(raster.rows()) {
                for (column, part) in (0..).zip(parts) {
                    // A bold letter is drawn twice, a pixel apart.
                    let also = if is_bold && column > 0 {
                        parts[column - 1]
                    } else {
                        0
                    };
                    let at = (left.saturating_add(signed(column)), top.saturating_add(row));
                    if let (Ok(x), Ok(y)) = (usize::try_from(at.0), usize::try_from(at.1)) {
                        canvas.blend(x, y, colour, f64::from((*part).max(also)) / 255.0);
                    }
                }
            }
        }
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or_default()
}

fn raster(letter: char) -> Option<RasterizedChar> {
    get_raster(letter, FontWeight::Regular, SIZE)
}

/// Replaces letters that the font lacks (all beyond ISO 8859-1) with `?`, and our arrow and
/// ellipsis with ASCII.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '→' => shown.push_str("->"),
            '…' => shown.push_str("..."),
            letter if raster(letter).is_some() => shown.push(letter),
            _ => shown.push('?'),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_there_are_not_are_question_marks() {
        assert_eq!(shown("TCP_REQ → ü…\u{4e2d}\u{200b}é"), "TCP_REQ -> ü...??é");
        // Only the soft hyphen is missing.
        let missing: Vec<char> = (' '..='~')
            .chain('\u{a1}'..='\u{ff}')
            .filter(|it| raster(*it).is_none())
            .collect();
        assert_eq!(missing, ['\u{ad}']);
    }

    #[test]
    fn letters_stand_on_their_line() {
        let letters = Letters::new();
        let mut canvas = Canvas::new(40, 40, [255; 3]);
        letters.draw(&mut canvas, (0, 30), "HHH", false, [0; 3]);
        let dark = |y: usize| {
            canvas.pixels()[y * 120..][..120]
                .iter()
                .any(|byte| *byte < 100)
        };
        assert!(
            dark(29) && !dark(30) && !dark(10),
            "{:?}",
            (0..40).filter(|y| dark(*y)).collect::<Vec<_>>()
        );
    }
}
