//! Conversion between ticks of the processor's counter and nanoseconds of the kernel's clock.

use spdk_trace::{TickRate, Ticks};

/// Nanoseconds since the machine started, of `CLOCK_BOOTTIME`: the kernel's clock that does not
/// stop while the machine sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootNanos(pub u64);

/// Both clocks at one moment, as well as they can be read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Halfway between a reading of the counter before the kernel's clock was read and one after
    /// it.
    pub ticks: Ticks,
    /// Reading of the kernel's clock.
    pub nanos: BootNanos,
    /// Distance between both readings of the counter: the kernel's clock was read at some moment
    /// between them.
    pub bracket: Ticks,
}

/// Reason why anchors make no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// Fewer than the two points that a line needs.
    #[error("{0} readings of both clocks are not enough: at least 2 are needed")]
    TooFew(usize),
    /// Counter that stands still or runs backwards: another CPU's counter, a machine that slept, or
    /// a damaged file.
    #[error(
        "reading {index} of both clocks is not after the one before it, at {ticks} ticks and \
         {nanos} ns"
    )]
    NotRising {
        /// Index of the anchor, counted from 0 in the order of ticks.
        index: usize,
        /// Ticks of the anchor.
        ticks: u64,
        /// Nanoseconds since boot of the anchor.
        nanos: u64,
    },
}

/// Converter of ticks to the kernel's nanoseconds and back: a straight line between each two
/// neighbouring anchors, and the first and the last of these lines beyond the ends.
///
/// The rate that a trace file states is not used. DPDK rounds it to 10 MHz before v24.11 (up to
/// 0.19 % of 2.6 GHz) and to 100 kHz since. Two events ten milliseconds apart would already be 19
/// us off.
#[derive(Clone, Debug)]
pub struct Clock {
    /// At least two anchors, rising in both clocks.
    anchors: Vec<Anchor>,
}

impl Clock {
    /// Creates a clock from anchors in any order. Equal ones count once.
    ///
    /// # Errors
    ///
    /// Fails if there are fewer than two different anchors, or if one clock does not rise with the
    /// other.
    pub fn new(mut anchors: Vec<Anchor>) -> Result<Self, ClockError> {
        anchors.sort_by_key(|anchor| (anchor.ticks, anchor.nanos));
        anchors.dedup();
        for (index, pair) in anchors.windows(2).enumerate() {
            if pair[0].ticks >= pair[1].ticks || pair[0].nanos >= pair[1].nanos {
                let (index, Anchor { ticks, nanos, .. }) = (index + 1, pair[1]);
                return Err(ClockError::NotRising {
                    index,
                    ticks: ticks.0,
                    nanos: nanos.0,
                });
            }
        }
        if anchors.len() < 2 {
            Err(ClockError::TooFew(anchors.len()))
        } else {
            Ok(Self { anchors })
        }
    }

    /// Returns the kernel's time at that tick, to the nearest nanosecond; clamped to the range of
    /// `u64`.
    pub fn nanos(&self, ticks: Ticks) -> BootNanos {
        let [from, to] = self.around(|anchor| anchor.ticks <= ticks);
        let line = Line {
            from: (from.ticks.0, from.nanos.0),
            to: (to.ticks.0, to.nanos.0),
        };
        BootNanos(line.at(ticks.0))
    }

    /// Returns the tick at that time of the kernel, to the nearest tick; clamped to the range of
    /// `u64`.
    pub fn ticks(&self, nanos: BootNanos) -> Ticks {
        let [from, to] = self.around(|anchor| anchor.nanos <= nanos);
        let line = Line {
            from: (from.nanos.0, from.ticks.0),
            to: (to.nanos.0, to.ticks.0),
        };
        Ticks(line.at(nanos.0))
    }

    /// Returns the ticks of its first anchor.
    pub(crate) fn begin(&self) -> Ticks {
        self.anchors[0].ticks
    }

    /// Returns the counter's rate between the first anchor and the last one, in ticks a second.
    pub fn rate(&self) -> TickRate {
        let (first, last) = (self.anchors[0], self.anchors[self.anchors.len() - 1]);
        let line = Line {
            from: (0, 0),
            to: (last.nanos.0 - first.nanos.0, last.ticks.0 - first.ticks.0),
        };
        // SANITY: anchors rise in both clocks, but by less than half a tick a second if a file says
        // so: then it is 1.
        TickRate::new(line.at(1_000_000_000).max(1)).unwrap_or(TickRate::ticks_as_micros())
    }

