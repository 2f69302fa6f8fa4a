//! Words of commands that are printed to be pasted into a shell.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::printable;

/// Returns a word in a form that a shell takes as one: unchanged if a shell obeys nothing in it,
/// quoted otherwise. Characters that must not reach a terminal are written in `$'...'`, which bash
/// and zsh read.
pub fn word(word: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> Cow<'_, str> {
    let bytes = word.as_ref().as_encoded_bytes();
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(b);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes);
    }
    let is_text = printable::text(bytes).as_bytes() == bytes;
    if is_text {
        return Cow::Owned(format!(
            "'{}'",
            String::from_utf8_lossy(bytes).replace('\'', "'\\''")
        ));
    }
    let mut quoted = String::from("$'");
    for &byte in bytes {
        // SANITY: writing to a string does not fail.
        let _ = match byte {
            b'\'' | b'\\' => write!(quoted, "\\{}", char::from(byte)),
            0x20..0x7f => write!(quoted, "{}", char::from(byte)),
            _ => write!(quoted, "\\x{byte:02x}"),
        };
    }
    quoted.push('\'');
    Cow::Owned(quoted)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        assert_eq!(
            word("/dev/shm/nvmf_trace.pid4711"),
            "/dev/shm/nvmf_trace.pid4711"
        );
        assert_eq!(
            (word("owner.qid>0"), word("")),
            ("'owner.qid>0'".into(), "''".into())
        );
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(
            word(OsStr::from_bytes(b"a\x1b[m\xff'\\")),
            "$'a\\x1b[m\\xff\\'\\\\'"
        );
        for plain in ["$(id) `id`", "größe", "a\\b\"c", "*?[]~!#&;|<>(){}"] {
            let printed = testkit::command("sh")
                .arg("-c")
                .arg(format!("printf %s {}", word(plain)))
                .output();
            assert_eq!(
                printed.map(|it| it.stdout).unwrap_or_default(),
                plain.as_bytes(),
                "{plain}"
            );
        }
    }
}
