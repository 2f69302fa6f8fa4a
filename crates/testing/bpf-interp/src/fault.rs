//! What a program did wrong, and where.

use std::fmt;

use bpf_insn::{Helper, MapKind, Reg, SourceSpan};

/// A mistake of a program, at its instruction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {wrong}")]
pub struct Fault {
    /// Where.
    pub place: Box<Place>,
    /// What.
    pub wrong: Wrong,
}

/// The place of an instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The program or subprogram.
    pub function: String,
    /// The instruction's slot in it.
    pub slot: u32,
    /// The instruction's text.
    pub text: String,
    /// The assembler's comment on it or on the last instruction before it that has one.
    pub comment: Option<String>,
    /// Where in the script it came from.
    pub span: Option<SourceSpan>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at instruction {} `{}`", self.function, self.slot, self.text)?;
        match &self.comment {
            Some(comment) => write!(f, " ({comment})"),
            None => Ok(()),
        }
    }
}

/// The kinds of mistake.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// A register that nothing has written, or that a call has taken.
    #[error("{0:?} is read and holds nothing here")]
    Register(Reg),
    /// A byte of the stack that nothing has written, by its distance below the frame's end.
    #[error("byte -{0} of the stack is read before it is written")]
    Unwritten(usize),
    /// An access to what is no memory of the program's.
    #[error("{bytes} bytes at {address:#x}: {what}")]
    Access {
        /// How many bytes.
        bytes: u64,
        /// Where.
        address: u64,
        /// What is wrong with that.
        what: String,
    },
    /// Something that is not a map where a helper wants one.
    #[error("{0:#x} is no map")]
    NotAMap(u64),
    /// Something that is not a subprogram where a helper wants one.
    #[error("{0:#x} is no subprogram")]
    NotAFunction(u64),
    /// A name that belongs to no map or subprogram.
    #[error("nothing is named {0}")]
    Unknown(String),
    /// A helper that the interpreter does not have.
    #[error("the interpreter has no helper {0}")]
    Helper(Helper),
    /// An instruction that the interpreter does not have.
    #[error("the interpreter has no such instruction")]
    Instruction,
    /// A map kind that the interpreter does not have, or not for this helper.
    #[error("the interpreter has no map of kind {kind:?} here: {name}")]
    MapKind {
        /// The kind.
        kind: MapKind,
        /// The map.
        name: String,
    },
    /// A jump to where no instruction begins.
    #[error("it jumps to slot {0}, where no instruction begins")]
    Target(i64),
    /// The end of the code without an exit.
    #[error("control leaves the code behind line {0}")]
    Left(usize),
    /// A shift by a constant of the operand's width or more, which the verifier refuses.
    #[error("shift by the constant {0}")]
    Shift(i32),
    /// An argument that the helper refuses or the verifier would.
    #[error("{0}")]
    Argument(String),
    /// A call deeper than the kernel allows.
    #[error("more than {0} calls are open")]
    Depth(usize),
    /// The program ran too long.
    #[error("it has run {0} instructions without an end")]
    Endless(u64),
    /// A record of the ring that is neither submitted nor discarded.
    #[error("it ends with a record of {0} that is neither submitted nor discarded")]
    Unsubmitted(String),
}
