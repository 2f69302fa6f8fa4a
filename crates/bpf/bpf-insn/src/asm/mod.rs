//! The assembler: one method for each instruction, labels for jumps, names for maps, data and functions.
//!
//! ```
//! use bpf_insn::{Asm, Helper, JumpOp, Reg::*};
//!
//! let mut asm = Asm::new();
//! let done = asm.label("done");
//! asm.comment("who is it?").call(Helper::GET_CURRENT_PID_TGID);
//! asm.rsh(R0, 32).jump_if(R0, JumpOp::Ne, 4711, done);
//! asm.load_map(R1, "events").mov(R2, R10).add(R2, -8);
//! asm.bind(done).mov(R0, 0).exit();
//! let code = asm.finish()?;
//! assert_eq!(code.slots(), 9);
//! # Ok::<(), bpf_insn::AsmError>(())
//! ```
//!
//! Errors are not reported where they occur but by [`Asm::finish`], so that code that emits instructions needs no `?` in each line.

mod code;
mod emit;
mod live;
mod peephole;
mod reach;

pub use code::{Code, Line, Reference};

use crate::insn::Insn;
use std::collections::{BTreeMap, HashSet};

/// A place in the code that jumps go to. Made by [`Asm::label`], put down by [`Asm::bind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(u32);

/// The bytes of the script that an instruction came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceSpan {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// A mistake in what was assembled: the compiler's, never the user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// A jump goes to a label that was never put down.
    #[error("jump at instruction {slot} goes to label `{label}`, which is not defined")]
    Unbound {
        /// The label's name.
        label: String,
        /// The jump's slot.
        slot: u32,
    },
    /// A label was put down in two places.
    #[error("label `{label}` is at instruction {first} and again at {second}")]
    BoundTwice {
        /// The label's name.
        label: String,
        /// Where it was.
        first: u32,
        /// Where it was put again.
        second: u32,
    },
    /// A label of another assembler.
    #[error("label number {label} does not belong to this code")]
    Foreign {
        /// The label's number.
        label: u32,
    },
    /// A label stands behind the last instruction, so that the jump would leave the code.
    #[error("jump at instruction {slot} goes to label `{label}`, which is after the last instruction")]
    BehindEnd {
        /// The label's name.
        label: String,
        /// The jump's slot.
        slot: u32,
    },
    /// A label is further away than the jump's offset can say.
    #[error(
        "jump at instruction {slot} goes to label `{label}`, {distance} instructions away; the offset can be {} to {}",
        i16::MIN,
        i16::MAX
    )]
    TooFar {
        /// The label's name.
        label: String,
        /// The jump's slot.
        slot: u32,
        /// How many slots it would go, from the next instruction on.
        distance: i64,
    },
    /// There are more instructions than [`MAX_SLOTS`].
    #[error("there are more than {most} instructions")]
    TooLong {
        /// How many there may be.
        most: u32,
    },
}

/// How many slots code may have. The kernel looks at a million instructions at most (`BPF_COMPLEXITY_LIMIT_INSNS` of
/// `linux/bpf.h`), at those in branches more than once, and a jump's offset reaches an eighth as far.
pub const MAX_SLOTS: u32 = 1 << 18;

/// An instruction as it was emitted: a jump's distance is still a label.
#[derive(Debug)]
struct Item {
    line: Line,
    label: Option<Label>,
}

#[derive(Debug)]
struct LabelState {
    name: String,
    slot: Option<u32>,
}

/// Code in the making.
#[derive(Debug, Default)]
pub struct Asm {
    items: Vec<Item>,
    labels: Vec<LabelState>,
    names: HashSet<String>,
    slots: u32,
    comment: Option<String>,
    span: Option<SourceSpan>,
    /// See [`Asm::mark_local_slot`].
    local_slots: Vec<i16>,
    mistake: Option<AsmError>,
}

