//! Figures in words.

use screen::time;

use crate::model::Lost;

/// Formats the kernel time; `None` if it is 0.
pub(crate) fn lost((least, most): Lost) -> Option<String> {
    let (from, to) = (time(least), time(most));
    match (least, most) {
        (_, 0) => None,
        (0, _) => Some(format!("at most {to}")),
        _ if from == to => Some(to),
        _ => Some(format!("{from} to {to}")),
    }
}

/// Formats a number with groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share in percent, with one digit after the point, so that a column of them is aligned.
pub(crate) fn percent(part: u64, of: u64) -> String {
    let percent = if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 };
    match percent {
        0.0 => "0 %".to_owned(),
        _ if percent < 0.1 => "<0.1 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            (grouped(1), grouped(1_000), grouped(12_345_678)),
            ("1".into(), "1,000".into(), "12,345,678".into())
        );
        assert_eq!(
            (lost((0, 0)), lost((0, 2_000)), lost((5, 5))),
            (None, Some("at most 2.00 us".into()), Some("5 ns".into()))
        );
        assert_eq!(
            (percent(0, 0), percent(1, 1_000_000), percent(1, 3)),
            ("0 %".into(), "<0.1 %".into(), "33.3 %".into())
        );
    }
}
