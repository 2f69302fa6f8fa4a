//! Three kinds of address, each a type of its own so that one can't be taken for another.
//!
//! The kernel expects a `FileOffset` for uprobes and semaphores, an ELF file states an `ElfVaddr`,
//! and a running process has a `ProcAddr`. [`crate::image::AddressMap`] leads between the first
//! two, `ProcMaps` of the crate `kernel-text` between the first and the last.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns this address moved by `bytes`; `None` if that leaves the 64 bits.
            pub fn checked_add(self, bytes: u64) -> Option<Self> {
                self.0.checked_add(bytes).map(Self)
            }

            /// Returns the number of bytes from `base` to this address; `None` if it lies below.
            pub fn checked_above(self, base: Self) -> Option<u64> {
                self.0.checked_sub(base.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// Offset of a byte in a file, counted from the file's start.
    FileOffset
}

address! {
    /// A virtual address as an ELF file states it: before the loader adds the bias of a position-independent file.
    ElfVaddr
}

address! {
    /// A virtual address in a running process.
    ProcAddr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_in_hex_and_never_wrap() {
        assert_eq!(FileOffset(0x1d89c).to_string(), "0x1d89c");
        assert_eq!(ElfVaddr(u64::MAX).checked_add(1), None);
        assert_eq!(ProcAddr(0x1000).checked_above(ProcAddr(0x2000)), None);
        assert_eq!(
            ProcAddr(0x2000).checked_above(ProcAddr(0x1000)),
            Some(0x1000)
        );
    }
}
