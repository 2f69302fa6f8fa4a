//! Decoder of a terminal's input into keys (ECMA-48 and xterm's extensions, which its successors,
//! tmux and screen send too).

/// Key or action of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Character.
    Char(char),
    /// Letter with Ctrl: `Ctrl('c')`.
    Ctrl(char),
    /// Function key of that number.
    F(u8),
    /// Enter or Return.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Tab with Shift.
    BackTab,
    /// Backspace.
    Backspace,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Left button of the mouse, at that column and line from 0 on.
    Click(u16, u16),
    /// Wheel of the mouse, away from its user.
    WheelUp,
    /// Wheel of the mouse, towards its user.
    WheelDown,
}

/// Decoder of bytes that come in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pending: Vec<u8>,
}

/// Limit on the length of an unfinished sequence: no known key is longer.
const MAX_SEQUENCE_BYTES: usize = 20;

impl Keys {
    /// Takes bytes, and returns the keys that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some(step) = next(&self.pending) {
            self.pending.drain(..step.0);
            keys.extend(step.1);
        }
        if self.pending.len() > MAX_SEQUENCE_BYTES {
            self.pending.clear();
        }
        keys
    }

    /// Ends the input after a pause: returns Escape if a sequence seemed to have begun.
    pub fn rest(&mut self) -> Option<Key> {
        let is_escape = self.pending.first() == Some(&0x1b);
        self.pending.clear();
        is_escape.then_some(Key::Escape)
    }

    /// Returns true if an unfinished sequence waits for more bytes.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// Returns the length of the first key in bytes, and the key itself if it is known. `None` if more
/// bytes are needed.
fn next(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    match *bytes.first()? {
        0x1b => escape(bytes),
        b'\r' | b'\n' => Some((1, Some(Key::Enter))),
        b'\t' => Some((1, Some(Key::Tab))),
        0x7f | 0x08 => Some((1, Some(Key::Backspace))),
        byte @ 1..=26 => Some((1, Some(Key::Ctrl(char::from(b'a' + byte - 1))))),
        byte if byte < 0x20 => Some((1, None)),
        _ => character(bytes),
    }
}

/// Decodes a character of UTF-8.
fn character(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Some((1, None)),
    };
    let piece = bytes.get(..length)?;
    let found = std::str::from_utf8(piece)
        .ok()
        .and_then(|text| text.chars().next());
    Some((
        if found.is_some() { length } else { 1 },
        found.filter(|c| !c.is_control()).map(Key::Char),
    ))
}

/// Decodes a sequence that begins with Escape.
fn escape(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    match *bytes.get(1)? {
        b'[' if bytes.get(2) == Some(&b'[') => {
            // First function keys of the Linux console (console_codes(4)).
            let last = *bytes.get(3)?;
            Some((
                4,
                (b'A'..=b'E')
                    .contains(&last)
                    .then(|| Key::F(last - b'A' + 1)),
            ))
        }
        b'[' => {
            let end = bytes[2..]
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte))?
                + 2;
            Some((end + 1, control(&bytes[2..end], bytes[end])))
        }
        b'O' => {
            let last = *bytes.get(2)?;
            let key = if (b'P'..=b'S').contains(&last) {
                Some(Key::F(last - b'P' + 1))
            } else {
                control(&[], last)
            };
            Some((3, key))
        }
        // Escape itself, and then another key. A key with Alt looks the same, but has no meaning
        // here.
        _ => Some((1, Some(Key::Escape))),
    }
}

/// Decodes a control sequence from its parameters and its last byte.
fn control(parameters: &[u8], last: u8) -> Option<Key> {
    if let Some(report) = parameters.strip_prefix(b"<") {
        return mouse(report, last);
    }
    let first = parameters
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    let number = std::str::from_utf8(first)
        .ok()
        .and_then(|text| text.parse::<u8>().ok());
    match (last, number) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', _) => Some(Key::Right),
        (b'D', _) => Some(Key::Left),
        (b'H', _) | (b'~', Some(1 | 7)) => Some(Key::Home),
        (b'F', _) | (b'~', Some(4 | 8)) => Some(Key::End),
        (b'Z', _) => Some(Key::BackTab),
        (b'~', Some(5)) => Some(Key::PageUp),
        (b'~', Some(6)) => Some(Key::PageDown),
        (b'~', Some(number @ 11..=15)) => Some(Key::F(number - 10)),
        (b'~', Some(number @ 17..=21)) => Some(Key::F(number - 11)),
        (b'~', Some(number @ 23..=24)) => Some(Key::F(number - 12)),
        _ => None,
    }
}

