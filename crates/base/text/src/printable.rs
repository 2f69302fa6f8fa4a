//! Foreign text, escaped so that no terminal obeys it: names in traces and ELF files, paths,
//! arguments that a traced program passes to a probe. All such text passes through here before the
//! program prints it.
//!
//! [`text`] and [`lines`] are for people, [`json_string`] is for JSON that we write ourselves,
//! [`json_document`] for JSON of another writer.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Returns true if the bytes can go to a terminal as they are: printable ASCII.
// Without an early return, so that the compiler can compare many bytes at once.
#[inline]
pub fn is_plain(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .fold(true, |plain, b| plain & (0x20..0x7f).contains(b))
}

/// Returns the bytes as text on one line. UTF-8 stays; every other byte, every control character,
/// and every character that turns the direction of the text after it becomes `\xNN`.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    if is_plain(bytes) {
        // SANITY: ASCII is UTF-8; the lossy form borrows it unchanged.
        return String::from_utf8_lossy(bytes);
    }
    Cow::Owned(escaped(bytes, |_| false))
}

/// Escapes bytes as [`text`] does, but keeps line ends and tabs.
pub fn lines(bytes: &[u8]) -> Cow<'_, str> {
    Cow::Owned(escaped(bytes, |c| matches!(c, '\n' | '\t')))
}

/// Escapes the name of a file as [`text`] does.
pub fn path(path: impl AsRef<Path>) -> String {
    text(path.as_ref().as_os_str().as_encoded_bytes()).into_owned()
}

/// Passes to `push`, piece by piece, the contents of a JSON string between the quotes (RFC 8259,
/// section 7). A byte that is not UTF-8 has no JSON form: it becomes the text `\xNN`.
pub fn json_string(bytes: &[u8], mut push: impl FnMut(&str)) {
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        let mut start = 0;
        for (at, c) in valid
            .char_indices()
            .filter(|&(_, c)| matches!(c, '"' | '\\') || is_obeyed(c))
        {
            push(&valid[start..at]);
            start = at + c.len_utf8();
            match c {
                '"' => push("\\\""),
                '\\' => push("\\\\"),
                '\n' => push("\\n"),
                '\r' => push("\\r"),
                '\t' => push("\\t"),
                c => push(&format!("\\u{:04x}", u32::from(c))),
            }
        }
        push(&valid[start..]);
        chunk
            .invalid()
            .iter()
            .for_each(|byte| push(&format!("\\\\x{byte:02x}")));
    }
}

/// Escapes the characters of JSON text that a terminal obeys. Other writers of JSON leave DEL and
/// U+0080 to U+009F as they are, which RFC 8259 permits in strings. Such characters are nowhere
/// else in it.
pub fn json_document(text: String) -> String {
    if is_plain(text.as_bytes()) || !text.contains(is_obeyed) {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Indented JSON has lines.
        if is_obeyed(c) && c != '\n' {
            // SANITY: writing to a string doesn't fail.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Returns true if a terminal obeys this character rather than show it: control characters, and
/// those that turn the direction of writing (Unicode Standard Annex #9, section 2).
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(bytes: &[u8], stays: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_obeyed(c) && !stays(c) {
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .for_each(|b| push_escape(&mut text, b));
            } else {
                text.push(c);
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|&b| push_escape(&mut text, b));
    }
    text
}

fn push_escape(text: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    text.push_str("\\x");
    text.push(HEX[usize::from(byte >> 4)] as char);
    text.push(HEX[usize::from(byte & 15)] as char);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(text(b"Malloc0"), "Malloc0");
        assert_eq!(text("größe".as_bytes()), "größe");
        assert_eq!(text(b"a\x1b[31mb"), "a\\x1b[31mb");
        assert_eq!(text(b"a\xffb\n"), "a\\xffb\\x0a");
        assert_eq!(text("\u{9b}".as_bytes()), "\\xc2\\x9b");
        assert_eq!(text("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
        assert_eq!(lines(b"a\tb\n\x7f\r\xff"), "a\tb\n\\x7f\\x0d\\xff");
        assert_eq!(path("/tmp/a\n"), "/tmp/a\\x0a");
        assert_eq!(
            json_document("{\"a\u{7f}\": \"\u{9b}\"}\n".to_owned()),
            "{\"a\\u007f\": \"\\u009b\"}\n"
        );
    }

    #[test]
    fn a_json_string_has_every_escape() {
        let string = |bytes: &[u8]| {
            let mut out = String::new();
            json_string(bytes, |piece| out.push_str(piece));
            out
        };
        assert_eq!(string(b"plain"), "plain");
        assert_eq!(string(b""), "");
        assert_eq!(string(b"\"a\\\n\r\t"), r#"\"a\\\n\r\t"#);
        assert_eq!(
            string("größe\u{1b}\u{9b}\u{202e}".as_bytes()),
            "größe\\u001b\\u009b\\u202e"
        );
        assert_eq!(string(b"a\xffb"), r"a\\xffb");
    }
}
