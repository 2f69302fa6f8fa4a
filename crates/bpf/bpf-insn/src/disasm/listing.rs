//! The listing of a function: one line for each instruction, with labels and comments.

use crate::asm::{Code, Line, Reference};
use crate::insn::{Imm64, Insn};
use std::fmt::{self, Display, Formatter, Write};

/// Column of comments, counted from the instruction's text.
const COMMENT_COLUMN: usize = 44;

/// Text of a function. Printed with `{}`.
///
/// ```
/// use bpf_insn::{Asm, Helper, Listing, Reg::*};
///
/// let mut asm = Asm::new();
/// asm.comment("keep the context").mov(R6, R1).call(Helper::KTIME_GET_NS).exit();
/// let text = Listing::new(&asm.finish()?).to_string();
/// assert_eq!(text.lines().next(), Some("     0: r6 = r1                                      ; keep the context"));
/// # Ok::<(), bpf_insn::AsmError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    code: &'a Code,
    bytes: bool,
}

impl<'a> Listing<'a> {
    /// Creates the listing of this code.
    pub fn new(code: &'a Code) -> Self {
        Self { code, bytes: false }
    }

    /// Adds each instruction's bytes before it, as in `llvm-objdump -d`.
    #[must_use]
    pub fn with_bytes(self) -> Self {
        Self {
            bytes: true,
            ..self
        }
    }

    fn line(&self, f: &mut Formatter<'_>, line: &Line) -> fmt::Result {
        for label in self.code.labels_at(line.slot) {
            writeln!(f, "<{label}>:")?;
        }
        write!(f, "{:6}: ", line.slot)?;
        if self.bytes {
            write_bytes(f, line.insn)?;
        }
        let mut text = line.insn.to_string();
        if let Some(target) = &line.target {
            write!(text, " <{target}>")?;
        }
        match comment(line) {
            comment if comment.is_empty() => writeln!(f, "{text}"),
            comment => writeln!(f, "{text:COMMENT_COLUMN$} ; {comment}"),
        }
    }
}

impl Display for Listing<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.code
            .lines()
            .iter()
            .try_for_each(|line| self.line(f, line))
    }
}

fn write_bytes(f: &mut Formatter<'_>, insn: Insn) -> fmt::Result {
    let mut bytes = Vec::new();
    insn.encode_into(&mut bytes);
    for byte in &bytes {
        write!(f, "{byte:02x} ")?;
    }
    write!(f, " ")
}

fn comment(line: &Line) -> String {
    let meaning = match &line.reference {
        Some(reference) => Some(referred(reference, line.insn)),
        None => line.insn.meaning(),
    };
    let span = line
        .span
        .map(|span| format!("script {}..{}", span.start, span.end));
    let parts = [meaning, line.comment.as_deref().map(one_line), span];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn referred(reference: &Reference, insn: Insn) -> String {
    match (reference, insn) {
        (Reference::Map(name), _) => format!("map {name}"),
        (
            Reference::Data(name),
            Insn::LoadImm64 {
                imm: Imm64::Value(off),
                ..
            },
        ) if off != 0 => {
            format!("data {name} + {off:#x}")
        }
        (Reference::Data(name), _) => format!("data {name}"),
        (Reference::Call(name) | Reference::Function(name), _) => format!("subprogram {name}"),
    }
}

/// Joins the lines of a comment, which may quote the script.
fn one_line(comment: &str) -> String {
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}
