//! The variables and functions of a program, by name and by address.

use typeinfo::{TypeRef, TypeStore};

/// The names of a program for expressions.
pub trait Globals {
    /// Finds every variable or function of this name. `FILE:NAME` names those of one source file
    /// (`nvmf.c`, or more of its path) or one program file (`libnvmf.so.1`).
    fn find(&self, types: &TypeStore<'_>, name: &str) -> Vec<Global>;

    /// Returns the names of variables that are most like this one, nearest first.
    fn nearest(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns the reason why names have no types, for a hint: no debug information, and what to do
    /// about it.
    fn no_types(&self) -> Option<String> {
        None
    }

    /// Returns the variable or function that an address is in, and the offset from its beginning.
    fn symbol(&self, _address: u64) -> Option<(String, u64)> {
        None
    }
}

/// A variable or function of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    /// Address in the process.
    pub address: u64,
    /// Type, if debug information describes it.
    pub ty: Option<TypeRef>,
    /// Source file that defines it; if that is unknown, the program file.
    pub source: String,
}

/// Empty set of names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGlobals;

impl Globals for NoGlobals {
    fn find(&self, _types: &TypeStore<'_>, _name: &str) -> Vec<Global> {
        Vec::new()
    }
}
