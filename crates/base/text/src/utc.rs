//! Times of day in UTC, of nanoseconds since 1970.

use jiff::Timestamp;

/// The moment, for formats of one's own.
pub fn moment(real_nanos: i128) -> Timestamp {
    Timestamp::from_nanosecond(real_nanos).unwrap_or_default()
}

/// With microseconds: `2026-06-08T10:17:22.725127Z` (RFC 3339).
pub fn text(real_nanos: i128) -> String {
    moment(real_nanos).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A moment that is written as of RFC 3339, in nanoseconds since 1970.
pub fn read(text: &str) -> Result<i64, String> {
    let moment: Timestamp = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    i64::try_from(moment.as_nanosecond()).map_err(|_| format!("{text} is too far from 1970"))
}
