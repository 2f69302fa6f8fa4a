//! Numbers in the form of all reports: times, shares, sizes and counts.

/// Formats a number of things: `1 record`, `2 records`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
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

/// Formats a share (0 to 1) with that number of decimals: `12%`.
pub fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$}%", share * 100.0)
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
        let times = [
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
        assert_eq!(times.map(time), texts);
        assert_eq!((share(1, 4), share(1, 0)), (0.25, 0.0));
        assert_eq!(
            [percent(0.125, 0), percent(0.125, 1), percent(0.0, 0)],
            ["12%", "12.5%", "0%"]
        );
        let sizes = [1, 999, 3_400, 3_400_000, 3_400_000_000].map(size);
        assert_eq!(sizes, ["1 byte", "999 bytes", "3.4 kB", "3.4 MB", "3.4 GB"]);
    }
}
