//! The tokens of a description: names, numbers, texts and signs, with their lines.

use crate::metadata::MetadataError;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A name, dots included: `packet.header`.
    Name(String),
    Number(u64),
    /// A negative number: its distance below zero.
    Negative(u64),
    Text(String),
    /// One of `{ } [ ] ( ) ; = ,`, or `:` for `:=`.
    Sign(char),
}

/// A token and its line, from 1.
pub(crate) type LocatedToken = (Token, usize);

/// Splits a description into tokens, without comments.
pub(crate) fn tokens(text: &str) -> Result<Vec<LocatedToken>, MetadataError> {
    let mut rest = text;
    let mut line = 1;
    let mut found = Vec::new();
    loop {
        let skipped = rest.len() - skip(rest, line)?.len();
        line += rest[..skipped].matches('\n').count();
        rest = &rest[skipped..];
        if rest.is_empty() {
            return Ok(found);
        }
        let (token, length) = token(rest).map_err(|what| MetadataError::new(line, what))?;
        found.push((token, line));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
}

/// Returns the text after blanks and comments.
fn skip(mut text: &str, line: usize) -> Result<&str, MetadataError> {
    loop {
        text = text.trim_start();
        if let Some(comment) = text.strip_prefix("/*") {
            let Some(end) = comment.find("*/") else {
                return Err(MetadataError::new(line, "a comment that does not end"));
            };
            text = &comment[end + 2..];
        } else if text.starts_with("//") {
            text = text.find('\n').map_or("", |end| &text[end..]);
        } else {
            return Ok(text);
        }
    }
}

/// Returns the token at the start of the text, and its length in bytes.
fn token(text: &str) -> Result<(Token, usize), String> {
    let length = |is_in: fn(char) -> bool| text.find(|c| !is_in(c)).unwrap_or(text.len());
    match text.chars().next() {
        Some('"') => quoted(text),
        Some('0'..='9') => {
            let length = length(|c| c.is_ascii_alphanumeric());
            number(&text[..length]).map(|number| (Token::Number(number), length))
        }
        Some('-') => {
            let digits = text[1..]
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(text.len() - 1);
            number(&text[1..=digits]).map(|number| (Token::Negative(number), digits + 1))
        }
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            let length = length(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            Ok((Token::Name(text[..length].to_owned()), length))
        }
        Some(':') if text.starts_with(":=") => Ok((Token::Sign(':'), 2)),
        Some(c @ ('{' | '}' | '[' | ']' | '(' | ')' | ';' | '=' | ',')) => Ok((Token::Sign(c), 1)),
        other => Err(format!("{other:?} can't stand there")),
    }
}

/// Parses a number as in C: decimal, `0x` or octal; suffixes such as `ULL` do not matter.
fn number(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let parsed = match (digits.strip_prefix("0x"), digits.strip_prefix('0')) {
        (Some(hex), _) => u64::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => u64::from_str_radix(octal, 8),
        _ => digits.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is not a number"))
}

/// Parses a quoted text: `\"` and `\\` are unescaped, other escapes are kept.
fn quoted(text: &str) -> Result<(Token, usize), String> {
    let mut inner = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Token::Text(inner), at + 1)),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => inner.push(c),
                Some((_, c)) => inner.extend(['\\', c]),
                None => break,
            },
            c => inner.push(c),
        }
    }
    Err("a text that does not end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_lines() {
        let found = tokens(
            "/* a\n b */ trace {\n x = -3; // c\n y = \"a\\\"b\"; f := 0x10ULL; g = 010; };",
        )
        .unwrap();
        let names: Vec<_> = found
            .iter()
            .filter(|(token, _)| matches!(token, Token::Name(_)))
            .collect();
        let expected = [("trace", 2), ("x", 3), ("y", 4), ("f", 4), ("g", 4)];
        let expected = expected.map(|(name, line)| (Token::Name(name.to_owned()), line));
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        let values = [
            Token::Negative(3),
            Token::Text("a\"b".to_owned()),
            Token::Number(16),
            Token::Number(8),
        ];
        for value in values {
            assert!(found.iter().any(|(token, _)| *token == value), "{value:?}");
        }
    }

    #[test]
    fn an_invalid_token_is_reported_with_its_line() {
        for (text, line) in [
            ("\n$", 2),
            ("a\n\n\"b", 3),
            ("/* a", 1),
            ("99999999999999999999", 1),
            ("-", 1),
            ("0xz", 1),
        ] {
            assert_eq!(tokens(text).unwrap_err().line(), line, "{text:?}");
        }
    }
}
