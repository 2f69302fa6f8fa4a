//! Colours and signs, by what a terminal can show.

use ratatui_core::style::{Color, Modifier, Style};

use crate::sample::{CpuUse, Part, Phase};

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

/// Style of headlines and keys.
pub(super) const HEAD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Style of minor text.
pub(super) const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
/// Style of the selection.
pub(super) const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Shades of the heat map with 256 colours, from few to many: dark blue to yellow. Their lightness
/// grows, so that all eyes see the difference.
const SHADES: [u8; 8] = [17, 18, 54, 90, 126, 167, 208, 226];
/// Shades of the heat map with the sixteen colours.
const SIXTEEN_COLOUR_SHADES: [Color; 4] = [
    Color::Blue,
    Color::Magenta,
    Color::LightRed,
    Color::LightYellow,
];

impl TerminalCaps {
    fn coloured(self, colour: Color) -> Style {
        if self.colours == Colours::None {
            Style::new()
        } else {
            Style::new().fg(colour)
        }
    }

    pub(super) fn warn(self) -> Style {
        self.coloured(Color::Yellow)
    }

    pub(super) fn wrong(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Returns sign and colour of a share of a bar.
    pub(super) fn phase(self, phase: Phase, letter: char) -> (char, Style) {
        self.bar(
            letter,
            match phase {
                Phase::Target => Color::Green,
                Phase::Buffer => Color::Yellow,
                Phase::Data => Color::Cyan,
                Phase::Device => Color::Magenta,
                Phase::Reply => Color::Blue,
            },
        )
    }

    pub(super) fn part(self, part: Part, letter: char) -> (char, Style) {
        if part == Part::Blocked {
            return (if self.is_drawn() { '·' } else { letter }, QUIET);
        }
        self.bar(
            letter,
            match part {
                Part::Own => Color::Green,
                Part::Calls => Color::Blue,
                Part::Waited => Color::Red,
                Part::Hard => Color::Magenta,
                Part::Soft => Color::Cyan,
                Part::Stopped | Part::Blocked => Color::Yellow,
            },
        )
    }

    pub(super) fn use_of(self, part: CpuUse, letter: char) -> (char, Style) {
        if part == CpuUse::Idle {
            return (if self.is_drawn() { '·' } else { letter }, QUIET);
        }
        self.bar(
            letter,
            match part {
                CpuUse::Owner => Color::Green,
                CpuUse::Threads => Color::Red,
                CpuUse::Work => Color::LightRed,
                CpuUse::Devices => Color::Magenta,
                CpuUse::Soft => Color::Cyan,
                CpuUse::Timer => Color::Yellow,
                CpuUse::Calls => Color::Blue,
                CpuUse::Rest | CpuUse::Idle => Color::DarkGray,
            },
        )
    }

    fn bar(self, letter: char, colour: Color) -> (char, Style) {
        (
            if self.is_drawn() { '█' } else { letter },
            self.coloured(colour),
        )
    }

    /// Returns true if bars are blocks of colour: without colours they are letters.
    fn is_drawn(self) -> bool {
        self.unicode && self.colours != Colours::None
    }

    /// Returns the colour of a cell of the heat map for a share of 0 to 1; `None` for 0, or without
    /// colours.
    pub(super) fn shade(self, share: f64) -> Option<Color> {
        let of = |count: usize| ((share * count as f64).ceil() as usize).clamp(1, count) - 1;
        match self.colours {
            Colours::None => None,
            _ if share <= 0.0 => None,
            Colours::Sixteen => Some(SIXTEEN_COLOUR_SHADES[of(SIXTEEN_COLOUR_SHADES.len())]),
            Colours::Many => Some(Color::Indexed(SHADES[of(SHADES.len())])),
        }
    }

    /// Returns the sign of a cell of the heat map without colours or half blocks.
    pub(super) fn density(self, share: f64) -> char {
        let signs: &[char] = if self.unicode {
            &['░', '▒', '▓', '█']
        } else {
            &['.', ':', 'o', '#']
        };
        match share {
            share if share <= 0.0 => ' ',
            share => {
                signs[((share * signs.len() as f64).ceil() as usize).clamp(1, signs.len()) - 1]
            }
        }
    }

    /// Returns the signs of a line over time, the lowest first.
    pub(super) fn heights(self) -> &'static [char] {
        if self.unicode && self.eighths {
            &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            &['_', '.', '-', '=', '#']
        }
    }
}
