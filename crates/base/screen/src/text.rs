//! Text by the columns that it takes on a terminal. Styles that [`crate::Screen::paint`] added take
//! none. Foreign text has been escaped before (`text::printable`), so that it contains no other
//! escape sequence.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

/// Escape sequence that ends all styles (ECMA-48, SGR 0).
const PLAIN: &str = "\u{1b}[0m";

/// Returns the columns that a text takes.
pub fn columns(text: &str) -> usize {
    if text.is_ascii() && !text.contains('\u{1b}') {
        return text.len();
    }
    Pieces(text).map(|piece| piece.columns).sum()
}

/// Cuts a line to at most `width` columns; a `…` stands for the end that was cut off.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    cut_with(text, width, '…')
}

/// Cuts a line as [`cut`] does, with another mark, which takes one column.
pub(crate) fn cut_with(text: &str, width: usize, mark: char) -> Cow<'_, str> {
    // No text takes more columns than it has bytes.
    if text.len() <= width || columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut used, mut is_styled) = (String::new(), 0, false);
    for piece in Pieces(text) {
        if used + piece.columns >= width {
            break;
        }
        is_styled = if piece.is_style() {
            piece.text != PLAIN
        } else {
            is_styled
        };
        used += piece.columns;
        kept.push_str(piece.text);
    }
    if width > 0 {
        kept.push(mark);
    }
    if is_styled {
        kept.push_str(PLAIN);
    }
    Cow::Owned(kept)
}

/// Shortens a name without styles to at most `width` columns. A `…` stands for its middle, since
/// names of one kind often differ at their ends.
pub fn shorten(text: &str, width: usize) -> Cow<'_, str> {
    if text.len() <= width || columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let Some(room) = width.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let head = cut_with(text, room / 2 + 1, '…');
    let mut room = width - columns(&head);
    let tail = text.char_indices().rev().take_while(|(_, c)| {
        let taken = c.width().unwrap_or(0);
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    });
    let from = tail.last().map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{head}{}", &text[from..]))
}

/// Shortens a name to at most `width` columns. Its longest word, such as an NQN, loses its middle;
/// if that is not enough, all long ones do, so that short ones such as `qid:1` stay complete.
pub fn squeezed(name: &str, width: usize) -> Cow<'_, str> {
    /// Least width of a word: a start, the mark and an end.
    const MIN_WORD_WIDTH: usize = 5;
    /// Least width of a word if it is the only one shortened.
    const MIN_SINGLE_WORD_WIDTH: usize = 12;
    let words: Vec<&str> = name.split(' ').collect();
    let blanks = words.len() - 1;
    let taken = |most: usize| {
        words
            .iter()
            .map(|word| columns(word).min(most))
            .sum::<usize>()
            + blanks
    };
    let longest = words
        .iter()
        .map(|word| columns(word))
        .max()
        .unwrap_or_default();
    if taken(longest) <= width {
        return Cow::Borrowed(name);
    }
    let last_longest = words.iter().rposition(|word| columns(word) == longest);
    let room = width.saturating_sub(columns(name).saturating_sub(longest));
    if let (Some(cut), MIN_SINGLE_WORD_WIDTH..) = (last_longest, room) {
        let mut words: Vec<Cow<'_, str>> = words.into_iter().map(Cow::Borrowed).collect();
        words[cut] = Cow::Owned(shorten(&words[cut], room).into_owned());
        return words.join(" ").into();
    }
    match (MIN_WORD_WIDTH..longest)
        .rev()
        .find(|&most| taken(most) <= width)
    {
        Some(most) => words
            .iter()
            .map(|word| shorten(word, most))
            .collect::<Vec<_>>()
            .join(" ")
            .into(),
        None => shorten(name, width),
    }
}

/// Pads the text with blanks at its end to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    format!(
        "{text}{:missing$}",
        "",
        missing = width.saturating_sub(columns(text))
    )
}

/// Pads the text with blanks at its beginning to `width` columns.
pub fn pad_left(text: &str, width: usize) -> String {
    format!(
        "{:missing$}{text}",
        "",
        missing = width.saturating_sub(columns(text))
    )
}

/// Breaks the text at blanks into lines of at most `width` columns; a longer word has a line of its
/// own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Wraps a message for a terminal of that number of columns: breaks lines that are too long at
/// blanks, and indents the continuation by two blanks. Lines that begin with a blank stay whole,
/// because they are commands to be pasted. The first line begins at the column `start`.
pub fn wrap_message(text: &str, start: usize, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut wrapped = String::new();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            wrapped.push('\n');
        }
        let mut used = if number == 0 { start } else { 0 };
        if line.starts_with(' ') || used + columns(line) <= width {
            wrapped.push_str(line);
            continue;
        }
        for (nth, word) in line.split(' ').enumerate() {
            let blank = usize::from(nth > 0);
            if nth > 0 && used + blank + columns(word) > width {
                wrapped.truncate(wrapped.trim_end_matches(' ').len());
                wrapped.extend(["\n", INDENT]);
                used = INDENT.len();
            } else if nth > 0 {
                wrapped.push(' ');
                used += blank;
            }
            wrapped.push_str(word);
            used += columns(word);
        }
    }
    wrapped
}

/// Character with its columns, or a style, which takes none.
struct Piece<'a> {
    text: &'a str,
    columns: usize,
}

impl Piece<'_> {
    fn is_style(&self) -> bool {
        self.text.starts_with('\u{1b}')
    }
}

struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.0.chars().next()?;
        // A style ends with its `m` (ECMA-48, SGR).
        let style = if first == '\u{1b}' {
            self.0.find('m').map(|end| end + 1)
        } else {
            None
        };
        let (text, rest) = self.0.split_at(style.unwrap_or(first.len_utf8()));
        self.0 = rest;
        Some(Piece {
            text,
            columns: if style.is_some() {
                0
            } else {
                first.width().unwrap_or(0)
            },
        })
    }
}

/// Joins the first `most` parts with commas; `, ...` stands for further ones.
pub fn join_some(parts: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> String {
    let mut text = String::new();
    for (nth, part) in parts.into_iter().enumerate() {
        if nth == most {
            text.push_str(", ...");
            break;
        }
        text.push_str(if nth > 0 { ", " } else { "" });
        text.push_str(part.as_ref());
    }
    text
}

/// Joins each paragraph of a text into one line, which a terminal wraps at its own width.
/// A long line, as in a comment, continues in the next, unless that begins with a word
/// and a colon (`prints:`).
pub fn join_paragraphs(text: &str) -> String {
    const MAX_LINE_CHARS: usize = 80;
    let (mut lines, mut before): (Vec<String>, &str) = (Vec::new(), "");
    for line in text.split('\n') {
        let is_headed = line
            .split(' ')
            .next()
            .is_some_and(|word| word.ends_with(':'));
        match lines.last_mut() {
            Some(last) if before.len() > MAX_LINE_CHARS && !line.is_empty() && !is_headed => {
                last.extend([" ", line.trim_start()]);
            }
            _ => lines.push(line.to_owned()),
        }
        before = line;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_the_columns_that_it_takes() {
        assert_eq!(cut("TCP_REQ_NEW", 11), "TCP_REQ_NEW");
        assert_eq!(cut("TCP_REQ_NEW", 10), "TCP_REQ_N…");
        assert_eq!((cut("ab", 1).as_ref(), cut("ab", 0).as_ref()), ("…", ""));
        assert_eq!(cut("größe", 5), "größe");
        // Wide characters take two columns, and half of one is not shown.
        assert_eq!(
            (
                columns("日本語"),
                cut("日本語", 5).as_ref(),
                cut("日本語", 4).as_ref()
            ),
            (6, "日本…", "日…")
        );
        // A combining accent takes none.
        assert_eq!(
            (columns("e\u{301}"), cut("e\u{301}bc", 3).as_ref()),
            (1, "e\u{301}bc")
        );
    }

    #[test]
    fn a_style_takes_no_column_and_is_ended_where_it_is_cut() {
        let line = "\u{1b}[1mhead\u{1b}[0m and more";
        assert_eq!(columns(line), 13);
        assert_eq!(cut(line, 13), line);
        assert_eq!(cut(line, 8), "\u{1b}[1mhead\u{1b}[0m an…");
        assert_eq!(cut(line, 3), "\u{1b}[1mhe…\u{1b}[0m");
    }

    #[test]
    fn every_cut_fits() {
        let line = "größe 日本語 \u{1b}[31mred\u{1b}[0m e\u{301} end";
        for width in 0..=columns(line) {
            assert!(columns(&cut(line, width)) <= width, "{width}");
        }
        assert_eq!(
            (pad("größe", 7), pad_left("größe", 7)),
            ("größe  ".to_owned(), "  größe".to_owned())
        );
    }

    #[test]
    fn a_name_keeps_both_ends() {
        assert_eq!(
            shorten("nqn.2016-06.io.spdk:cnode1", 26),
            "nqn.2016-06.io.spdk:cnode1"
        );
        assert_eq!(shorten("nqn.2016-06.io.spdk:cnode1", 11), "nqn.2…node1");
        assert_eq!(shorten("日本語日本語", 6), "日…語");
        for width in 0..12 {
            assert!(columns(&shorten("日本語größe", width)) <= width, "{width}");
        }
    }

    #[test]
    fn further_parts_are_three_points() {
        assert_eq!(join_some(["a", "b"], 2), "a, b");
        assert_eq!(join_some(["a", "b", "c"], 2), "a, b, ...");
        assert_eq!(join_some([""; 0], 2), "");
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(
            wrap("run as root, or else", 11),
            ["run as", "root, or", "else"]
        );
        assert_eq!(
            wrap("a incomprehensibilities b", 5),
            ["a", "incomprehensibilities", "b"]
        );
        assert!(wrap("  ", 5).is_empty());
    }

    #[test]
    fn messages_are_wrapped_but_for_their_commands() {
        let wrapped = wrap_message(
            "needs rights: run as root\n    sudo setcap cap_bpf+ep dptrace",
            7,
            20,
        );
        assert_eq!(
            wrapped,
            "needs rights:\n  run as root\n    sudo setcap cap_bpf+ep dptrace"
        );
        assert_eq!(
            wrap_message("the file 'a  b' is none", 6, 21),
            "the file 'a  b'\n  is none"
        );
        assert_eq!(wrap_message("short", 6, 20), "short");
        assert_eq!(
            wrap_message("a /a/very/long/path/of/a/file b", 0, 20),
            "a\n  /a/very/long/path/of/a/file\n  b"
        );
    }

    #[test]
    fn distinguishing_parts_of_names_survive() {
        let name = "127.0.0.1:51292 nqn.2016-06.io.spdk:cnode1 127.0.0.1:4420 qid:12";
        assert_eq!(squeezed(name, 64), name);
        assert_eq!(
            squeezed(name, 56),
            "127.0.0.1:51292 nqn.2016…dk:cnode1 127.0.0.1:4420 qid:12"
        );
        assert_eq!(squeezed(name, 30), "127…292 nqn…de1 127…420 qid:12");
        for width in 0..70 {
            assert!(columns(&squeezed(name, width)) <= width, "{width}");
        }
    }
}