impl Asm {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new label. Its name is for people: a second label of the same name gets a number behind it.
    pub fn label(&mut self, name: &str) -> Label {
        let number = self.labels.len() as u32;
        let mut name = name.to_owned();
        if self.names.contains(&name) {
            name = format!("{name}_{number}");
        }
        self.names.insert(name.clone());
        self.labels.push(LabelState { name, slot: None });
        Label(number)
    }

    /// Puts the label down in front of the next instruction.
    pub fn bind(&mut self, label: Label) -> &mut Self {
        let slot = self.slots;
        let mistake = match self.labels.get_mut(label.0 as usize) {
            None => Some(AsmError::Foreign { label: label.0 }),
            Some(LabelState { name, slot: Some(first) }) => {
                Some(AsmError::BoundTwice { label: name.clone(), first: *first, second: slot })
            }
            Some(state) => {
                state.slot = Some(slot);
                None
            }
        };
        if let Some(mistake) = mistake {
            self.mistake.get_or_insert(mistake);
        }
        self
    }

    /// A comment on the next instruction, shown by the disassembler. A second one before it is joined to the first.
    pub fn comment(&mut self, text: impl Into<String>) -> &mut Self {
        let text = text.into();
        self.comment = Some(match self.comment.take() {
            Some(earlier) => format!("{earlier}; {text}"),
            None => text,
        });
        self
    }

    /// Sets the bytes of the script that the instructions from here on were made for.
    pub fn span(&mut self, span: Option<SourceSpan>) -> &mut Self {
        self.span = span;
        self
    }

    /// Promises that the word of the frame at this offset from r10 is only accessed by loads and stores of 8 bytes at this
    /// offset, never through another register: [`Asm::finish_optimized`] may then remove stores that nothing reads.
    pub fn mark_local_slot(&mut self, off: i16) -> &mut Self {
        self.local_slots.push(off);
        self
    }

    /// Whether the code is too long, so that [`Asm::finish`] will fail. A caller that emits in a loop may stop.
    pub fn is_full(&self) -> bool {
        self.slots >= MAX_SLOTS
    }

    /// How many slots there are so far.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Any instruction, for those without a method of their own. Jump distances in it are taken as they are.
    pub fn insn(&mut self, insn: Insn) -> &mut Self {
        self.push(insn, None, None)
    }

    fn push(&mut self, insn: Insn, label: Option<Label>, reference: Option<Reference>) -> &mut Self {
        let (comment, span) = (self.comment.take(), self.span);
        // What comes from a script must not take memory without end before it is refused.
        if self.is_full() {
            self.mistake.get_or_insert(AsmError::TooLong { most: MAX_SLOTS });
            return self;
        }
        let line = Line { slot: self.slots, insn, target: None, reference, comment, span };
        self.items.push(Item { line, label });
        self.slots += insn.slots();
        self
    }

    /// Resolves the labels.
    pub fn finish(self) -> Result<Code, AsmError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let (end, labels) = (self.slots, self.labels);
        let lines = self.items.into_iter().map(|item| resolve(item, &labels, end)).collect::<Result<Vec<_>, _>>()?;
        let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for label in labels {
            if let Some(slot) = label.slot {
                names.entry(slot).or_default().push(label.name);
            }
        }
        Ok(Code::new(lines, names, end))
    }
}

/// Puts the distance to its label into a jump. `end` is the slot behind the last instruction.
fn resolve(item: Item, labels: &[LabelState], end: u32) -> Result<Line, AsmError> {
    let Item { mut line, label } = item;
    let Some(Label(number)) = label else {
        return Ok(line);
    };
    let state = labels.get(number as usize).ok_or(AsmError::Foreign { label: number })?;
    let (label, slot) = (state.name.clone(), line.slot);
    let Some(target) = state.slot else {
        return Err(AsmError::Unbound { label, slot });
    };
    if target >= end {
        return Err(AsmError::BehindEnd { label, slot });
    }
    let distance = i64::from(target) - i64::from(slot) - 1;
    if !line.insn.set_jump_distance(distance) {
        return Err(AsmError::TooFar { label, slot, distance });
    }
    line.target = Some(label);
    Ok(line)
}

#[cfg(test)]
mod tests;
