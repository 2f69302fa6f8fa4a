//! Colours and signs, by what a terminal can show.

use ratatui_core::style::{Color, Modifier, Style};
pub(super) use screen::{Colours, TerminalCaps};

use crate::sample::{CpuUse, Part, Phase};

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

/// Signs and styles of a terminal with these abilities.
pub(super) trait Look {
    /// Returns the style of warnings.
    fn warn(self) -> Style;
    /// Returns the style of errors.
    fn wrong(self) -> Style;
    /// Returns sign and colour of a phase's part of a bar.
    fn phase(self, phase: Phase, letter: char) -> (char, Style);
    /// Returns sign and colour of a part of a thread's time.
    fn part(self, part: Part, letter: char) -> (char, Style);
    /// Returns sign and colour of a part of a CPU's time.
    fn use_of(self, part: CpuUse, letter: char) -> (char, Style);
    /// Returns the colour of a cell of the heat map for a share of 0 to 1; `None` for 0, or without
    /// colours.
    fn shade(self, share: f64) -> Option<Color>;
    /// Returns the sign of a cell of the heat map without colours or half blocks.
    fn density(self, share: f64) -> char;
    /// Returns the signs of a line over time, the lowest first.
    fn heights(self) -> &'static [char];
}

impl Look for TerminalCaps {
    fn warn(self) -> Style {
        coloured(self, Color::Yellow)
    }

    fn wrong(self) -> Style {
        coloured(self, Color::Red).add_modifier(Modifier::BOLD)
    }

    fn phase(self, phase: Phase, letter: char) -> (char, Style) {
        bar(
            self,
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

    fn part(self, part: Part, letter: char) -> (char, Style) {
        if part == Part::Blocked {
            return (if is_drawn(self) { '·' } else { letter }, QUIET);
        }
        bar(
            self,
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

    fn use_of(self, part: CpuUse, letter: char) -> (char, Style) {
        if part == CpuUse::Idle {
            return (if is_drawn(self) { '·' } else { letter }, QUIET);
        }
        bar(
            self,
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

    fn shade(self, share: f64) -> Option<Color> {
        let of = |count: usize| ((share * count as f64).ceil() as usize).clamp(1, count) - 1;
        match self.colours {
            Colours::None => None,
            _ if share <= 0.0 => None,
            Colours::Sixteen => Some(SIXTEEN_COLOUR_SHADES[of(SIXTEEN_COLOUR_SHADES.len())]),
            Colours::Many => Some(Color::Indexed(SHADES[of(SHADES.len())])),
        }
    }

    fn density(self, share: f64) -> char {
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

    fn heights(self) -> &'static [char] {
        if self.unicode && self.eighths {
            &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            &['_', '.', '-', '=', '#']
        }
    }
}

fn coloured(caps: TerminalCaps, colour: Color) -> Style {
    if caps.colours == Colours::None {
        Style::new()
    } else {
        Style::new().fg(colour)
    }
}

fn bar(caps: TerminalCaps, letter: char, colour: Color) -> (char, Style) {
    (
        if is_drawn(caps) { '█' } else { letter },
        coloured(caps, colour),
    )
}

/// Returns true if bars are blocks of colour: without colours they are letters.
fn is_drawn(caps: TerminalCaps) -> bool {
    caps.unicode && caps.colours != Colours::None
}