/// Decodes a report of the mouse (xterm's control sequences, SGR 1006): the button with the keys
/// held, and column and line from 1 on.
fn mouse(report: &[u8], last: u8) -> Option<Key> {
    let mut numbers = std::str::from_utf8(report)
        .ok()?
        .split(';')
        .map(str::parse::<u16>);
    let mut next = || numbers.next()?.ok();
    let (button, column, line) = (next()?, next()?.checked_sub(1)?, next()?.checked_sub(1)?);
    // Shift, Meta and Control change nothing.
    match (last, button & !0b1_1100) {
        (b'M', 0) => Some(Key::Click(column, line)),
        (b'M', 64) => Some(Key::WheelUp),
        (b'M', 65) => Some(Key::WheelDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Keys::default().feed(bytes)
    }

    #[test]
    fn keys_are_known() {
        assert_eq!(
            keys(b"a\r\t\x7f\x03"),
            [
                Key::Char('a'),
                Key::Enter,
                Key::Tab,
                Key::Backspace,
                Key::Ctrl('c')
            ]
        );
        assert_eq!(
            keys(b"\x1b[A\x1bOB\x1b[1;5C"),
            [Key::Up, Key::Down, Key::Right]
        );
        assert_eq!(
            keys(b"\x1b[5~\x1b[6~\x1b[1~\x1b[4~\x1b[H\x1bOF"),
            [
                Key::PageUp,
                Key::PageDown,
                Key::Home,
                Key::End,
                Key::Home,
                Key::End
            ]
        );
        assert_eq!(
            keys(b"\x1bOP\x1b[11~\x1b[[A\x1b[21~\x1b[Z"),
            [Key::F(1), Key::F(1), Key::F(1), Key::F(10), Key::BackTab]
        );
        assert_eq!(keys("größe".as_bytes()).len(), 5);
    }

    #[test]
    fn pieces_are_put_together_and_the_rest_is_escape() {
        let mut reader = Keys::default();
        assert!(reader.feed(b"\x1b").is_empty() && reader.is_waiting());
        assert_eq!(reader.feed(b"[A"), [Key::Up]);
        assert!(reader.feed(b"\x1b").is_empty());
        assert_eq!((reader.rest(), reader.rest()), (Some(Key::Escape), None));
        assert_eq!(reader.feed(b"\x1b\x1b[B"), [Key::Escape, Key::Down]);
    }

    #[test]
    fn the_mouse_sends_keys() {
        assert_eq!(
            keys(b"\x1b[<0;12;3M\x1b[<0;12;3m\x1b[<4;1;1M"),
            [Key::Click(11, 2), Key::Click(0, 0)]
        );
        assert_eq!(
            keys(b"\x1b[<64;5;5M\x1b[<65;1000;1000M"),
            [Key::WheelUp, Key::WheelDown]
        );
        // Other buttons, movements, and invalid reports.
        assert!(
            keys(b"\x1b[<2;1;1M\x1b[<32;1;1M\x1b[<0;0;1M\x1b[<0;1M\x1b[<;;M\x1b[<0;99999;1M")
                .is_empty()
        );
    }

    #[test]
    fn anything_else_is_no_key() {
        assert!(keys(b"\x1b[200~\x1b[?1;2c\xff\xfe\x00").is_empty());
        assert_eq!(keys(b"\x1b "), [Key::Escape, Key::Char(' ')]);
        let mut reader = Keys::default();
        for _ in 0..1000 {
            reader.feed(b"\x1b[;;;;");
        }
        assert!(reader.pending.len() <= MAX_SEQUENCE_BYTES + 6);
    }
}
