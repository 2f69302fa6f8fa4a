//! JSON tokens, parsed in place. Lenient where writers differ, strict where an error would be
//! mistaken for data.

use std::borrow::Cow;

/// A syntax error: its offset, and the token expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

/// A string token: the range of its contents, and whether it has escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringToken {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) escaped: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    pub(super) text: &'a [u8],
    pub(super) pos: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8], pos: usize) -> Self {
        Self { text, pos }
    }

    pub(super) fn broken<T>(&self, expected: &'static str) -> Result<T, SyntaxError> {
        Err(SyntaxError {
            at: self.pos,
            expected,
        })
    }

    /// Returns the next byte that is not white space, without taking it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.pos) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.pos += 1;
        }
        None
    }

    /// Takes `byte` if it comes next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.pos += usize::from(there);
        there
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), SyntaxError> {
        if self.take(byte) {
            Ok(())
        } else {
            self.broken(expected)
        }
    }

    #[inline]
    pub(super) fn string(&mut self) -> Result<StringToken, SyntaxError> {
        self.expect(b'"', "a string")?;
        let start = self.pos;
        let mut escaped = false;
        while let Some(&byte) = self.text.get(self.pos) {
            match byte {
                b'"' => {
                    self.pos += 1;
                    return Ok(StringToken {
                        start,
                        end: self.pos - 1,
                        escaped,
                    });
                }
                b'\\' => {
                    escaped = true;
                    self.pos += 2;
                }
                _ => self.pos += 1,
            }
        }
        self.pos = self.text.len();
        self.broken("the end of a string")
    }

    /// Parses a key and its colon.
    #[inline]
    pub(super) fn key(&mut self) -> Result<&'a [u8], SyntaxError> {
        let key = self.string()?;
        self.expect(b':', "a colon")?;
        Ok(&self.text[key.start..key.end])
    }

    /// Parses a number. One outside `u64` becomes the nearest `u64`: `jq` rounds large numbers to
    /// doubles, and some writers print a 4-byte -1 signed.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, SyntaxError> {
        self.peek();
        let start = self.pos;
        let mut number: u64 = 0;
        let mut exact = true;
        while let Some(digit) = self
            .text
            .get(self.pos)
            .map(|b| b.wrapping_sub(b'0'))
            .filter(|d| *d < 10)
        {
            let next = number
                .checked_mul(10)
                .and_then(|n| n.checked_add(u64::from(digit)));
            exact &= next.is_some();
            number = next.unwrap_or(number);
            self.pos += 1;
        }
        let more = matches!(
            self.text.get(self.pos),
            Some(b'.' | b'e' | b'E' | b'-' | b'+')
        );
        if exact && !more && self.pos > start {
            return Ok(number);
        }
        self.odd_number(start)
    }

    #[cold]
    fn odd_number(&mut self, start: usize) -> Result<u64, SyntaxError> {
        let rest = &self.text[start..];
        let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let len = rest.iter().position(|b| !is_part(b)).unwrap_or(rest.len());
        let text = std::str::from_utf8(&rest[..len]).unwrap_or_default();
        self.pos = start;
        if let Ok(signed) = text.parse::<i64>() {
            self.pos += len;
            return Ok(signed.cast_unsigned());
        }
        let Ok(float) = text.parse::<f64>() else {
            return self.broken("a number");
        };
        self.pos += len;
        Ok(float as u64)
    }

    /// Parses `true` or `false`.
    pub(super) fn boolean(&mut self) -> Result<bool, SyntaxError> {
        self.peek();
        let rest = &self.text[self.pos..];
        for (word, value) in [(&b"true"[..], true), (&b"false"[..], false)] {
            if rest.starts_with(word) {
                self.pos += word.len();
                return Ok(value);
            }
        }
        self.broken("true or false")
    }

    /// Skips a value of any kind, and returns its range. Brackets are counted, not matched.
    pub(super) fn skip(&mut self) -> Result<std::ops::Range<usize>, SyntaxError> {
        let Some(first) = self.peek() else {
            return self.broken("a value");
        };
        let start = self.pos;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.skip_nested()?,
            b'}' | b']' | b',' | b':' => return self.broken("a value"),
            _ => {
                // The value ends before any byte that begins or ends another token. Strings and
                // brackets must begin at the same bytes for a reader within an entry and for one
                // that skips it. Otherwise each broken entry could be read up to the document's
                // end.
                let rest = &self.text[self.pos..];
                let end = rest.iter().position(|b| b" \n\r\t,:\"{}[]".contains(b));
                self.pos += end.unwrap_or(rest.len());
            }
        }
        Ok(start..self.pos)
    }

    fn skip_nested(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 0usize;
        while let Some(&byte) = self.text.get(self.pos) {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.pos += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        self.broken("the end of an object or array")
    }

    /// Returns true if another item follows, false at the closing `end`.
    #[inline]
    pub(super) fn more(&mut self, end: u8) -> Result<bool, SyntaxError> {
        if self.take(b',') {
            return Ok(true);
        }
        self.expect(end, "a comma or the end of an object or array")?;
        Ok(false)
    }
}

