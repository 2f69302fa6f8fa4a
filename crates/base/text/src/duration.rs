//! Times as users type them, alike on every command. The command line prints the errors after the
//! word that was typed.

use std::time::Duration;

use crate::number::is_digits;

/// Error for a word that is no time.
const WHAT: &str = "expected a time as in 5 or 5s (seconds), 500ms, 1m30s";
/// Error for a word that is no time, if plain numbers are nanoseconds.
const WHAT_NANOS: &str = "expected a time as in 20us, 1ms or 20000 (nanoseconds)";
/// Error for a word that is no time, if plain numbers are microseconds.
const WHAT_MICROS: &str = "expected a time as in 1000 or 10.5 (microseconds), 500us, 20ms, 1s";
/// Error for a word that is no time of whole milliseconds.
const WHAT_MILLIS: &str = "expected whole milliseconds, as in 100, 100ms or 2s";
const TOO_LONG: &str = "the time is too long";

/// Parses a number of seconds, or numbers with units: `5`, `0.5`, `5s`, `500ms`, `1m30s`. A time of
/// 0 is refused: it would end before it begins, so it is a slip.
pub fn parse(text: &str) -> Result<Duration, &'static str> {
    match parse_or_zero(text)? {
        Duration::ZERO => Err("the time must be longer than 0"),
        time => Ok(time),
    }
}

/// Parses a time as [`parse`] does, but accepts 0, for example for a pause.
pub fn parse_or_zero(text: &str) -> Result<Duration, &'static str> {
    if is_decimal(text) {
        let seconds = text.parse::<f64>().map_err(|_| WHAT)?;
        return Duration::try_from_secs_f64(seconds).map_err(|_| TOO_LONG);
    }
    with_units(text, WHAT)
}

/// Parses a time in nanoseconds, for options whose plain numbers are nanoseconds: `20000`, `20us`,
/// `1ms`. It may be 0.
pub fn parse_nanos(text: &str) -> Result<u64, &'static str> {
    if is_digits(text) {
        return text.parse().map_err(|_| TOO_LONG);
    }
    let time = if is_decimal(text) {
        return Err(WHAT_NANOS);
    } else {
        with_units(text, WHAT_NANOS)?
    };
    time.as_nanos().try_into().map_err(|_| TOO_LONG)
}

/// Parses a time in microseconds, for options whose plain numbers are those of a listing: `1000`,
/// `10.500`, `500us`, `1s`. It may be 0.
pub fn parse_micros(text: &str) -> Result<f64, &'static str> {
    // `f64` alone would accept "nan", which no time is before or after.
    match text.parse::<f64>() {
        Ok(us) if us.is_finite() => Ok(us),
        _ => Ok(with_units(text, WHAT_MICROS)?.as_secs_f64() * 1e6),
    }
}

/// Parses a time in milliseconds, for arguments whose plain numbers are milliseconds: `100`,
/// `100ms`, `2s`. It may be 0, but must be a whole number.
pub fn parse_millis(text: &str) -> Result<u64, &'static str> {
    if is_digits(text) {
        return text.parse().map_err(|_| TOO_LONG);
    }
    if is_decimal(text) {
        return Err(WHAT_MILLIS);
    }
    let time = with_units(text, WHAT_MILLIS)?;
    let millis = u64::try_from(time.as_millis()).map_err(|_| TOO_LONG)?;
    if Duration::from_millis(millis) == time {
        Ok(millis)
    } else {
        Err(WHAT_MILLIS)
    }
}

/// Returns true if the text has only digits and points: no unit.
fn is_decimal(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn with_units(text: &str, what: &'static str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => TOO_LONG,
        _ => what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_seconds() {
        let millis = |text| parse(text).map(|time| time.as_millis());
        let texts = ["5", "5s", "500ms", "1m30s", "0.5", "1m 30s", "2h"];
        assert_eq!(
            texts.map(millis),
            [5_000, 5_000, 500, 90_000, 500, 90_000, 7_200_000].map(Ok)
        );
        for zero in ["0", "0s", "0.0", "0ms"] {
            assert_eq!(parse(zero), Err("the time must be longer than 0"), "{zero}");
            assert_eq!(parse_or_zero(zero), Ok(Duration::ZERO), "{zero}");
        }
        for slip in [
            "", "s", "5x", "-5", "1.2.3", "nan", "inf", "1e3", ".", "5 5",
        ] {
            assert!(
                parse(slip).is_err_and(|why| why.starts_with("expected a time")),
                "{slip}"
            );
        }
        for long in ["99999999999999999999999", "99999999999999999999s"] {
            assert_eq!(parse(long), Err(TOO_LONG), "{long}");
        }
    }

    #[test]
    fn plain_numbers_can_be_nanoseconds() {
        let texts = ["0", "20000", "20us", "1ms", "2s"];
        assert_eq!(
            texts.map(parse_nanos),
            [0, 20_000, 20_000, 1_000_000, 2_000_000_000].map(Ok)
        );
        for slip in ["", "x", "nginx", "0.5", "5x", "-1"] {
            assert_eq!(parse_nanos(slip), Err(WHAT_NANOS), "{slip}");
        }
        for long in ["99999999999999999999999", "600000000m"] {
            assert_eq!(parse_nanos(long), Err(TOO_LONG), "{long}");
        }
    }

    #[test]
    fn plain_numbers_can_be_microseconds() {
        let texts = ["0", "10.500", "500us", "20ms", "1s", "1m30s"];
        assert_eq!(
            texts.map(parse_micros),
            [0.0, 10.5, 500.0, 20_000.0, 1e6, 90e6].map(Ok)
        );
        for slip in ["", "nan", "inf", "soon", "5x", "5 5"] {
            assert_eq!(parse_micros(slip), Err(WHAT_MICROS), "{slip}");
        }
        assert_eq!(parse_micros("99999999999999999999s"), Err(TOO_LONG));
    }

    #[test]
    fn plain_numbers_can_be_milliseconds() {
        let texts = ["0", "100", "100ms", "2s", "1m30s", "3000us"];
        assert_eq!(
            texts.map(parse_millis),
            [0, 100, 100, 2000, 90_000, 3].map(Ok)
        );
        for slip in ["", "x", "0.5", "500us", "5x", "-1"] {
            assert_eq!(parse_millis(slip), Err(WHAT_MILLIS), "{slip}");
        }
        for long in ["99999999999999999999999", "99999999999999999999s"] {
            assert_eq!(parse_millis(long), Err(TOO_LONG), "{long}");
        }
    }
}
