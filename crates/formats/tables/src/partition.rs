//! The folders of files: one for each table, day, hour and host, with Hive's naming, so that
//! engines skip files that a query does not need.

use std::fmt::Write as _;

use text::utc;

const HOUR: i64 = 3_600_000_000_000;

/// Returns the hour of a time in nanoseconds since 1970, as hours since then.
pub fn hour_of(nanos: i64) -> i64 {
    nanos.div_euclid(HOUR)
}

/// Returns the folder for a table's rows of this hour and host, below the folder of all tables:
/// `requests/date=2026-11-23/hour=06/host=a`.
pub fn partition(table: &str, hour: i64, host: &str) -> String {
    let when = utc::moment(i128::from(hour) * i128::from(HOUR)).strftime("date=%Y-%m-%d/hour=%H");
    format!("{table}/{when}/host={}", escaped(host))
}

/// Escapes the name of a host for a path. Special characters become `%` with two digits, and an
/// empty name becomes Hive's default, both as in Hive.
pub fn escaped(host: &str) -> String {
    if host.is_empty() {
        return "__HIVE_DEFAULT_PARTITION__".to_owned();
    }
    let mut name = String::new();
    for (at, c) in host.chars().enumerate() {
        // A leading point hides a file, or leads out of the folder.
        let is_plain = c.is_alphanumeric() || matches!(c, '-' | '_') || (c == '.' && at > 0);
        if is_plain && c.is_ascii() {
            name.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let days = [0, 59, 11_016, 19_782, 20_780, -1, 47_540];
        let dates = days.map(|day| partition("t", day * 24, "h"));
        let wanted = [
            "1970-01-01",
            "1970-03-01",
            "2000-02-29",
            "2024-02-29",
            "2026-11-23",
            "1969-12-31",
            "2100-02-28",
        ];
        assert_eq!(
            dates,
            wanted.map(|date| format!("t/date={date}/hour=00/host=h"))
        );
    }

    #[test]
    fn folders_are_named_as_hive_does() {
        let hour = hour_of(1_795_415_400_000_000_000);
        assert_eq!(
            partition("requests", hour, "node-1.example"),
            "requests/date=2026-11-23/hour=06/host=node-1.example"
        );
        assert_eq!(escaped("../a=b c\u{e4}"), "%2E.%2Fa%3Db%20c%C3%A4");
        assert_eq!(
            partition("records", -1, ""),
            "records/date=1969-12-31/hour=23/host=__HIVE_DEFAULT_PARTITION__"
        );
    }
}
