//! Values of strings: resolves and writes escapes.

use std::fmt::Write;

/// An error in a string: start and end, counted from the string's first byte, and the message.
pub(crate) type Fault = (usize, usize, String);

/// Returns the bytes of a quoted string or character, and the errors in it.
pub(crate) fn unquote(quoted: &str) -> (Vec<u8>, Vec<Fault>) {
    let mut out = Vec::with_capacity(quoted.len());
    let mut faults = Vec::new();
    let quote = quoted.chars().next().unwrap_or('"');
    let mut at = quote.len_utf8();
    while let Some(c) = quoted[at..].chars().next() {
        match c {
            '\\' => at += escape(quoted, at, &mut out, &mut faults),
            _ if c == quote => return (out, faults),
            _ => {
                at += c.len_utf8();
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    faults.push((
        0,
        quoted.len(),
        format!("there is no `{quote}` at the end of this text, on its line"),
    ));
    (out, faults)
}

/// Resolves the escape at `at`, and returns its length.
fn escape(quoted: &str, at: usize, out: &mut Vec<u8>, faults: &mut Vec<Fault>) -> usize {
    let body = &quoted[at + 1..];
    let Some(c) = body.chars().next() else {
        return 1;
    };
    let simple = match c {
        'n' => Some(b'\n'),
        't' => Some(b'\t'),
        'r' => Some(b'\r'),
        '"' | '\'' | '\\' => Some(c as u8),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return 2;
    }
    match c {
        '0'..='7' => {
            let length = body
                .bytes()
                .take(3)
                .take_while(|b| (b'0'..=b'7').contains(b))
                .count();
            match u8::from_str_radix(&body[..length], 8) {
                Ok(byte) => out.push(byte),
                Err(_) => faults.push((
                    at,
                    at + 1 + length,
                    "an octal escape goes up to `\\377`".to_owned(),
                )),
            }
            1 + length
        }
        'x' | 'X' => {
            let length = body
                .bytes()
                .skip(1)
                .take(2)
                .take_while(u8::is_ascii_hexdigit)
                .count();
            match u8::from_str_radix(&body[1..=length], 16) {
                Ok(byte) => out.push(byte),
                Err(_) => faults.push((
                    at,
                    at + 2,
                    "`\\x` needs one or two hexadecimal digits".to_owned(),
                )),
            }
            2 + length
        }
        _ => {
            let known = "an escape is one of `\\n \\t \\r \\\" \\\\ \\NNN \\xNN`";
            faults.push((
                at,
                at + 1 + c.len_utf8(),
                format!("there is no escape `\\{c}`: {known}"),
            ));
            1 + c.len_utf8()
        }
    }
}

/// Returns the bytes as a quoted string.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                _ if c.is_control() => c
                    .encode_utf8(&mut [0; 4])
                    .bytes()
                    .for_each(|byte| hex(&mut out, byte)),
                _ => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(&mut out, *byte));
    }
    out.push('"');
    out
}

fn hex(out: &mut String, byte: u8) {
    // SANITY: writing to a string doesn't fail.
    let _ = write!(out, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let (bytes, faults) = unquote(r#""a\n\t\r\"\\\0\101\x41\xfféx""#);
        assert_eq!(bytes, b"a\n\t\r\"\\\0AA\xff\xc3\xa9x");
        assert_eq!(faults, []);
    }

    #[test]
    fn mistakes_are_placed() {
        for (text, from, to) in [
            (r#""a\q""#, 2, 4),
            (r#""\400""#, 1, 5),
            (r#""\xg""#, 1, 3),
            ("\"ab", 0, 3),
            ("\"a\\", 0, 3),
        ] {
            let (_, faults) = unquote(text);
            assert_eq!(
                faults.iter().map(|f| (f.0, f.1)).collect::<Vec<_>>(),
                [(from, to)],
                "{text}"
            );
        }
    }

    #[test]
    fn quoted_text_reads_as_itself() {
        let all: Vec<u8> = (0..=255).chain("é漢\u{7f}\u{85}".bytes()).collect();
        assert_eq!(unquote(&quote(&all)), (all, Vec::new()));
    }
}
