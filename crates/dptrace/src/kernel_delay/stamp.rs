//! Times of day, as the report tells them: local, and in UTC.

use jiff::Zoned;
use jiff::tz::TimeZone;

/// Now: `@2026-06-08T12:17:22.725127 (10:17:22 UTC)`.
pub(super) fn stamp() -> String {
    text(&Zoned::now())
}

fn text(now: &Zoned) -> String {
    let utc = now.with_time_zone(TimeZone::UTC);
    format!("@{} ({} UTC)", now.strftime("%Y-%m-%dT%H:%M:%S.%6f"), utc.strftime("%H:%M:%S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_stands_beside_utc() {
        let at = |hours| {
            let offset = jiff::tz::Offset::constant(hours);
            jiff::Timestamp::from_microsecond(1_686_219_442_725_127).unwrap().to_zoned(TimeZone::fixed(offset))
        };
        assert_eq!(text(&at(2)), "@2023-06-08T12:17:22.725127 (10:17:22 UTC)");
        assert_eq!(text(&at(-1)), "@2023-06-08T09:17:22.725127 (10:17:22 UTC)");
    }
}
