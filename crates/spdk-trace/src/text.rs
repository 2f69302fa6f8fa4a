//! Names out of foreign bytes: shown as they are where that is safe, escaped where it is not.

use std::borrow::Cow;

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

/// The bytes as text: UTF-8 stays, every other byte and every control character becomes `\xNN`.
///
/// A trace can come from anywhere, and a terminal obeys control characters.
pub fn printable(bytes: &[u8]) -> Cow<'_, str> {
    if is_plain(bytes) {
        // SANITY: ASCII is UTF-8; the lossy form borrows it unchanged.
        return String::from_utf8_lossy(bytes);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                let mut buf = [0; 4];
                c.encode_utf8(&mut buf).bytes().for_each(|b| push_escape(&mut text, b));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|&b| push_escape(&mut text, b));
    }
    Cow::Owned(text)
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
    }
}
