//! Reads an operand's text from left to right.

/// The text that is left to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

/// A sum of numbers and at most one symbol, as in `52+CheckpointStats` or `sym+8-4`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sum<'a> {
    pub(super) symbol: Option<&'a str>,
    pub(super) number: i64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest.is_empty()
    }

    /// Takes this text if it comes next; blanks before it do not count.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes a name of letters and digits; it may be empty.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip_blanks();
        self.take_while(|c| c.is_ascii_alphanumeric())
    }

    /// Takes a symbol's name as the assembler allows it without quotes: it does not begin with a
    /// digit.
    pub(super) fn symbol(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        Some(self.take_while(in_name)).filter(|name| !name.is_empty())
    }

    /// Takes a number: decimal or hex, negative or not, of 64 bits either signed or unsigned.
    pub(super) fn number(&mut self) -> Option<i64> {
        let before = *self;
        let negative = self.take("-");
        let number = self
            .magnitude()
            .and_then(|magnitude| signed(magnitude, negative));
        if number.is_none() {
            *self = before;
        }
        number
    }

    /// Takes a sum of numbers and at most one symbol. An empty sum is 0.
    pub(super) fn sum(&mut self) -> Option<Sum<'a>> {
        let mut sum = Sum {
            symbol: None,
            number: 0,
        };
        let mut first = true;
        loop {
            let negative = self.take("-");
            let sign = negative || self.take("+");
            self.skip_blanks();
            if let Some(magnitude) = self.magnitude() {
                sum.number = sum.number.wrapping_add(signed(magnitude, negative)?);
            } else if let Some(name) = self.symbol() {
                if negative || sum.symbol.replace(name).is_some() {
                    return None;
                }
            } else {
                return (first && !sign).then_some(sum);
            }
            first = false;
            self.skip_blanks();
            if !self.rest.starts_with(['+', '-']) {
                return Some(sum);
            }
        }
    }

    fn magnitude(&mut self) -> Option<u64> {
        let before = *self;
        let (digits, radix) = if self.take("0x") || self.take("0X") {
            (self.take_while(|c| c.is_ascii_hexdigit()), 16)
        } else {
            (self.take_while(|c| c.is_ascii_digit()), 10)
        };
        let number = u64::from_str_radix(digits, radix).ok();
        if number.is_none() {
            *self = before;
        }
        number
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// Returns the number with its sign. A positive number may take all 64 bits: a compiler can write
/// one constant either way.
fn signed(magnitude: u64, negative: bool) -> Option<i64> {
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        Some(magnitude.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let check = |text, wanted| assert_eq!(Cursor::new(text).number(), wanted, "{text}");
        check("42", Some(42));
        check("-7", Some(-7));
        check("0x41", Some(0x41));
        check("-0x8", Some(-8));
        check("9223372036854775807", Some(i64::MAX));
        check("-9223372036854775808", Some(i64::MIN));
        check("18446744073709551615", Some(-1));
        check("18446744073709551616", None);
        check("-9223372036854775809", None);
        check("-", None);
        check("x", None);
    }

    #[test]
    fn sums() {
        let check = |text, wanted: Option<(Option<&str>, i64)>| {
            let wanted = wanted.map(|(symbol, number)| Sum { symbol, number });
            assert_eq!(Cursor::new(text).sum(), wanted, "{text}");
        };
        check("", Some((None, 0)));
        check("-96", Some((None, -96)));
        check("NBuffers", Some((Some("NBuffers"), 0)));
        check("52+CheckpointStats", Some((Some("CheckpointStats"), 52)));
        check("CheckpointStats+52", Some((Some("CheckpointStats"), 52)));
        check("stats-8+16", Some((Some("stats"), 8)));
        check("-4+stats", Some((Some("stats"), -4)));
        check("8-", None);
        check("-stats", None);
        check("one+two", None);
    }
}
