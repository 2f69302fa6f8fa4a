//! Faults of a program, and their positions.

use std::fmt;

use bpf_insn::{Helper, MapKind, Reg, SourceSpan};

/// A fault of a program, at its instruction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {wrong}")]
pub struct Fault {
    /// Position of the fault.
    pub place: Box<Place>,
    /// Kind of fault.
    pub wrong: Wrong,
}

/// Position of an instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Name of the program or subprogram.
    pub function: String,
    /// Slot of the instruction in it.
    pub slot: u32,
    /// Text of the instruction.
    pub text: String,
    /// Comment by the assembler on this instruction, or on the last one before it with a comment.
    pub comment: Option<String>,
    /// Source range in the script.
    pub span: Option<SourceSpan>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at instruction {} `{}`",
            self.function, self.slot, self.text
        )?;
        match &self.comment {
            Some(comment) => write!(f, " ({comment})"),
            None => Ok(()),
        }
    }
}

/// The kinds of fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// A register that was never written, or was clobbered by a call.
    #[error("{0:?} is read and holds nothing here")]
    Register(Reg),
    /// A byte of the stack that was never written, by its distance below the frame's end.
    #[error("byte -{0} of the stack is read before it is written")]
    Unwritten(usize),
    /// An access outside the program's memory.
    #[error("{bytes} bytes at {address:#x}: {what}")]
    Access {
        /// Number of bytes.
        bytes: u64,
        /// Address of the access.
        address: u64,
        /// Description of the error.
        what: String,
    },
    /// A value that is not a map, where a helper needs one.
    #[error("{0:#x} is no map")]
    NotAMap(u64),
    /// A value that is not a subprogram, where a helper needs one.
    #[error("{0:#x} is no subprogram")]
    NotAFunction(u64),
    /// A name of no map or subprogram.
    #[error("nothing is named {0}")]
    Unknown(String),
    /// A helper that the interpreter lacks.
    #[error("the interpreter has no helper {0}")]
    Helper(Helper),
    /// An instruction that the interpreter lacks.
    #[error("the interpreter has no such instruction")]
    Instruction,
    /// A map kind that the interpreter lacks, or lacks for this helper.
    #[error("the interpreter has no map of kind {kind:?} here: {name}")]
    MapKind {
        /// Kind of the map.
        kind: MapKind,
        /// Name of the map.
        name: String,
    },
    /// A jump to a slot where no instruction begins.
    #[error("it jumps to slot {0}, where no instruction begins")]
    Target(i64),
    /// The end of the code without an exit.
    #[error("control leaves the code behind line {0}")]
    Left(usize),
    /// A shift by a constant of at least the operand's width, which the verifier rejects.
    #[error("shift by the constant {0}")]
    Shift(i32),
    /// An argument that the helper or the verifier rejects.
    #[error("{0}")]
    Argument(String),
    /// A call deeper than the kernel allows.
    #[error("more than {0} calls are open")]
    Depth(usize),
    /// A program that ran too long.
    #[error("it has run {0} instructions without an end")]
    Endless(u64),
    /// A record of the ring that is neither submitted nor discarded.
    #[error("it ends with a record of {0} that is neither submitted nor discarded")]
    Unsubmitted(String),
}
