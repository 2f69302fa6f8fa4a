//! The values of numbers.

use crate::ast::{Base, IntLit, IntSuffix};

/// Suffixes: text, kind, maximum value, and factor. A time suffix converts to nanoseconds
/// (bpftrace's manual, "Literals").
const SUFFIXES: [(&str, IntSuffix, u64, u64); 13] = [
    ("", IntSuffix::None, u64::MAX, 1),
    ("u", IntSuffix::U, u32::MAX as u64, 1),
    ("ul", IntSuffix::Ul, u64::MAX, 1),
    ("ull", IntSuffix::Ull, u64::MAX, 1),
    ("l", IntSuffix::L, i64::MAX as u64, 1),
    ("ll", IntSuffix::Ll, i64::MAX as u64, 1),
    ("ns", IntSuffix::Time, u64::MAX, 1),
    ("us", IntSuffix::Time, u64::MAX, 1_000),
    ("ms", IntSuffix::Time, u64::MAX, 1_000_000),
    ("s", IntSuffix::Time, u64::MAX, 1_000_000_000),
    ("m", IntSuffix::Time, u64::MAX, 60_000_000_000),
    ("h", IntSuffix::Time, u64::MAX, 3_600_000_000_000),
    ("d", IntSuffix::Time, u64::MAX, 86_400_000_000_000),
];

/// Parses a number; the error is the text of a diagnostic.
pub(crate) fn parse(text: &str) -> Result<IntLit, String> {
    let lower = text.to_ascii_lowercase();
    let (base, radix, body) = match lower.as_bytes() {
        [b'0', b'x', ..] => (Base::Hex, 16, &lower[2..]),
        [b'0', b'b', ..] => (Base::Binary, 2, &lower[2..]),
        [b'0', b'0'..=b'9' | b'_', ..] => (Base::Octal, 8, lower.as_str()),
        _ => (Base::Decimal, 10, lower.as_str()),
    };
    let split = body
        .find(|c: char| !(c.is_digit(radix) || c == '_'))
        .unwrap_or(body.len());
    let (digits, rest) = body.split_at(split);
    let mut value = digits_value(digits, radix)?;
    let mut suffix = rest;
    if let (Base::Decimal, Some(power)) = (base, rest.strip_prefix('e')) {
        let split = power
            .find(|c: char| !(c.is_ascii_digit() || c == '_'))
            .unwrap_or(power.len());
        value = scaled(value, digits_value(&power[..split], 10)?)?;
        suffix = &power[split..];
    }
    let unknown = || match (base, suffix.chars().next()) {
        (Base::Octal, Some('8' | '9')) => {
            "a number that begins with 0 is octal, and has no digit 8 or 9".to_owned()
        }
        (Base::Binary, Some('2'..='9')) => {
            "a number that begins with 0b has only the digits 0 and 1".to_owned()
        }
        _ => format!("a number can't end in `{suffix}`"),
    };
    let row = SUFFIXES
        .iter()
        .find(|row| row.0 == suffix)
        .ok_or_else(unknown)?;
    let value = value.checked_mul(row.3).filter(|value| *value <= row.2);
    let value = value
        .ok_or_else(|| format!("the number is too big: at most {} fits here", row.2 / row.3))?;
    Ok(IntLit {
        value,
        base,
        suffix: row.1,
        text: text.to_owned(),
    })
}

fn digits_value(digits: &str, radix: u32) -> Result<u64, String> {
    if digits.ends_with('_') {
        return Err("a number can't end in `_`".to_owned());
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if plain.is_empty() {
        return Err("there are no digits in this number".to_owned());
    }
    u64::from_str_radix(&plain, radix)
        .map_err(|_| format!("the number is too big: at most {} fits here", u64::MAX))
}

/// Returns `value` times ten to the power of `power`.
fn scaled(value: u64, power: u64) -> Result<u64, String> {
    let ten = u32::try_from(power)
        .ok()
        .and_then(|power| 10_u64.checked_pow(power));
    let too_big = || format!("the number is too big: at most {} fits here", u64::MAX);
    ten.and_then(|ten| value.checked_mul(ten))
        .ok_or_else(too_big)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let cases = [
            ("0", 0),
            ("017", 15),
            ("0x1F", 31),
            ("0b101", 5),
            ("1_000_123", 1_000_123),
            ("1e6", 1_000_000),
            ("2e3us", 2_000_000),
            ("5s", 5_000_000_000),
            ("1d", 86_400_000_000_000),
            ("0xffull", 255),
            ("18446744073709551615", u64::MAX),
            ("4294967295u", 4_294_967_295),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text).map(|lit| lit.value), Ok(value), "{text}");
        }
    }

    #[test]
    fn mistakes() {
        let cases = [
            "08",
            "0x",
            "0b2",
            "1_",
            "1e",
            "1e20",
            "18446744073709551616",
            "4294967296u",
            "9223372036854775808ll",
            "5x",
            "99999999999d",
            "1e1_",
        ];
        for text in cases {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
