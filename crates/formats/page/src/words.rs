//! Figures in words.

use screen::time;

use crate::model::TimeBounds;

/// Formats the kernel time; `None` if it is 0.
pub(crate) fn lost((least, most): TimeBounds) -> Option<String> {
    let (from, to) = (time(least), time(most));
    match (least, most) {
        (_, 0) => None,
        (0, _) => Some(format!("at most {to}")),
        _ if from == to => Some(to),
        _ => Some(format!("{from} to {to}")),
    }
}

/// Formats a share in percent, with one digit after the point, so that a column of them is aligned.
pub(crate) fn percent(part: u64, of: u64) -> String {
    match screen::share(part, of) {
        0.0 => screen::percent(0.0, 0),
        share => screen::percent(share, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            (lost((0, 0)), lost((0, 2_000)), lost((5, 5))),
            (None, Some("at most 2.00 us".into()), Some("5 ns".into()))
        );
        assert_eq!(
            (percent(0, 0), percent(1, 1_000_000), percent(1, 3)),
            ("0%".into(), "<0.1%".into(), "33.3%".into())
        );
    }
}