/// Returns the unescaped contents of a string token. Half a surrogate pair becomes U+FFFD.
pub(super) fn contents(text: &[u8], token: StringToken) -> Cow<'_, [u8]> {
    let raw = &text[token.start..token.end];
    if !token.escaped {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    unescape(raw, &mut out);
    Cow::Owned(out)
}

/// Appends `raw` to `out`, unescaped.
pub(super) fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (code, after) = rest[at + 1..].split_first().unwrap_or((&b'\\', &[]));
        rest = after;
        match code {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => rest = unescape_unicode(after, out),
            other => out.push(*other),
        }
    }
    out.extend_from_slice(rest);
}

fn unescape_unicode<'a>(digits: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let hex = |at: &'a [u8]| {
        let (four, rest) = at.split_at_checked(4)?;
        Some((
            u32::from_str_radix(std::str::from_utf8(four).ok()?, 16).ok()?,
            rest,
        ))
    };
    let Some((unit, mut rest)) = hex(digits) else {
        push_char(None, out);
        return digits;
    };
    let mut code = unit;
    if (0xd800..0xdc00).contains(&unit)
        && let Some((low, after)) = rest.strip_prefix(b"\\u").and_then(hex)
        && (0xdc00..0xe000).contains(&low)
    {
        code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        rest = after;
    }
    push_char(char::from_u32(code), out);
    rest
}

fn push_char(c: Option<char>, out: &mut Vec<u8>) {
    let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_writers() {
        let number = |text: &str| Lexer::new(text.as_bytes(), 0).number();
        assert_eq!(number(" 18446744073709551615,"), Ok(u64::MAX));
        assert_eq!(
            number("18446744073709552000"),
            Ok(u64::MAX),
            "as jq rounds it"
        );
        assert_eq!(number("1.8446744073709552e19"), Ok(u64::MAX));
        assert_eq!(number("-1]"), Ok(u64::MAX));
        assert_eq!(number("4739891890806}"), Ok(4_739_891_890_806));
        assert!(number("null").is_err() && number("").is_err() && number("\"1\"").is_err());
    }

    #[test]
    fn escapes() {
        let text = |json: &str| {
            let token = Lexer::new(json.as_bytes(), 0).string().unwrap();
            String::from_utf8(contents(json.as_bytes(), token).into_owned()).unwrap()
        };
        assert_eq!(
            text(r#""a\"b\\c\/d\n\u0041\u00e9\ud83d\ude00""#),
            "a\"b\\c/d\nA\u{e9}\u{1f600}"
        );
        assert_eq!(text(r#""\ud83d x \u12""#), "\u{fffd} x \u{fffd}12");
    }

    #[test]
    fn a_value_of_any_kind_is_passed_over() {
        let mut lexer = Lexer::new(br#" {"a":[1,{"b":"}]\""}],"c":null} tail"#, 0);
        assert_eq!(lexer.skip(), Ok(1..32));
        assert!(Lexer::new(b"{\"a\":[1,", 0).skip().is_err());
    }
}
