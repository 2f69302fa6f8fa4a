//! The rate of the processor's counter, measured while a trace is read on the machine where it is
//! written.

use std::path::Path;
use std::time::{Duration, Instant};

use scene::{Anchor, BootNanos, Clock, parts_per_million};
use spdk_trace::{TickRate, Ticks};
use sys::clock::{Moment, boot_nanos};

use crate::application::Application;

/// Minimum time between both readings: their brackets of some 40 ns are then 2 millionths of it.
const MIN_MEASURED_TIME: Duration = Duration::from_millis(20);
/// Limit on the difference to the stated rate, in millionths. Beyond it, the trace counts something
/// else.
const MAX_RATE_ERROR_PPM: f64 = 10_000.0;

/// Measurement in progress.
#[derive(Clone, Copy)]
pub struct RateMeasurement {
    start: Moment,
    since: Instant,
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredRate {
    /// Measured rate.
    pub rate: TickRate,
    /// Error of the stated rate, in millionths: positive if it is too high, and times computed with
    /// it too short.
    pub stated_off: f64,
    /// Uncertainty of the measured rate, in millionths.
    pub uncertainty: f64,
}

impl RateMeasurement {
    /// Starts to measure if a process of this machine writes this file: another machine's counter
    /// has another rate.
    pub fn begin(path: &Path) -> Option<Self> {
        let is_written = Application::find(path).pids().next().is_some();
        is_written.then(Self::now)
    }

    /// Starts to measure.
    pub fn now() -> Self {
        Self {
            start: Moment::now(boot_nanos),
            since: Instant::now(),
        }
    }

    /// Returns the result, some milliseconds after the start at least; `None` if the trace's ticks
    /// are not those of the counter.
    pub fn finish(self, stated: TickRate) -> Option<MeasuredRate> {
        std::thread::sleep(MIN_MEASURED_TIME.saturating_sub(self.since.elapsed()));
        let anchors = [self.start, Moment::now(boot_nanos)].map(anchor);
        // A counter that fell back, on a machine that slept, gives no rate.
        let rate = Clock::new(anchors.to_vec()).ok()?.rate();
        let stated_off = parts_per_million(stated, rate);
        let brackets = anchors[0].bracket.0 + anchors[1].bracket.0;
        let uncertainty =
            brackets as f64 / 2.0 / (anchors[1].ticks.0 - anchors[0].ticks.0) as f64 * 1e6;
        (stated_off.abs() <= MAX_RATE_ERROR_PPM).then_some(MeasuredRate {
            rate,
            stated_off,
            uncertainty,
        })
    }
}

/// Converts a reading of both clocks for the timeline.
pub fn anchor(moment: Moment) -> Anchor {
    let Moment {
        ticks,
        nanos,
        bracket,
    } = moment;
    Anchor {
        ticks: Ticks(ticks),
        nanos: BootNanos(nanos),
        bracket: Ticks(bracket),
    }
}

impl std::fmt::Display for MeasuredRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let off = self.stated_off.abs();
        if off <= self.uncertainty.max(1.0) {
            return write!(
                f,
                "as measured here, within {:.0} ppm",
                self.uncertainty.max(1.0).ceil()
            );
        }
        let side = if self.stated_off > 0.0 { "high" } else { "low" };
        write!(
            f,
            "measured here {}: {off:.0} ppm too {side}",
            self.rate.get()
        )
    }
}
