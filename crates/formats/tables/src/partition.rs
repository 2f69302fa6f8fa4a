//! The folders of files: one for each table, day, hour and host, named as Hive does, so that engines need not open what a query
//! does not ask for.

use std::fmt::Write as _;

const HOUR: i64 = 3_600_000_000_000;
const HOURS_A_DAY: i64 = 24;

/// The hour of a time in nanoseconds since 1970: hours since then.
pub fn hour_of(nanos: i64) -> i64 {
    nanos.div_euclid(HOUR)
}

/// The folder of a table's rows of that hour and host, below the folder of all tables: `requests/date=2026-11-23/hour=06/host=a`.
pub fn partition(table: &str, hour: i64, host: &str) -> String {
    let (year, month, day) = civil(hour.div_euclid(HOURS_A_DAY));
    let of_day = hour.rem_euclid(HOURS_A_DAY);
    format!("{table}/date={year:04}-{month:02}-{day:02}/hour={of_day:02}/host={}", escaped(host))
}

/// The name of a host as part of a path. What may have a meaning there becomes `%` with two digits, as Hive has it; and an empty
/// name the one that Hive has for that.
pub fn escaped(host: &str) -> String {
    if host.is_empty() {
        return "__HIVE_DEFAULT_PARTITION__".to_owned();
    }
    let mut name = String::new();
    for (at, c) in host.chars().enumerate() {
        // A point at the beginning hides a file, or leads out of the folder.
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

/// Year, month and day of a day since 1970, of the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    /// Days of 400 years, and from the 1st of March of the year 0 until 1970.
    const ERA: i64 = 146_097;
    const BEFORE: i64 = 719_468;
    let days = days + BEFORE;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    // Leap days are left out one after another: of 4 years, of 100, of 400. Years begin in March.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + later, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let days = [0, 59, 11_016, 19_782, 20_780, -1, 47_540];
        let dates: Vec<String> = days.iter().map(|day| format!("{:?}", civil(*day))).collect();
        let wanted =
            ["1970, 1, 1", "1970, 3, 1", "2000, 2, 29", "2024, 2, 29", "2026, 11, 23", "1969, 12, 31", "2100, 2, 28"];
        assert_eq!(dates, wanted.map(|date| format!("({date})")));
    }

    #[test]
    fn folders_are_named_as_hive_does() {
        let hour = hour_of(1_795_415_400_000_000_000);
        assert_eq!(
            partition("requests", hour, "node-1.example"),
            "requests/date=2026-11-23/hour=06/host=node-1.example"
        );
        assert_eq!(escaped("../a=b c\u{e4}"), "%2E.%2Fa%3Db%20c%C3%A4");
        assert_eq!(partition("records", -1, ""), "records/date=1969-12-31/hour=23/host=__HIVE_DEFAULT_PARTITION__");
    }
}
