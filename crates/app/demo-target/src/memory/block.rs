//! Pieces of this process's memory in the form of C structs, and SPDK's lists of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layouts::NONE;
use super::roots::Root;

/// Struct in memory: bytes at a fixed address, zero at first. A reader from outside sees each store
/// whole.
#[derive(Debug)]
pub(crate) struct Block {
    words: Box<[AtomicU64]>,
}

impl Block {
    pub(super) fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            words: (0..size.div_ceil(8)).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Returns its address, as in pointers to it.
    pub(crate) fn address(&self) -> u64 {
        self.words.as_ptr().expose_provenance() as u64
    }

    /// Zeroes it, as `calloc` does.
    pub(super) fn clear(&self) {
        for word in &self.words {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Writes the lowest `size` bytes (1, 2, 4 or 8) at an offset with that alignment. One thread
    /// writes a block at a time.
    fn set(&self, offset: usize, size: usize, value: u64) {
        if offset == NONE {
            return;
        }
        let shift = 8 * (offset % 8);
        let mask = if size == 8 {
            u64::MAX
        } else {
            ((1 << (8 * size)) - 1) << shift
        };
        let word = &self.words[offset / 8];
        let rest = word.load(Ordering::Relaxed) & !mask;
        word.store(rest | ((value << shift) & mask), Ordering::Release);
    }

    pub(super) fn set8(&self, offset: usize, value: u8) {
        self.set(offset, 1, value.into());
    }

    pub(super) fn set16(&self, offset: usize, value: u16) {
        self.set(offset, 2, value.into());
    }

    pub(super) fn set32(&self, offset: usize, value: u32) {
        self.set(offset, 4, value.into());
    }

    pub(super) fn set64(&self, offset: usize, value: u64) {
        self.set(offset, 8, value);
    }

    /// Adds 1 to eight bytes.
    pub(super) fn count64(&self, offset: usize) {
        self.words[offset / 8].fetch_add(1, Ordering::Relaxed);
    }

    /// Writes a text and its NUL.
    pub(super) fn set_text(&self, offset: usize, text: &[u8]) {
        for (at, byte) in (offset..).zip(text.iter().chain(&[0])) {
            self.set8(at, *byte);
        }
    }

    /// Creates a block that holds just this text.
    pub(super) fn from_text(text: &str) -> Arc<Self> {
        let block = Self::new(text.len() + 1);
        block.set_text(0, text.as_bytes());
        block
    }
}

/// Holder of the head of a list.
#[derive(Debug)]
pub(super) enum Owner {
    Block(Arc<Block>),
    Root(Root),
}

impl Owner {
    fn set64(&self, offset: usize, value: u64) {
        match self {
            Self::Block(block) => block.set64(offset, value),
            Self::Root(root) => root.set(offset, value),
        }
    }

    fn address(&self) -> u64 {
        match self {
            Self::Block(block) => block.address(),
            Self::Root(root) => root.address(),
        }
    }
}

/// List of `<sys/queue.h>` (`TAILQ`): the links in memory, and the linked elements.
#[derive(Debug)]
pub(super) struct List {
    owner: Owner,
    /// Offset of the head in its owner.
    head: usize,
    /// Offset of the link in each element.
    link: usize,
    elements: Vec<Arc<Block>>,
}

impl List {
    pub(super) fn new(owner: Owner, head: usize, link: usize) -> Self {
        let list = Self {
            owner,
            head,
            link,
            elements: Vec::new(),
        };
        list.owner
            .set64(head + 8, list.owner.address() + head as u64);
        list.owner.set64(head, 0);
        list
    }

    pub(super) fn in_block(block: &Arc<Block>, head: usize, link: usize) -> Self {
        Self::new(Owner::Block(Arc::clone(block)), head, link)
    }

    /// Appends a complete element, as `TAILQ_INSERT_TAIL` does.
    pub(super) fn push(&mut self, element: Arc<Block>) {
        let link = element.address() + self.link as u64;
        element.set64(self.link, 0);
        element.set64(self.link + 8, self.last());
        self.owner.set64(self.head + 8, link);
        match self.elements.last() {
            Some(before) => before.set64(self.link, element.address()),
            None => self.owner.set64(self.head, element.address()),
        }
        self.elements.push(element);
    }

    /// Removes the element at this address, as `TAILQ_REMOVE` does; the element itself stays
    /// unchanged.
    pub(super) fn remove(&mut self, address: u64) {
        let Some(at) = self
            .elements
            .iter()
            .position(|element| element.address() == address)
        else {
            return;
        };
        self.elements.remove(at);
        let next = self.elements.get(at);
        let before = if at == 0 {
            None
        } else {
            self.elements.get(at - 1)
        };
        let place = before.map_or(self.owner.address() + self.head as u64, |before| {
            before.address() + self.link as u64
        });
        match next {
            Some(next) => next.set64(self.link + 8, place),
            None => self.owner.set64(self.head + 8, place),
        }
        let next = next.map_or(0, |next| next.address());
        match before {
            Some(before) => before.set64(self.link, next),
            None => self.owner.set64(self.head, next),
        }
    }

    /// Returns the address of the pointer to which the next element will be written.
    fn last(&self) -> u64 {
        match self.elements.last() {
            Some(last) => last.address() + self.link as u64,
            None => self.owner.address() + self.head as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(block: &Block, at: usize) -> u64 {
        block.words[at].load(Ordering::Relaxed)
    }

    #[test]
    fn stores_touch_their_own_bytes_only() {
        let block = Block::new(20);
        block.set64(0, u64::MAX);
        block.set16(2, 0x1234);
        block.set8(7, 0);
        block.set32(12, 0xdead_beef);
        assert_eq!(
            (word(&block, 0), word(&block, 1)),
            (0x00ff_ffff_1234_ffff, 0xdead_beef_0000_0000)
        );
        block.set_text(6, b"ab");
        assert_eq!((word(&block, 0) >> 48, word(&block, 1) & 0xff), (0x6261, 0));
        block.set64(NONE, 5);
        block.clear();
        assert_eq!(
            (word(&block, 0), word(&block, 1), word(&block, 2)),
            (0, 0, 0)
        );
    }

    #[test]
    fn lists_are_linked_both_ways() {
        let head = Block::new(24);
        let mut list = List::in_block(&head, 8, 0);
        assert_eq!((word(&head, 1), word(&head, 2)), (0, head.address() + 8));
        let elements: Vec<_> = (0..4).map(|_| Block::new(24)).collect();
        for element in &elements {
            list.push(Arc::clone(element));
        }
        for removed in [1, 3, 0] {
            list.remove(elements[removed].address());
            // Forwards by the first word, backwards by the second, which is the address of the
            // pointer before.
            let (mut at, mut place) = (word(&head, 1), head.address() + 8);
            for element in &list.elements {
                assert_eq!((at, word(element, 1)), (element.address(), place));
                (at, place) = (word(element, 0), element.address());
            }
            assert_eq!((at, word(&head, 2)), (0, place));
        }
        assert_eq!(list.elements.len(), 1);
    }
}
