//! The assembler: one method for each instruction, labels for jumps, names for maps, data and
//! functions.
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
//! Errors are not reported where they occur but by [`Asm::finish`], so that code that emits
//! instructions needs no `?` in each line.

mod code;
mod emit;
mod live;
mod peephole;
mod reach;

pub use code::{Code, Line, Reference};

use crate::insn::Insn;
use std::collections::{BTreeMap, HashSet};

/// Target of jumps in the code. Created by [`Asm::label`], placed by [`Asm::bind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(u32);

/// Bytes of the script from which an instruction came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceSpan {
    /// First byte.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
}

/// Mistake in the assembled code: the compiler's, never the user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// Jump to a label that was never placed.
    #[error("jump at instruction {slot} goes to label `{label}`, which is not defined")]
    Unbound {
        /// Name of the label.
        label: String,
        /// Slot of the jump.
        slot: u32,
    },
    /// Label placed twice.
    #[error("label `{label}` is at instruction {first} and again at {second}")]
    BoundTwice {
        /// Name of the label.
        label: String,
        /// Slot of the first place.
        first: u32,
        /// Slot of the second place.
        second: u32,
    },
    /// Label of another assembler.
    #[error("label number {label} does not belong to this code")]
    Foreign {
        /// Number of the label.
        label: u32,
    },
    /// Jump to a label after the last instruction, which would leave the code.
    #[error(
        "jump at instruction {slot} goes to label `{label}`, which is after the last instruction"
    )]
    BehindEnd {
        /// Name of the label.
        label: String,
        /// Slot of the jump.
        slot: u32,
    },
    /// Jump to a label beyond the range of its offset.
    #[error(
        "jump at instruction {slot} goes to label `{label}`, {distance} instructions away; the offset can be {} to {}",
        i16::MIN,
        i16::MAX
    )]
    TooFar {
        /// Name of the label.
        label: String,
        /// Slot of the jump.
        slot: u32,
        /// Distance in slots, from the next instruction on.
        distance: i64,
    },
    /// More instructions than [`MAX_SLOTS`].
    #[error("there are more than {most} instructions")]
    TooLong {
        /// Limit on the slots.
        most: u32,
    },
}

/// Limit on the slots of code. The kernel looks at a million instructions at most
/// (`BPF_COMPLEXITY_LIMIT_INSNS` of `linux/bpf.h`), at those in branches more than once, and a
/// jump's offset reaches an eighth as far.
pub const MAX_SLOTS: u32 = 1 << 18;

/// Emitted instruction: a jump's distance is still a label.
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
    /// Offsets from r10 of local slots, see [`Asm::mark_local_slot`].
    local_slots: Vec<i16>,
    mistake: Option<AsmError>,
}

impl Asm {
    /// Creates an empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a label. Its name is for people: a second label of the same name gets a number as
    /// suffix.
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

    /// Places the label before the next instruction.
    pub fn bind(&mut self, label: Label) -> &mut Self {
        let slot = self.slots;
        let mistake = match self.labels.get_mut(label.0 as usize) {
            None => Some(AsmError::Foreign { label: label.0 }),
            Some(LabelState {
                name,
                slot: Some(first),
            }) => Some(AsmError::BoundTwice {
                label: name.clone(),
                first: *first,
                second: slot,
            }),
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

    /// Sets the comment on the next instruction, shown by the disassembler. A second one is joined
    /// to the first.
    pub fn comment(&mut self, text: impl Into<String>) -> &mut Self {
        let text = text.into();
        self.comment = Some(match self.comment.take() {
            Some(earlier) => format!("{earlier}; {text}"),
            None => text,
        });
        self
    }

    /// Sets the bytes of the script from which the following instructions are made.
    pub fn span(&mut self, span: Option<SourceSpan>) -> &mut Self {
        self.span = span;
        self
    }

    /// Promises that the word of the frame at this offset from r10 is only accessed by loads and
    /// stores of 8 bytes at this offset, never through another register. [`Asm::finish_optimized`]
    /// may then remove stores that nothing reads.
    pub fn mark_local_slot(&mut self, off: i16) -> &mut Self {
        self.local_slots.push(off);
        self
    }

    /// Returns true if the code is too long, so that [`Asm::finish`] will fail. A caller that emits
    /// in a loop may stop.
    pub fn is_full(&self) -> bool {
        self.slots >= MAX_SLOTS
    }

    /// Returns the number of slots so far.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Emits any instruction, for those without a method of their own. Its jump distance is not
    /// changed.
    pub fn insn(&mut self, insn: Insn) -> &mut Self {
        self.push(insn, None, None)
    }

    fn push(
        &mut self,
        insn: Insn,
        label: Option<Label>,
        reference: Option<Reference>,
    ) -> &mut Self {
        let (comment, span) = (self.comment.take(), self.span);
        // Code of a script must not take memory without end before it is refused.
        if self.is_full() {
            self.mistake
                .get_or_insert(AsmError::TooLong { most: MAX_SLOTS });
            return self;
        }
        let line = Line {
            slot: self.slots,
            insn,
            target: None,
            reference,
            comment,
            span,
        };
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
        let lines = self
            .items
            .into_iter()
            .map(|item| resolve(item, &labels, end))
            .collect::<Result<Vec<_>, _>>()?;
        let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for label in labels {
            if let Some(slot) = label.slot {
                names.entry(slot).or_default().push(label.name);
            }
        }
        Ok(Code::new(lines, names, end))
    }
}

/// Replaces a jump's label by the distance. `end` is the slot after the last instruction.
fn resolve(item: Item, labels: &[LabelState], end: u32) -> Result<Line, AsmError> {
    let Item { mut line, label } = item;
    let Some(Label(number)) = label else {
        return Ok(line);
    };
    let state = labels
        .get(number as usize)
        .ok_or(AsmError::Foreign { label: number })?;
    let (label, slot) = (state.name.clone(), line.slot);
    let Some(target) = state.slot else {
        return Err(AsmError::Unbound { label, slot });
    };
    if target >= end {
        return Err(AsmError::BehindEnd { label, slot });
    }
    let distance = i64::from(target) - i64::from(slot) - 1;
    if !line.insn.set_jump_distance(distance) {
        return Err(AsmError::TooFar {
            label,
            slot,
            distance,
        });
    }
    line.target = Some(label);
    Ok(line)
}

#[cfg(test)]
mod tests;
