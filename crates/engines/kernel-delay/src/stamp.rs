//! Times of day in the report: local, and in UTC.

use jiff::Zoned;
use jiff::tz::TimeZone;
use sys::clock::{monotonic_nanos, real_nanos};
use text::utc;

/// Returns the present time: `@2026-06-08T12:17:22.725127 (10:17:22 UTC)`.
pub fn stamp() -> String {
    text(&Zoned::now())
}

/// Converts a time of the kernel's clock to the time of day in UTC (RFC 3339).
pub fn started(monotonic: u64) -> String {
    time_of_day(monotonic, monotonic_nanos(), real_nanos())
}

fn time_of_day(moment: u64, now: u64, real_now: u64) -> String {
    utc::text(i128::from(real_now) - (i128::from(now) - i128::from(moment)))
}

fn text(now: &Zoned) -> String {
    let utc = now.with_time_zone(TimeZone::UTC);
    format!(
        "@{} ({} UTC)",
        now.strftime("%Y-%m-%dT%H:%M:%S.%6f"),
        utc.strftime("%H:%M:%S")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_the_kernels_clock_is_a_time_of_day() {
        let now = 1_686_219_442_725_127_000;
        assert_eq!(
            time_of_day(5_000_000_000, 6_500_000_000, now),
            "2023-06-08T10:17:21.225127Z"
        );
        assert_eq!(
            time_of_day(6_500_000_000, 5_000_000_000, now),
            "2023-06-08T10:17:24.225127Z"
        );
    }

    #[test]
    fn local_time_stands_beside_utc() {
        let at = |hours| {
            let offset = jiff::tz::Offset::constant(hours);
            jiff::Timestamp::from_microsecond(1_686_219_442_725_127)
                .unwrap()
                .to_zoned(TimeZone::fixed(offset))
        };
        assert_eq!(text(&at(2)), "@2023-06-08T12:17:22.725127 (10:17:22 UTC)");
        assert_eq!(text(&at(-1)), "@2023-06-08T09:17:22.725127 (10:17:22 UTC)");
    }
}
