//! Kernel versions: the first release that has an instruction, a helper or a kind of map.

use std::fmt;

/// A Linux release, `major.minor`. Ordered by publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

impl KernelVersion {
    /// The release that introduced the `bpf` system call.
    pub const FIRST: Self = Self::new(3, 18);

    /// Creates the release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
