//! Numbers for people.

/// With a comma between thousands.
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

/// A part of a whole in percent.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use screen::time;

    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0, 12, 1_234, 1_234_567].map(grouped), ["0", "12", "1,234", "1,234,567"]);
        let times = [7, 1_500, 45_960, 999_600, 46_000_000, 263_000_000, 1_500_000_000];
        assert_eq!(times.map(time), ["7 ns", "1.50 us", "46.0 us", "1.00 ms", "46.0 ms", "263 ms", "1.50 s"]);
    }
}
