//! `tseries`: values over time.

use std::collections::BTreeMap;

use bt_abi::{Clock, SeriesOp};

use crate::lookups::{Lookups, timestamp};

/// Value at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Point {
    /// Time of day, for the text form.
    pub time: String,
    /// Date and time, for JSON.
    pub full_time: String,
    /// Value of the moment; `None` if there was none.
    pub value: Option<i128>,
}

/// Time series of one key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Series {
    /// Moments from the first that has a value to the last of all series of the map.
    pub points: Vec<Point>,
    /// Distance between moments in nanoseconds.
    pub interval: u64,
}

/// Slot of a map's value: one epoch of one CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) value: i128,
    pub(crate) meta: u64,
    pub(crate) epoch: u64,
}

impl Series {
    /// Returns the least and the greatest value; `None` without points. Equal bounds are widened by
    /// one, but 0 not downwards.
    pub fn bounds(&self) -> Option<(i128, i128)> {
        self.points.first()?;
        let values = || self.points.iter().filter_map(|point| point.value);
        let (least, most) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        if least != most {
            return Some((least, most));
        }
        // bpftrace treats 0 as unsigned here, with no number below it.
        Some((if least == 0 { 0 } else { least - 1 }, most + 1))
    }

    /// Returns the unit that suits the interval, and its number of decimal places of a second.
    pub fn unit(&self) -> (&'static str, usize) {
        unit(self.interval)
    }

    /// Builds the series of one key. `slots` are those of all CPUs; `last` is the newest epoch of
    /// the map.
    pub(crate) fn from_slots(
        slots: &[Slot],
        op: SeriesOp,
        (interval, buckets, last): (u64, u32, u64),
        lookups: &dyn Lookups,
    ) -> Self {
        let first = last.saturating_sub(u64::from(buckets).saturating_sub(1));
        let mut epochs: BTreeMap<u64, Vec<Slot>> = BTreeMap::new();
        for slot in slots
            .iter()
            .filter(|slot| slot.epoch >= first && slot.epoch <= last)
        {
            epochs.entry(slot.epoch).or_default().push(*slot);
        }
        let Some(&earliest) = epochs.keys().next() else {
            return Self {
                points: Vec::new(),
                interval,
            };
        };
        let points = (earliest..=last).map(|epoch| {
            let boot = epoch.saturating_mul(interval).cast_signed();
            let nanos = boot.saturating_add(lookups.since_epoch(Clock::Boot));
            let (_, digits) = unit(interval);
            let format = ["%H:%M:%S", "%H:%M:%S.%l", "%H:%M:%S.%f", "%H:%M:%S.%k"][digits / 3];
            let time = |format| timestamp(lookups, nanos, format).unwrap_or_default();
            let value = epochs.get(&epoch).map(|slots| merged(slots, op));
            Point {
                time: time(format),
                full_time: time("%Y-%m-%d %H:%M:%S.%k"),
                value,
            }
        });
        Self {
            points: points.collect(),
            interval,
        }
    }
}

/// Returns the largest unit not above the interval, and its number of decimal places of a second.
fn unit(interval: u64) -> (&'static str, usize) {
    const UNITS: [(u64, &str, usize); 3] = [
        (1_000_000_000, "s", 0),
        (1_000_000, "ms", 3),
        (1000, "μs", 6),
    ];
    UNITS
        .iter()
        .find(|(nanos, ..)| interval >= *nanos)
        .map_or(("ns", 9), |(_, unit, digits)| (unit, *digits))
}

fn merged(slots: &[Slot], op: SeriesOp) -> i128 {
    let values = || slots.iter().map(|slot| slot.value);
    let merged = match op {
        SeriesOp::Last => slots
            .iter()
            .max_by_key(|slot| slot.meta)
            .map(|slot| slot.value),
        SeriesOp::Sum => Some(values().sum()),
        SeriesOp::Min => values().min(),
        SeriesOp::Max => values().max(),
        SeriesOp::Avg => {
            let count: i128 = slots.iter().map(|slot| i128::from(slot.meta)).sum();
            Some(if count == 0 {
                0
            } else {
                values().sum::<i128>() / count
            })
        }
    };
    merged.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(value: i128, meta: u64) -> Slot {
        Slot {
            value,
            meta,
            epoch: 1,
        }
    }

    #[test]
    fn values_of_one_moment_become_one() {
        let slots = [slot(3, 2), slot(-7, 5)];
        let all = [
            SeriesOp::Last,
            SeriesOp::Sum,
            SeriesOp::Min,
            SeriesOp::Max,
            SeriesOp::Avg,
        ];
        assert_eq!(all.map(|op| merged(&slots, op)), [-7, -4, -7, 3, 0]);
    }

    #[test]
    fn intervals_are_said_in_their_unit() {
        assert_eq!(
            [1, 1000, 999_999, 100_000_000, 2_000_000_000].map(|nanos| unit(nanos).0),
            ["ns", "μs", "μs", "ms", "s"]
        );
    }
}
