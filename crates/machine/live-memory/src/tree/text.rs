//! Values as text, as C would write them: one line if they fit, else a tree.

use std::fmt::Write as _;

use ::text::printable;

use super::Tree;

/// Limit on the columns of one line.
const WIDTH: usize = 100;
/// Columns of indentation per level.
const INDENT: usize = 4;
/// Number of equal elements from which on they are shown once.
const REPEATED: usize = 4;

impl Tree {
    /// Formats the value on one line.
    pub fn one_line(&self) -> String {
        match self {
            Self::Number(value) | Self::Enum(value, None) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Char(value) => character(*value),
            Self::Enum(value, Some(name)) => {
                format!("{} ({value})", printable::text(name.as_bytes()))
            }
            Self::Float(value) => value.to_string(),
            Self::Pointer { address: 0, .. } => "NULL".to_owned(),
            Self::Pointer {
                address,
                symbol,
                text,
                ..
            } => {
                let mut line = format!("{address:#x}");
                if let Some(symbol) = symbol {
                    // SANITY: writing to a string doesn't fail, here and below.
                    let _ = write!(line, " <{}>", printable::text(symbol.as_bytes()));
                }
                if let Some(text) = text {
                    let _ = write!(line, " {}", quoted(text));
                }
                line
            }
            Self::Text(text, more) => format!("{}{}", quoted(text), if *more { "..." } else { "" }),
            Self::Bytes(bytes, more) => {
                let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("[{}{}]", hex.join(" "), if *more { " ..." } else { "" })
            }
            Self::Record { members, .. } => {
                let parts: Vec<String> = members
                    .iter()
                    .map(|(name, tree)| format!("{}{}", label(name.as_deref()), tree.one_line()))
                    .collect();
                format!("{{{}}}", parts.join(", "))
            }
            Self::Array { elements, left_out } => {
                let mut parts: Vec<String> = runs(elements)
                    .map(|(tree, count)| times(tree.one_line(), count))
                    .collect();
                if *left_out > 0 {
                    parts.push(format!("... {left_out} more"));
                }
                format!("[{}]", parts.join(", "))
            }
            Self::Cut(ty) => format!("{{{}}}", printable::text(ty.as_bytes())),
            Self::Fault(reason) => format!("<{}>", printable::text(reason.as_bytes())),
        }
    }

    /// Formats the value as lines; the first one goes behind text that takes `used` columns.
    pub fn lines(&self, used: usize) -> String {
        let mut text = String::new();
        self.write(&mut text, 0, used);
        text
    }

    fn write(&self, text: &mut String, level: usize, used: usize) {
        let line = self.one_line();
        let (Self::Record { .. } | Self::Array { .. }) = self else {
            text.push_str(&line);
            return;
        };
        if used + line.len() <= WIDTH {
            text.push_str(&line);
            return;
        }
        let indent = " ".repeat((level + 1) * INDENT);
        match self {
            Self::Record { members, .. } => {
                text.push_str("{\n");
                for (name, tree) in members {
                    let label = label(name.as_deref());
                    let _ = write!(text, "{indent}{label}");
                    tree.write(text, level + 1, indent.len() + label.len());
                    text.push('\n');
                }
                let _ = write!(text, "{}}}", " ".repeat(level * INDENT));
            }
            Self::Array { elements, left_out } => {
                text.push_str("[\n");
                for (tree, count) in runs(elements) {
                    text.push_str(&indent);
                    tree.write(text, level + 1, indent.len());
                    text.push_str(&times(String::new(), count));
                    text.push('\n');
                }
                if *left_out > 0 {
                    let _ = writeln!(text, "{indent}... {left_out} more");
                }
                let _ = write!(text, "{}]", " ".repeat(level * INDENT));
            }
            _ => {}
        }
    }
}

fn label(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| {
        format!("{} = ", printable::text(name.as_bytes()))
    })
}

fn times(text: String, count: usize) -> String {
    if count == 1 {
        text
    } else {
        format!("{text} (x{count})")
    }
}

/// Groups equal neighbours; of `REPEATED` or more, only the first is shown.
fn runs(elements: &[Tree]) -> impl Iterator<Item = (&Tree, usize)> {
    let chunks = elements.chunk_by(|one, other| one == other);
    chunks.flat_map(|run| {
        let is_long = run.len() >= REPEATED;
        let shown = if is_long { 1 } else { run.len() };
        run[..shown]
            .iter()
            .map(move |tree| (tree, if is_long { run.len() } else { 1 }))
    })
}

fn character(value: i128) -> String {
    match u8::try_from(value) {
        Ok(byte @ 0x20..0x7f) => format!("{value} '{}'", char::from(byte)),
        _ => value.to_string(),
    }
}

/// Quotes a text, with the escapes of C.
fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for piece in text.split_inclusive(|byte| b"\"\\\n\t".contains(byte)) {
        let (plain, last) = match piece.split_last() {
            Some((last, plain)) if b"\"\\\n\t".contains(last) => (plain, Some(*last)),
            _ => (piece, None),
        };
        quoted.push_str(&printable::text(plain));
        quoted.push_str(match last {
            Some(b'"') => "\\\"",
            Some(b'\\') => "\\\\",
            Some(b'\n') => "\\n",
            Some(b'\t') => "\\t",
            _ => "",
        });
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_on_one_line() {
        let number = |value| Tree::Number(value);
        let point = Tree::Record {
            ty: "struct p".into(),
            members: vec![(Some("x".into()), number(1)), (None, number(-2))],
        };
        assert_eq!(point.lines(0), "{x = 1, -2}");
        let zeros = Tree::Array {
            elements: vec![number(0); 5],
            left_out: 3,
        };
        assert_eq!(zeros.lines(0), "[0 (x5), ... 3 more]");
        let wide = Tree::Array {
            elements: vec![point, zeros],
            left_out: 0,
        };
        assert_eq!(
            wide.lines(90),
            "[\n    {x = 1, -2}\n    [0 (x5), ... 3 more]\n]"
        );
        assert_eq!(
            Tree::Text(b"a\"\x1b\n\xff".to_vec(), true).one_line(),
            "\"a\\\"\\x1b\\n\\xff\"..."
        );
        assert_eq!(Tree::Char(65).one_line(), "65 'A'");
        assert_eq!(Tree::Bytes(vec![1, 255], false).one_line(), "[01 ff]");
        let pointer = Tree::Pointer {
            address: 16,
            ty: "char *".into(),
            symbol: Some("g+0x1".into()),
            text: Some(b"x".into()),
        };
        assert_eq!(pointer.one_line(), "0x10 <g+0x1> \"x\"");
    }
}
