//! Times of day, as the report tells them: local, and in UTC.

use std::time::{Duration, SystemTime};

use sys::clock::{local_offset, real_nanos};

/// Now: `@2026-06-08T12:17:22.725127 (10:17:22 UTC)`.
pub(super) fn stamp() -> String {
    text(real_nanos(), local_offset((real_nanos() / 1_000_000_000).cast_signed()))
}

fn text(nanos: u64, offset: i64) -> String {
    let utc = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
    let shift = Duration::from_secs(offset.unsigned_abs());
    let local = if offset < 0 { utc - shift } else { utc + shift };
    let form = |time: SystemTime| humantime::format_rfc3339_micros(time).to_string();
    let (local, utc) = (form(local), form(utc));
    format!("@{} ({} UTC)", local.trim_end_matches('Z'), utc.get(11..19).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_stands_beside_utc() {
        let nanos = 1_686_219_442_725_127_000;
        assert_eq!(text(nanos, 7200), "@2023-06-08T12:17:22.725127 (10:17:22 UTC)");
        assert_eq!(text(nanos, -3600), "@2023-06-08T09:17:22.725127 (10:17:22 UTC)");
    }
}
