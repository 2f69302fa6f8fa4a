//! Numbers in the form of all reports: times, shares, sizes and counts.

/// Formats a number of things: `1 record`, `2 records`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Formats a number of times: `once`, `2 times`.
pub fn times(count: u64) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        counted(count, "time")
    }
}

/// Returns the word for one thing or the word for another number of them: `is`, `are`.
pub fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// Formats a number with a comma between thousands: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a time in nanoseconds with its unit and three significant digits: `45.6 us`. It takes at
/// most seven columns up to 999 s.
pub fn time(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..999_500 => (nanos as f64 / 1e3, "us"),
        999_500..999_500_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    let decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.decimals$} {unit}")
}

/// Returns the share that a part has in a whole, from 0 to 1; 0 if the whole is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Formats a share (0 to 1) with that number of decimals, rounded: `34%`. Only nothing is `0%` and
/// only all is `100%`; what lies between them is at least `<1%` and at most `>99%`.
pub fn percent(share: f64, decimals: usize) -> String {
    let percent = share * 100.0;
    let step = (0..decimals).fold(1.0, |step, _| step / 10.0);
    if share > 0.0 && percent <= step / 2.0 {
        format!("<{step:.decimals$}%")
    } else if share < 1.0 && percent >= 100.0 - step / 2.0 {
        format!(">{:.decimals$}%", 100.0 - step)
    } else {
        format!("{percent:.decimals$}%")
    }
}

/// Formats a number of bytes: `3.4 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => counted(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        let numbers = [0, 12, 1_234, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "12", "1,234", "1,234,567"]);
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
        let texts = [0, 1, 2].map(|count| (counted(count, "event"), plural(count, "is", "are")));
        assert_eq!(
            texts.map(|(events, are)| format!("{events} {are}")),
            ["0 events are", "1 event is", "2 events are"]
        );
        let lengths = [
            7,
            1_500,
            45_960,
            999_600,
            46_000_000,
            1_500_000_000,
            12_000_000_000_000,
        ];
        let texts = [
            "7 ns", "1.50 us", "46.0 us", "1.00 ms", "46.0 ms", "1.50 s", "12000 s",
        ];
        assert_eq!(lengths.map(time), texts);
        assert_eq!((share(1, 4), share(1, 0)), (0.25, 0.0));
        assert_eq!(
            [percent(0.125, 0), percent(0.125, 1), percent(0.0, 0)],
            ["12%", "12.5%", "0%"]
        );
        let seen = [share(20, 59), share(1, 59), share(58, 59)];
        assert_eq!(seen.map(|it| percent(it, 0)), ["34%", "2%", "98%"]);
        let sizes = [1, 999, 3_400, 3_400_000, 3_400_000_000].map(size);
        assert_eq!(sizes, ["1 byte", "999 bytes", "3.4 kB", "3.4 MB", "3.4 GB"]);
    }

    #[test]
    fn only_nothing_is_0_percent_and_only_all_is_100() {
        let texts =
            |parts: [u64; 6], decimals| parts.map(|part| percent(share(part, 1_000_000), decimals));
        assert_eq!(
            texts([0, 1, 5_001, 994_999, 999_999, 1_000_000], 0),
            ["0%", "<1%", "1%", "99%", ">99%", "100%"]
        );
        assert_eq!(
            texts([0, 1, 501, 999_499, 999_999, 1_000_000], 1),
            ["0.0%", "<0.1%", "0.1%", "99.9%", ">99.9%", "100.0%"]
        );
        // More than one CPU, or a change.
        assert_eq!([percent(1.004, 0), percent(2.5, 0)], ["100%", "250%"]);
    }
}
