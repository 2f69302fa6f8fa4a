//! Writes an event: the inverse of the parser.
//!
//! The format has no escapes, because bpftrace writes none, and a backslash is only a backslash. So
//! some characters cannot be read back unchanged: a newline or another control character is written
//! as `\xNN`, as in every listing of dptrace, and so is a quote that would end the string. All
//! other strings are read back unchanged.

use std::fmt::{self, Write};

use text::printable;

use super::{Event, Value, begins_with_name};

/// Writes a hit as a line of a recording, without the newline: `probe: name=0x<hex>, name='<string>'`.
///
/// The names must be letters, digits and underscores, as those of a spec are.
pub fn write_line<'a>(
    out: &mut impl Write,
    probe: &str,
    args: impl IntoIterator<Item = (&'a str, Value<'a>)>,
) -> fmt::Result {
    out.write_str(probe)?;
    let mut separator = ": ";
    for (name, value) in args {
        out.write_str(separator)?;
        separator = ", ";
        match value {
            Value::Int(n) => write!(out, "{name}={n:#x}")?,
            Value::Str(string) => {
                write!(out, "{name}='")?;
                write_string(out, &printable::text(string.as_bytes()))?;
                out.write_char('\'')?;
            }
        }
    }
    Ok(())
}

/// Escapes the quotes at which [`super::end_of_string`] would stop.
fn write_string(out: &mut impl Write, string: &str) -> fmt::Result {
    let mut written = 0;
    for (at, quote) in string.match_indices('\'') {
        let after = &string[at + quote.len()..];
        if after.strip_prefix(", ").is_some_and(begins_with_name) {
            out.write_str(&string[written..at])?;
            out.write_str("\\x27")?;
            written = at + quote.len();
        }
    }
    out.write_str(&string[written..])
}

/// Formats the line of a recording, without the newline. The tsc is the one among the arguments.
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(f, self.probe, self.args.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(string: &str) -> String {
        let mut line = String::new();
        let args = [
            ("tsc", Value::Int(0x10)),
            ("s", Value::Str(string)),
            ("end", Value::Int(u64::MAX)),
        ];
        write_line(&mut line, "add", args).unwrap();
        let around = line
            .strip_prefix("add: tsc=0x10, s='")
            .and_then(|l| l.strip_suffix("', end=0xffffffffffffffff"));
        around.unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    #[test]
    fn only_line_breaking_characters_are_escaped() {
        for same in [
            "",
            "nqn.2014-08.com.example:rack=7,slot=2",
            "it's, a b",
            "'",
            "', ",
            "x', 'y=",
            "\\x41\\",
            "né",
        ] {
            assert_eq!(written(same), same);
        }
        assert_eq!(written("a\nb\tc\u{7f}\0"), "a\\x0ab\\x09c\\x7f\\x00");
        assert_eq!(written("a', b=0x1"), "a\\x27, b=0x1");
        assert_eq!(written("'', b=', c='"), "'\\x27, b=\\x27, c='");
    }
}
