//! Abilities of a terminal, for those who draw a full screen.

/// Colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// None, or they are not wanted.
    None,
    /// The sixteen that its user chose.
    Sixteen,
    /// Palette of 256 colours.
    Many,
}

/// Abilities of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct TerminalCaps {
    /// Colours of the terminal.
    pub colours: Colours,
    /// True if it shows more than ASCII.
    pub unicode: bool,
    /// True if it shows eighths of a block, which the font of Linux's console lacks.
    pub eighths: bool,
}
