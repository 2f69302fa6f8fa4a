//! Errors in an object.

/// Reason why an object can't be written. All of these are the compiler's mistakes, not the user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Name that is no C identifier: names become BTF names, which the kernel accepts only then.
    #[error("`{name}` is not a valid name: expected a letter or `_`, then letters, digits and `_`")]
    Name {
        /// Name.
        name: String,
    },
    /// Name used twice.
    #[error("`{name}` is defined twice")]
    Duplicate {
        /// Name.
        name: String,
    },
    /// Section name of a program that is empty or has another meaning.
    #[error("`{section}` is not a valid section for program `{program}`")]
    Section {
        /// Name of the section.
        section: String,
        /// Name of the program.
        program: String,
    },
    /// Function without instructions.
    #[error("function `{name}` has no instructions")]
    Empty {
        /// Name of the function.
        name: String,
    },
    /// Reference to something that does not exist.
    #[error(
        "`{function}` refers to the {wanted} `{symbol}` at instruction {slot}, which does not exist"
    )]
    Undefined {
        /// Name of the function.
        function: String,
        /// Slot of the instruction.
        slot: u32,
        /// Kind: "map", "data" or "subprogram".
        wanted: &'static str,
        /// Name.
        symbol: String,
    },
    /// Licence that is empty or contains a NUL.
    #[error("`{license}` is not a valid licence")]
    License {
        /// Text.
        license: String,
    },
    /// Failure of the ELF writer.
    #[error("cannot write the object: {reason}")]
    Write {
        /// Reason of the writer.
        reason: String,
    },
}
