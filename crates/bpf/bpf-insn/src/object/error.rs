//! Errors in an object.

/// Why an object can't be written. All of these are the compiler's mistakes, not the user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Names become BTF names, which the kernel takes only if they are C identifiers.
    #[error("`{name}` is not a valid name: expected a letter or `_`, then letters, digits and `_`")]
    Name {
        /// The name.
        name: String,
    },
    /// Two things have one name.
    #[error("`{name}` is defined twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A program's section has a name that means something else, or none.
    #[error("`{section}` is not a valid section for program `{program}`")]
    Section {
        /// The section's name.
        section: String,
        /// The program.
        program: String,
    },
    /// A function without instructions.
    #[error("function `{name}` has no instructions")]
    Empty {
        /// Its name.
        name: String,
    },
    /// An instruction refers to what is not there.
    #[error("`{function}` refers to the {wanted} `{symbol}` at instruction {slot}, which does not exist")]
    Undefined {
        /// The function.
        function: String,
        /// The instruction's slot.
        slot: u32,
        /// "map", "data" or "subprogram".
        wanted: &'static str,
        /// The name.
        symbol: String,
    },
    /// A licence must be a non-empty text without NUL.
    #[error("`{license}` is not a valid licence")]
    License {
        /// The text.
        license: String,
    },
    /// The ELF writer refused.
    #[error("cannot write the object: {reason}")]
    Write {
        /// What it said.
        reason: String,
    },
}