    /// Returns the bound on the error of [`Self::nanos`] at that tick, in nanoseconds, rounded up:
    /// half of the wider bracket of the anchors around it, and how far the clock may have left the
    /// straight line between them.
    ///
    /// The kernel's clock changes its rate when NTP disciplines it (`adjtimex(2)`), seconds apart,
    /// and keeps it between. If a rate changes by `d` at some moment within `T`, the line through
    /// both ends is at most `d * T / 4` off, and the lines before and after differ from this one by
    /// `d` together. The first and the last line lack one neighbour: there the bound is `d * T`.
    /// Beyond the anchors it grows with the distance.
    pub fn uncertainty(&self, ticks: Ticks) -> u64 {
        let end = self.end_of(|anchor| anchor.ticks <= ticks);
        let [from, to] = [self.anchors[end - 1], self.anchors[end]];
        let own = slope(from, to);
        let before = end
            .checked_sub(2)
            .map(|before| (slope(self.anchors[before], from) - own).abs());
        let after = self
            .anchors
            .get(end + 1)
            .map(|after| (slope(to, *after) - own).abs());
        let (differs, share) = match (before, after) {
            (Some(before), Some(after)) => (before + after, 0.25),
            (Some(one), None) | (None, Some(one)) => (one, 1.0),
            (None, None) => (0.0, 0.0),
        };
        let beyond = from
            .ticks
            .0
            .saturating_sub(ticks.0)
            .max(ticks.0.saturating_sub(to.ticks.0)) as f64;
        let drift = differs * ((to.ticks.0 - from.ticks.0) as f64 * share + beyond);
        let bracket = from.bracket.max(to.bracket).0 as f64;
        (bracket / 2.0 * own + drift).ceil() as u64
    }

    /// Returns the two anchors whose line holds where `is_before` turns false.
    fn around(&self, is_before: impl Fn(&Anchor) -> bool) -> [Anchor; 2] {
        let end = self.end_of(is_before);
        [self.anchors[end - 1], self.anchors[end]]
    }

    /// Returns the index of the later one of these two, from 1.
    fn end_of(&self, is_before: impl Fn(&Anchor) -> bool) -> usize {
        self.anchors
            .partition_point(is_before)
            .clamp(1, self.anchors.len() - 1)
    }
}

/// Returns the nanoseconds a tick between two anchors.
fn slope(from: Anchor, to: Anchor) -> f64 {
    (to.nanos.0 - from.nanos.0) as f64 / (to.ticks.0 - from.ticks.0) as f64
}

/// Returns the deviation of `measured` from `stated`, in parts per million of `measured`. It is
/// positive if the stated rate is too high, so that times computed with it are too short.
pub fn parts_per_million(stated: TickRate, measured: TickRate) -> f64 {
    (stated.get() as f64 - measured.get() as f64) / measured.get() as f64 * 1e6
}

/// Straight line through two points; the first coordinates rise, the second ones do not fall.
struct Line {
    from: (u64, u64),
    to: (u64, u64),
}

