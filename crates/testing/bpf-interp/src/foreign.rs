//! Memory outside the program: that of a process and of the kernel, as helpers read it.

use std::collections::BTreeMap;

/// A range of other memory.
#[derive(Clone, Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// True if it is present without waiting.
    present: bool,
    /// True if programs may load from it, as from the kernel's own objects whose types the verifier
    /// knows.
    object: bool,
}

/// Owner of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Process,
    Kernel,
}

/// Ranges of other memory by address; those of the kernel are in the upper half.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foreign {
    pieces: BTreeMap<u64, Piece>,
}

impl Owner {
    fn has(self, address: u64) -> bool {
        (address >> 63 == 1) == (self == Self::Kernel)
    }
}

impl Foreign {
    /// Puts bytes at an address.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8], present: bool, object: bool) {
        self.pieces.insert(
            address,
            Piece {
                bytes: bytes.to_vec(),
                present,
                object,
            },
        );
    }

    fn piece(&self, address: u64) -> Option<(&Piece, usize)> {
        let (start, piece) = self.pieces.range(..=address).next_back()?;
        let offset = usize::try_from(address - start).ok()?;
        (offset < piece.bytes.len()).then_some((piece, offset))
    }

    fn byte(&self, owner: Owner, address: u64, wait: bool) -> Option<u8> {
        let (piece, offset) = self.piece(address)?;
        (owner.has(address) && (wait || piece.present)).then(|| piece.bytes[offset])
    }

    /// Returns these bytes; `None` if any is missing.
    pub(crate) fn read(&self, owner: Owner, address: u64, count: u64) -> Option<Vec<u8>> {
        (0..count)
            .map(|at| self.byte(owner, address.checked_add(at)?, false))
            .collect()
    }

    /// Returns a string's bytes up to and including its NUL, or up to `count`.
    pub(crate) fn text(&self, owner: Owner, address: u64, count: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for at in 0..count {
            let byte = self.byte(owner, address.checked_add(at)?, false)?;
            text.push(byte);
            if byte == 0 {
                break;
            }
        }
        Some(text)
    }

    /// Returns these bytes, waiting for their pages.
    pub(crate) fn fetch(&mut self, address: u64, count: u64) -> Option<Vec<u8>> {
        let found = (0..count)
            .map(|at| self.byte(Owner::Process, address.checked_add(at)?, true))
            .collect();
        for at in 0..count {
            let place = address.wrapping_add(at);
            if let Some((_, piece)) = self.pieces.range_mut(..=place).next_back() {
                piece.present = true;
            }
        }
        found
    }

    /// Returns bytes of the kernel's own objects.
    pub(crate) fn object(&self, address: u64, count: u64) -> Option<Vec<u8>> {
        let (piece, _) = self.piece(address)?;
        if piece.object {
            self.read(Owner::Kernel, address, count)
        } else {
            None
        }
    }
}
