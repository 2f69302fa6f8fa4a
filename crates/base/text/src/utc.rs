//! Times of day in UTC, from nanoseconds since 1970.

use jiff::Timestamp;

/// Returns the moment, for formats of one's own; 1970 if it is out of range.
pub fn moment(real_nanos: i128) -> Timestamp {
    Timestamp::from_nanosecond(real_nanos).unwrap_or_default()
}

/// Formats a moment with microseconds: `2026-06-08T10:17:22.725127Z` (RFC 3339).
pub fn text(real_nanos: i128) -> String {
    moment(real_nanos)
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}

/// Parses a moment of RFC 3339 into nanoseconds since 1970.
pub fn read(text: &str) -> Result<i64, String> {
    let moment: Timestamp = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    i64::try_from(moment.as_nanosecond()).map_err(|_| format!("{text} is too far from 1970"))
}
