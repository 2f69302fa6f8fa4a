//! Styles by their purpose, and text in them. They are few, and use the terminal's own sixteen
//! colours, which its user chose to be legible.

use std::fmt::{self, Display, Write as _};

use anstyle::{AnsiColor, Color, Style};

use crate::text::columns;

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// Style of errors.
pub const WRONG: Style = colour(AnsiColor::Red).bold();
/// Style of warnings, and of what is not known.
pub const WARN: Style = colour(AnsiColor::Yellow);
/// Style of what is as it should be.
pub const GOOD: Style = colour(AnsiColor::Green);
/// Style of the largest share or the slowest stage: of what to look at first.
pub const LARGEST: Style = colour(AnsiColor::Yellow).bold();
/// Style of names: of a thread, a connection, a program.
pub const NAME: Style = colour(AnsiColor::Cyan);
/// Style of headlines.
pub const HEAD: Style = Style::new().bold();
/// Style of minor text.
pub const QUIET: Style = Style::new().dimmed();

/// Text in a style: [`crate::Screen::paint`].
#[derive(Clone, Copy, Debug)]
pub struct StyledText<T> {
    style: Style,
    text: T,
}

impl<T> StyledText<T> {
    pub(crate) fn new(style: Style, text: T) -> Self {
        Self { style, text }
    }
}

impl<T: Display> Display for StyledText<T> {
    /// Pads as a format asks, by columns and outside of the style: no blank is underlined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write!(text, "{}", self.text)?;
        let missing = f.width().unwrap_or(0).saturating_sub(columns(&text));
        let left = match f.align() {
            Some(fmt::Alignment::Right) => missing,
            Some(fmt::Alignment::Center) => missing / 2,
            Some(fmt::Alignment::Left) | None => 0,
        };
        let Self { style, .. } = self;
        write!(
            f,
            "{:left$}{style}{text}{style:#}{:right$}",
            "",
            "",
            right = missing - left
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Screen;

    #[test]
    fn text_in_a_style_takes_the_columns_of_the_text() {
        let colourful = Screen::terminal(80, true);
        assert_eq!(
            format!("[{:>4}]", colourful.paint(HEAD, "ab")),
            "[  \u{1b}[1mab\u{1b}[0m]"
        );
        assert_eq!(
            format!("[{:4}]", colourful.paint(HEAD, "größe")),
            "[\u{1b}[1mgröße\u{1b}[0m]"
        );
        for plain in [Screen::terminal(80, false), Screen::default()] {
            assert_eq!(format!("[{:^4}]", plain.paint(WRONG, "ab")), "[ ab ]");
        }
    }
}