impl Line {
    /// Returns the second coordinate at that first one, rounded to the nearest whole number.
    fn at(&self, x: u64) -> u64 {
        let (run, rise) = (
            u128::from(self.to.0 - self.from.0),
            u128::from(self.to.1 - self.from.1),
        );
        // Both factors are below 2^64, and so is the run: the sum fits.
        let steps = (u128::from(x.abs_diff(self.from.0)) * rise + run / 2) / run;
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        if x < self.from.0 {
            self.from.1.saturating_sub(steps)
        } else {
            self.from.1.saturating_add(steps)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn anchor(ticks: u64, nanos: u64) -> Anchor {
        Anchor {
            ticks: Ticks(ticks),
            nanos: BootNanos(nanos),
            bracket: Ticks(40),
        }
    }

    #[test]
    fn each_piece_has_its_own_rate() {
        let clock = Clock::new(vec![
            anchor(1_000, 500),
            anchor(3_000, 1_500),
            anchor(4_000, 2_500),
        ])
        .unwrap();
        for (ticks, nanos) in [
            (0, 0),
            (1_000, 500),
            (2_001, 1_001),
            (3_000, 1_500),
            (3_500, 2_000),
            (5_000, 3_500),
        ] {
            assert_eq!(clock.nanos(Ticks(ticks)), BootNanos(nanos), "{ticks}");
        }
        assert_eq!(clock.ticks(BootNanos(2_000)), Ticks(3_500));
        assert_eq!(clock.rate().get(), 1_500_000_000);
    }

    #[test]
    fn out_of_range_times_saturate() {
        let clock = Clock::new(vec![anchor(1 << 40, 10), anchor((1 << 40) + 1, 1 << 50)]).unwrap();
        assert_eq!(clock.nanos(Ticks(0)), BootNanos(0));
        assert_eq!(clock.nanos(Ticks(u64::MAX)), BootNanos(u64::MAX));
    }

    #[test]
    fn readings_that_make_no_line_are_refused() {
        assert_eq!(
            Clock::new(vec![anchor(1, 1), anchor(1, 1)]).unwrap_err(),
            ClockError::TooFew(1)
        );
        let error = Clock::new(vec![anchor(9, 5), anchor(1, 1), anchor(3, 7)]).unwrap_err();
        assert_eq!(
            error,
            ClockError::NotRising {
                index: 2,
                ticks: 9,
                nanos: 5
            }
        );
        assert!(Clock::new(vec![anchor(1, 1), anchor(1, 2)]).is_err());
    }

    #[test]
    fn uncertainty_is_half_a_bracket_and_the_drift() {
        let second = 1_000_000_000;
        let steady = Clock::new(vec![
            anchor(0, 0),
            anchor(second, second),
            anchor(2 * second, 2 * second),
        ])
        .unwrap();
        assert_eq!(steady.uncertainty(Ticks(second / 2)), 20);
        // 500 ppm more from one second to the next.
        let at = [
            0,
            second,
            2 * second,
            3 * second + 500_000,
            4 * second + 1_000_000,
        ];
        let bent = Clock::new(
            at.into_iter()
                .zip(0..)
                .map(|(nanos, n)| anchor(n * second, nanos))
                .collect(),
        )
        .unwrap();
        assert_eq!(bent.uncertainty(Ticks(second / 2)), 20);
        assert_eq!(bent.uncertainty(Ticks(second + second / 2)), 20 + 125_000);
    }

    #[test]
    fn a_stated_rate_that_is_too_high_is_that_many_millionths_too_high() {
        let rate = |ticks| TickRate::new(ticks).unwrap();
        let off = |stated, measured| parts_per_million(rate(stated), rate(measured)).round() as i64;
        assert_eq!(off(2_600_000_000, 2_595_000_000), 1927);
        assert_eq!(off(999, 1_000), -1000);
    }

    proptest! {
        /// Reads every 100 ms a clock whose rate changes by at most 500 ppm at one moment.
        /// Converted times are within the stated uncertainty of the truth, and both directions
        /// agree.
        #[test]
        fn the_truth_is_within_the_uncertainty(drift in -5e-4..5e-4f64, moment in 0.0..7.0f64, at in 0.0..7.0f64) {
            const CHUNK_TICKS: f64 = 260_000_000.0;
            let truth = |pieces: f64| CHUNK_TICKS / 2.6 * (pieces + drift * (pieces - moment).max(0.0));
            let anchors = (0..8u32).map(|n| anchor(u64::from(n) * CHUNK_TICKS as u64, truth(f64::from(n)).round() as u64));
            let clock = Clock::new(anchors.collect()).unwrap();
            let ticks = Ticks((at * CHUNK_TICKS) as u64);
            let (nanos, right) = (clock.nanos(ticks), truth(ticks.0 as f64 / CHUNK_TICKS));
            prop_assert!((nanos.0 as f64 - right).abs() <= clock.uncertainty(ticks) as f64, "{nanos:?} for {right}");
            prop_assert!(clock.ticks(nanos).0.abs_diff(ticks.0) <= 3);
        }
    }
}
