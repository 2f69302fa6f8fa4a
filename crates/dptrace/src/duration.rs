//! Times as a user types them, alike on every command.

use std::time::Duration;

/// A number of seconds, or numbers with units: `5`, `0.5`, `5s`, `500ms`, `1m30s`. No time at all is refused: what would end
/// before it begins is a slip.
pub(crate) fn parse(text: &str) -> Result<Duration, &'static str> {
    const WHAT: &str = "expected a time as in 5 or 5s (seconds), 500ms, 1m30s";
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let time = if is_number {
        let seconds = text.parse::<f64>().map_err(|_| WHAT)?;
        Duration::try_from_secs_f64(seconds).map_err(|_| "the time is too long")?
    } else {
        humantime::parse_duration(text).map_err(|_| WHAT)?
    };
    if time.is_zero() { Err("the time must be longer than 0") } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_seconds() {
        let millis = |text| parse(text).map(|time| time.as_millis());
        let texts = ["5", "5s", "500ms", "1m30s", "0.5", "1m 30s", "2h"];
        assert_eq!(texts.map(millis), [5_000, 5_000, 500, 90_000, 500, 90_000, 7_200_000].map(Ok));
        for zero in ["0", "0s", "0.0", "0ms"] {
            assert_eq!(parse(zero), Err("the time must be longer than 0"), "{zero}");
        }
        for slip in ["", "s", "5x", "-5", "1.2.3", "nan", "inf", "1e3", ".", "5 5"] {
            assert!(parse(slip).is_err_and(|why| why.starts_with("expected a time")), "{slip}");
        }
        assert!(parse("99999999999999999999999").is_err() && parse("99999999999999999999s").is_err());
    }
}
