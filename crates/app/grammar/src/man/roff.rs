//! A page in the language of man(7).

use std::fmt::Write as _;

/// Width limit of a source line, in columns, before hyphens are escaped: mandoc prefers lines of at
/// most 80.
const SOURCE: usize = 66;

/// Page under construction.
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    /// Starts a page with its title and name.
    pub(super) fn new(name: &str, about: &str, date: &str, version: &str) -> Self {
        let program = name.split('-').next().unwrap_or_default();
        let mut page = Self {
            text: String::new(),
        };
        page.line(format_args!(
            ".TH {} 1 \"{date}\" \"{program} {version}\" \"User Commands\"",
            escaped(&name.to_uppercase())
        ));
        // No hyphenation and no adjustment: much of the text is names and words to type.
        page.line(format_args!(".nh\n.ad l"));
        page.section("NAME");
        page.line(format_args!("{} \\- {}", escaped(name), escaped(about)));
        page
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // SANITY: writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    pub(super) fn section(&mut self, name: &str) {
        self.line(format_args!(".SH \"{name}\""));
    }

    pub(super) fn subsection(&mut self, name: &str) {
        self.line(format_args!(".SS \"{}\"", escaped(name)));
    }

    /// Returns whether a section has just begun, so that no paragraph needs to be started.
    fn is_at_start(&self) -> bool {
        self.text
            .lines()
            .last()
            .is_some_and(|line| line.starts_with(".S"))
    }

    fn begin_paragraph(&mut self) {
        if !self.is_at_start() {
            self.line(format_args!(".PP"));
        }
    }

    /// Adds a paragraph of filled prose.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.begin_paragraph();
        self.prose(text);
    }

    /// Adds text that starts a line of the page.
    fn prose(&mut self, text: &str) {
        for line in screen::wrap(text, SOURCE) {
            let line = escaped(&line);
            let guard = if line.starts_with(['.', '\'']) {
                "\\&"
            } else {
                ""
            };
            self.line(format_args!("{guard}{line}"));
        }
    }

    /// Adds the usage, one line each: words typed as they are are bold, placeholders are italic.
    pub(super) fn usage(&mut self, lines: &[String]) {
        for (n, line) in lines.iter().enumerate() {
            if n > 0 {
                self.line(format_args!(".br"));
            }
            let words: Vec<_> = line.split(' ').map(usage_word).collect();
            self.line(format_args!("{}", words.join(" ")));
        }
    }

    /// Adds an option's names and value; [`Self::continued`] follows.
    pub(super) fn option(&mut self, names: &[String], value: &str) {
        let names: Vec<_> = names
            .iter()
            .map(|name| format!("\\fB{}\\fR", escaped(name)))
            .collect();
        let value = usage_word(value);
        let blank = if names.is_empty() || value.is_empty() {
            ""
        } else {
            " "
        };
        self.line(format_args!(".TP\n{}{blank}{value}", names.join(", ")));
    }

    /// Adds more text of an option, in a paragraph of its own or not.
    pub(super) fn continued(&mut self, is_new: bool, text: &str) {
        if is_new {
            self.line(format_args!(".IP"));
        }
        self.prose(text);
    }

    /// Adds a name and its meaning.
    pub(super) fn item(&mut self, name: &str, about: &str) {
        self.line(format_args!(".TP\n\\fB{}\\fR", escaped(name)));
        self.prose(about);
    }

    /// Adds another page and its subject.
    pub(super) fn reference(&mut self, name: &str, about: &str) {
        self.line(format_args!(".TP\n\\fB{}\\fR(1)", escaped(name)));
        self.prose(about);
    }

    /// Adds a line of examples: a command that is never filled, then two blanks and its purpose. In
    /// the program's own help the order is reversed.
    pub(super) fn example(&mut self, line: &str) {
        let (first, rest) = line.split_once("  ").unwrap_or((line, ""));
        let (first, rest) = (first.trim(), rest.trim());
        let (command, about) = if rest.starts_with("dptrace ") {
            (rest, first)
        } else {
            (first, rest)
        };
        self.begin_paragraph();
        if !about.is_empty() {
            self.prose(&format!("{}:", capitalized(about)));
            self.line(format_args!(".PP"));
        }
        self.line(format_args!(
            ".RS 4\n.nf\n\\fB{}\\fR\n.fi\n.RE",
            escaped(command)
        ));
    }

    /// Adds the pages to read next: `bpftrace(8)`.
    pub(super) fn see(&mut self, pages: &[&str]) {
        let pages: Vec<_> = pages
            .iter()
            .map(|page| {
                let (name, section) = page.split_once('(').unwrap_or((page, "1)"));
                format!("\\fB{}\\fR({section}", escaped(name))
            })
            .collect();
        self.line(format_args!("{}", pages.join(",\n")));
    }
}

/// Formats a word of a usage line: `<FILE>` and `FILE` are placeholders, `-p` and `trace` are
/// typed.
fn usage_word(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(char) = rest.chars().next() {
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)))
            .unwrap_or(rest.len());
        // Dots at the end are not part of a name.
        let name = rest[..end].trim_end_matches("...");
        if name.is_empty() {
            let taken = if rest.starts_with("...") {
                "..."
            } else {
                &rest[..char.len_utf8()]
            };
            // A placeholder in angle brackets becomes italic instead.
            text.push_str(&escaped(taken).replace(['<', '>'], ""));
            rest = &rest[taken.len()..];
            continue;
        }
        let is_typed = name.starts_with('-') || name.chars().any(char::is_lowercase);
        let font = if is_typed { 'B' } else { 'I' };
        // SANITY: writing to a string does not fail.
        let _ = write!(text, "\\f{font}{}\\fR", escaped(name));
        rest = &rest[name.len()..];
    }
    text
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// Escapes text to print it unchanged: hyphens stay as typed, quotes can be pasted (groff_char(7)).
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' => safe.push_str("\\e"),
            '-' => safe.push_str("\\-"),
            '\'' => safe.push_str("\\(aq"),
            '`' => safe.push_str("\\(ga"),
            '^' => safe.push_str("\\(ha"),
            '~' => safe.push_str("\\(ti"),
            '"' => safe.push_str("\\(dq"),
            _ => safe.push(char),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_bold_and_placeholders_are_italic() {
        assert_eq!(usage_word("<FILE>"), "\\fIFILE\\fR");
        assert_eq!(usage_word("[OPTIONS]"), "[\\fIOPTIONS\\fR]");
        assert_eq!(usage_word("[<NS>]"), "[\\fINS\\fR]");
        assert_eq!(usage_word("[ARG]..."), "[\\fIARG\\fR]...");
        assert_eq!(
            usage_word("<PID>[,<PID>...]"),
            "\\fIPID\\fR[,\\fIPID\\fR...]"
        );
        assert_eq!(usage_word("--name"), "\\fB\\-\\-name\\fR");
        assert_eq!(usage_word("|"), "|");
    }

    #[test]
    fn examples_can_be_pasted_and_no_line_is_a_request() {
        let mut page = Page {
            text: String::new(),
        };
        page.example("dptrace run -e 'BEGIN { exit() }' > a\\b   an example");
        page.paragraph(".TH is no request");
        assert_eq!(
            page.text,
            ".PP\nAn example:\n.PP\n.RS 4\n.nf\n\\fBdptrace run \\-e \\(aqBEGIN { exit() }\\(aq > a\\eb\\fR\n.fi\n.RE\n\
             .PP\n\\&.TH is no request\n"
        );
    }
}
