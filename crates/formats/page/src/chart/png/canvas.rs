//! Pixels, with areas and lines drawn into them. A partly covered pixel is blended by the covered
//! part.

/// Limit on coordinates: anything farther away is in no picture.
const FARTHEST: f64 = 1e5;

/// A straight line between two points.
type Piece = ((f64, f64), (f64, f64));

/// A picture: red, green and blue of each pixel, row by row.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// Mixes two colours; `part` is the share of the second.
pub(super) fn mixed(from: [u8; 3], to: [u8; 3], part: f64) -> [u8; 3] {
    [0, 1, 2].map(|n| {
        (f64::from(from[n]) + (f64::from(to[n]) - f64::from(from[n])) * part).round() as u8
    })
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize, back: [u8; 3]) -> Self {
        Self {
            width,
            height,
            pixels: back.repeat(width * height),
        }
    }

    pub(super) fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Blends a colour into a part of a pixel, from 0 to 1. Pixels outside the picture are ignored.
    pub(super) fn blend(&mut self, x: usize, y: usize, colour: [u8; 3], part: f64) {
        if x >= self.width || y >= self.height {
            return;
        }
        let at = (y * self.width + x) * 3;
        if let Some(pixel) = self.pixels.get_mut(at..at + 3) {
            let new = mixed([pixel[0], pixel[1], pixel[2]], colour, part.clamp(0.0, 1.0));
            pixel.copy_from_slice(&new);
        }
    }

    /// Fills left, top, right, bottom with the colour of each pixel.
    pub(super) fn rectangle(
        &mut self,
        [left, top, right, bottom]: [f64; 4],
        colour: impl Fn(usize, usize) -> [u8; 3],
    ) {
        // The covered part of pixel `n`.
        let covered = |n: usize, from: f64, to: f64| {
            ((n as f64 + 1.0).min(to) - (n as f64).max(from)).max(0.0)
        };
        for y in pixels(top, bottom, self.height) {
            let of_row = covered(y, top, bottom);
            for x in pixels(left, right, self.width) {
                self.blend(x, y, colour(x, y), of_row * covered(x, left, right));
            }
        }
    }

    /// Draws a line through these points. `dashes` are lengths drawn and left out by turns; if
    /// empty, the line is solid.
    pub(super) fn curve(
        &mut self,
        points: &[(f64, f64)],
        width: f64,
        dashes: &[f64],
        colour: [u8; 3],
    ) {
        let is_inside = |(x, y): &(f64, f64)| x.abs() < FARTHEST && y.abs() < FARTHEST;
        let points: Vec<_> = points.iter().copied().filter(is_inside).collect();
        let mut pieces: Vec<Piece> = points.windows(2).map(|two| (two[0], two[1])).collect();
        if dashes.iter().sum::<f64>() >= 1.0 {
            pieces = dashed(&pieces, dashes);
        }
        // Pieces that touch cover a pixel once.
        let mut parts: std::collections::BTreeMap<(usize, usize), f64> =
            std::collections::BTreeMap::new();
        let half = width / 2.0;
        for &(from, to) in &pieces {
            let reach = half + 1.0;
            let rows = pixels(
                from.1.min(to.1) - reach,
                from.1.max(to.1) + reach,
                self.height,
            );
            for y in rows {
                for x in pixels(
                    from.0.min(to.0) - reach,
                    from.0.max(to.0) + reach,
                    self.width,
                ) {
                    let off = distance((x as f64 + 0.5, y as f64 + 0.5), from, to);
                    let part = (half + 0.5 - off).clamp(0.0, 1.0);
                    if part > 0.0 {
                        let most = parts.entry((x, y)).or_default();
                        *most = most.max(part);
                    }
                }
            }
        }
        for ((x, y), part) in parts {
            self.blend(x, y, colour, part);
        }
    }
}

/// Returns the pixels that a range touches, within the picture.
fn pixels(from: f64, to: f64, all: usize) -> std::ops::Range<usize> {
    // NaN becomes 0.
    let within = |n: f64| n.clamp(0.0, all as f64) as usize;
    within(from.floor())..within(to.ceil())
}

/// Returns the distance of a point from a line segment.
fn distance(at: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let square = dx * dx + dy * dy;
    let along = if square > 0.0 {
        ((at.0 - from.0) * dx + (at.1 - from.1) * dy) / square
    } else {
        0.0
    };
    let along = along.clamp(0.0, 1.0);
    (at.0 - from.0 - along * dx).hypot(at.1 - from.1 - along * dy)
}

/// Returns the dashes of a line.
fn dashed(pieces: &[Piece], dashes: &[f64]) -> Vec<Piece> {
    let mut drawn = Vec::new();
    let (mut turn, mut left) = (0, dashes[0]);
    for &(from, to) in pieces {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let at = |along: f64| {
            let part = if length > 0.0 { along / length } else { 0.0 };
            (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            )
        };
        let mut along = 0.0;
        while along < length {
            let end = (along + left.max(0.1)).min(length);
            if turn % 2 == 0 {
                drawn.push((at(along), at(end)));
            }
            left -= end - along;
            if left <= 0.0 {
                turn += 1;
                left = dashes[turn % dashes.len()];
            }
            along = end;
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_pixel_has_that_part_of_the_colour() {
        let mut canvas = Canvas::new(4, 2, [0; 3]);
        canvas.rectangle([0.5, 0.0, 2.0, 1.0], |_, _| [200, 100, 0]);
        assert_eq!(
            canvas.pixels()[..12],
            [100, 50, 0, 200, 100, 0, 0, 0, 0, 0, 0, 0]
        );
        assert!(canvas.pixels()[12..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_line_has_its_width_and_its_dashes() {
        let mut canvas = Canvas::new(40, 9, [0; 3]);
        canvas.curve(&[(0.0, 4.5), (40.0, 4.5)], 3.0, &[10.0, 10.0], [255; 3]);
        let red = |x: usize, y: usize| canvas.pixels()[(y * 40 + x) * 3];
        assert_eq!([2, 3, 4, 5, 6].map(|y| red(5, y)), [0, 255, 255, 255, 0]);
        assert_eq!([5, 15, 25, 35].map(|x| red(x, 4)), [255, 0, 255, 0]);
    }
}
