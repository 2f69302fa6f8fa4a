//! Names out of foreign bytes: shown as they are where that is safe, escaped where it is not.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text up to the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

/// Whether the bytes can go to a terminal as they are: printable ASCII. Without a way out of the loop, so that the
/// compiler can look at many bytes at once.
#[inline]
pub fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, b| plain & (0x20..0x7f).contains(b))
}

/// The bytes as text: UTF-8 stays, every other byte and every control character becomes `\xNN`, and so do the characters
/// that turn the direction of what follows.
///
/// A trace can come from anywhere, and a terminal obeys control characters.
pub fn printable(bytes: &[u8]) -> Cow<'_, str> {
    if is_plain(bytes) {
        // SANITY: ASCII is UTF-8; the lossy form borrows it unchanged.
        return String::from_utf8_lossy(bytes);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    push_printable(&mut text, bytes, |_| false);
    Cow::Owned(text)
}

/// As [`printable`], of a text that has lines: their ends stay, and tabs.
pub fn printable_lines(bytes: &[u8]) -> Cow<'_, str> {
    let mut text = String::with_capacity(bytes.len() + 16);
    push_printable(&mut text, bytes, |c| matches!(c, '\n' | '\t'));
    Cow::Owned(text)
}

/// JSON text in which no character is raw that a terminal obeys: writers of JSON leave DEL and U+0080 to U+009F, which
/// RFC 8259 lets stand in strings. They are nowhere else in it.
pub fn printable_json(text: String) -> String {
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

/// Whether a terminal does something for this character rather than show it: control characters, and those that turn the
/// direction of writing (Unicode Standard Annex #9, section 2).
pub fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_printable(text: &mut String, bytes: &[u8], stays: impl Fn(char) -> bool) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_obeyed(c) && !stays(c) {
                let mut buf = [0; 4];
                c.encode_utf8(&mut buf).bytes().for_each(|b| push_escape(text, b));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|&b| push_escape(text, b));
    }
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
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable(b"Malloc0"), "Malloc0");
        assert_eq!(printable("größe".as_bytes()), "größe");
        assert_eq!(printable(b"a\x1b[31mb"), "a\\x1b[31mb");
        assert_eq!(printable(b"a\xffb\n"), "a\\xffb\\x0a");
        assert_eq!(printable("\u{9b}".as_bytes()), "\\xc2\\x9b");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
        assert_eq!(printable_lines(b"a\tb\n\x7f\r\xff"), "a\tb\n\\x7f\\x0d\\xff");
        assert_eq!(printable_json("{\"a\u{7f}\": \"\u{9b}\"}\n".to_owned()), "{\"a\\u007f\": \"\\u009b\"}\n");
    }
}
