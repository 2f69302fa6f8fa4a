//! Finished code: instructions with their slots, references and comments.

use super::SourceSpan;
use crate::insn::{DecodeError, INSN_BYTES, Imm64, Insn, decode_all};
use std::collections::BTreeMap;
use uapi::KernelVersion;

/// Name that an instruction refers to: a relocation in the object file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// Map of this name (`R_BPF_64_64`).
    Map(String),
    /// Global data of this name, at the distance that the constant holds (`R_BPF_64_64`).
    Data(String),
    /// Call of the subprogram of this name (`R_BPF_64_32`).
    Call(String),
    /// Address of the subprogram of this name (`R_BPF_64_64`).
    Function(String),
}

impl Reference {
    /// Returns the name.
    pub fn symbol(&self) -> &str {
        match self {
            Self::Map(name) | Self::Data(name) | Self::Call(name) | Self::Function(name) => name,
        }
    }
}

/// Instruction in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Slot of the instruction, counted from the start of the code.
    pub slot: u32,
    /// Instruction; jump distances are numbers now.
    pub insn: Insn,
    /// Name of the label to which it jumps.
    pub target: Option<String>,
    /// Name to which it refers.
    pub reference: Option<Reference>,
    /// Comment by the compiler.
    pub comment: Option<String>,
    /// Origin in the script.
    pub span: Option<SourceSpan>,
}

/// Code of one function: a program or a subprogram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Code {
    lines: Vec<Line>,
    labels: BTreeMap<u32, Vec<String>>,
    slots: u32,
}

impl Code {
    pub(super) fn new(lines: Vec<Line>, labels: BTreeMap<u32, Vec<String>>, slots: u32) -> Self {
        Self {
            lines,
            labels,
            slots,
        }
    }

    /// Decodes these bytes, and makes up labels (`L7` for slot 7) for the targets of jumps.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let insns = decode_all(bytes)?;
        let mut slot = 0;
        let mut lines = Vec::with_capacity(insns.len());
        for insn in insns {
            lines.push(Line {
                slot,
                insn,
                target: None,
                reference: None,
                comment: None,
                span: None,
            });
            slot += insn.slots();
        }
        let mut code = Self::new(lines, BTreeMap::new(), slot);
        code.make_up_labels();
        Ok(code)
    }

    fn make_up_labels(&mut self) {
        let starts: Vec<u32> = self.lines.iter().map(|line| line.slot).collect();
        for line in &mut self.lines {
            let Some(distance) = line.insn.jump_distance() else {
                continue;
            };
            let target = i64::from(line.slot) + 1 + i64::from(distance);
            // Only a jump to an instruction's start gets a label: foreign bytes may hold others.
            let Some(target) = u32::try_from(target)
                .ok()
                .filter(|slot| starts.binary_search(slot).is_ok())
            else {
                continue;
            };
            let name = format!("L{target}");
            self.labels
                .entry(target)
                .or_insert_with(|| vec![name.clone()]);
            line.target = Some(name);
        }
    }

    /// Returns the instructions in order.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the names of the labels before this slot.
    pub fn labels_at(&self, slot: u32) -> &[String] {
        self.labels.get(&slot).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of its 8-byte slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns true if there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns its bytes, with unresolved references.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.slots as usize * INSN_BYTES);
        for line in &self.lines {
            line.insn.encode_into(&mut bytes);
        }
        bytes
    }

    /// Returns the oldest Linux release that knows all its instructions and the helpers whose
    /// release is known.
    pub fn since(&self) -> KernelVersion {
        let since = |line: &Line| match &line.reference {
            // A loader converts it to an address in a map's value.
            Some(Reference::Data(_)) => Imm64::MapValue { fd: 0, off: 0 }.since(),
            _ => line.insn.since(),
        };
        self.lines
            .iter()
            .map(since)
            .max()
            .unwrap_or(KernelVersion::FIRST)
    }
}

impl Insn {
    /// Sets the distance of a jump, in slots from the next instruction on. Returns false if it does
    /// not fit the offset.
    pub(super) fn set_jump_distance(&mut self, distance: i64) -> bool {
        match self {
            Self::Jump { off } | Self::JumpIf { off, .. } => {
                i16::try_from(distance).map(|it| *off = it).is_ok()
            }
            Self::JumpLong { off } => i32::try_from(distance).map(|it| *off = it).is_ok(),
            _ => true,
        }
    }

    /// Returns the distance of a jump, in slots from the next instruction on.
    fn jump_distance(self) -> Option<i32> {
        match self {
            Self::Jump { off } | Self::JumpIf { off, .. } => Some(i32::from(off)),
            Self::JumpLong { off } => Some(off),
            _ => None,
        }
    }
}
