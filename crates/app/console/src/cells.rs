//! Cells of a full screen, written to standard output as xterm's control sequences.

use std::io::{self, Write as _};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};

use crate::full_screen::{size, write_out};

/// Standard output as a terminal of cells.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// Bytes to write at the next flush.
    bytes: Vec<u8>,
    position: Position,
}

impl Cells {
    fn style(&mut self, cell: &Cell) {
        self.bytes.extend_from_slice(b"\x1b[0");
        let modifiers = [
            (Modifier::BOLD, "1"),
            (Modifier::DIM, "2"),
            (Modifier::UNDERLINED, "4"),
            (Modifier::REVERSED, "7"),
        ];
        for (modifier, code) in modifiers {
            if cell.modifier.contains(modifier) {
                self.bytes.push(b';');
                self.bytes.extend_from_slice(code.as_bytes());
            }
        }
        for (colour, base) in [(cell.fg, 30), (cell.bg, 40)] {
            if let Some(code) = code(colour, base) {
                self.bytes.push(b';');
                self.bytes.extend_from_slice(code.as_bytes());
            }
        }
        self.bytes.push(b'm');
    }

    fn go_to(&mut self, at: Position) {
        let _ = write!(self.bytes, "\x1b[{};{}H", at.y + 1, at.x + 1);
        self.position = at;
    }
}

/// Returns the parameters that set a colour (ECMA-48, SGR; bright colours and the 256 are xterm's).
fn code(colour: Color, base: u8) -> Option<String> {
    let named = |number: u8| Some((base + number).to_string());
    let bright = |number: u8| Some((base + 60 + number).to_string());
    match colour {
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(number) => Some(format!("{};5;{number}", base + 8)),
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
        Color::Reset => None,
    }
}

impl Backend for Cells {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let mut style = None;
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.go_to(Position { x, y });
            }
            let wanted = (cell.fg, cell.bg, cell.modifier);
            if style != Some(wanted) {
                self.style(cell);
                style = Some(wanted);
            }
            let symbol = cell.symbol();
            self.bytes.extend_from_slice(symbol.as_bytes());
            // A symbol may be wider than one column: the next position is then set again.
            next = (symbol.len() == 1).then_some((x + 1, y));
        }
        self.bytes.extend_from_slice(b"\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.bytes.extend_from_slice(b"\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.bytes.extend_from_slice(b"\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.position)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.go_to(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.bytes.extend_from_slice(match region {
            ClearType::All => b"\x1b[2J".as_slice(),
            ClearType::AfterCursor => b"\x1b[0J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[0K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(size())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::default(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = write_out(&self.bytes);
        self.bytes.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_what_a_terminal_understands() {
        let mut cells = Cells::default();
        let mut red = Cell::new("x");
        red.fg = Color::Red;
        red.modifier = Modifier::BOLD;
        let (plain, wide) = (Cell::new("y"), Cell::new("█"));
        let content = [
            (0, 0, &red),
            (1, 0, &red),
            (2, 0, &plain),
            (5, 1, &wide),
            (6, 1, &plain),
        ];
        cells.draw(content.into_iter()).expect("nothing is written");
        let text = String::from_utf8(cells.bytes).expect("UTF-8");
        assert_eq!(
            text,
            "\x1b[1;1H\x1b[0;1;31mxx\x1b[0my\x1b[2;6H█\x1b[2;7Hy\x1b[0m"
        );
        assert_eq!(code(Color::Indexed(226), 40).as_deref(), Some("48;5;226"));
        assert_eq!(code(Color::LightRed, 30).as_deref(), Some("91"));
    }
}
