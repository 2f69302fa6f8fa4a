//! Memory that is not the program's: a process's and the kernel's, as helpers read it.

use std::collections::BTreeMap;

/// A piece of other memory.
#[derive(Clone, Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// Whether it is there without waiting.
    present: bool,
    /// Whether programs may load from it, as from the kernel's own objects whose types the verifier knows.
    object: bool,
}

/// Whose memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Process,
    Kernel,
}

/// Pieces of other memory by their addresses; those of the kernel are in the upper half.
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
        self.pieces.insert(address, Piece { bytes: bytes.to_vec(), present, object });
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

    /// These bytes, if all are there.
    pub(crate) fn read(&self, owner: Owner, address: u64, count: u64) -> Option<Vec<u8>> {
        (0..count).map(|at| self.byte(owner, address.checked_add(at)?, false)).collect()
    }

    /// A string's bytes up to its end, which comes with them, or up to `count`.
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

    /// Waits for the pages of these bytes.
    pub(crate) fn fetch(&mut self, address: u64, count: u64) -> Option<Vec<u8>> {
        let found = (0..count).map(|at| self.byte(Owner::Process, address.checked_add(at)?, true)).collect();
        for at in 0..count {
            let place = address.wrapping_add(at);
            if let Some((_, piece)) = self.pieces.range_mut(..=place).next_back() {
                piece.present = true;
            }
        }
        found
    }

    /// Bytes of the kernel's own objects.
    pub(crate) fn object(&self, address: u64, count: u64) -> Option<Vec<u8>> {
        let (piece, _) = self.piece(address)?;
        if piece.object { self.read(Owner::Kernel, address, count) } else { None }
    }
}
