//! Memory that is zero until written, and only then allocated, for a few bytes spread over a large
//! file.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use stable_deref_trait::{CloneStableDeref, StableDeref};

/// Writable zeros. Only pages that were written to take memory.
pub struct ZeroedBuffer {
    start: NonNull<u8>,
    length: usize,
}

impl ZeroedBuffer {
    /// Maps `length` zeros. Fails if the kernel has no room for them: the address space is used up
    /// or limited (`RLIMIT_AS`), or overcommit is disabled (`vm.overcommit_memory` 2).
    pub fn new(length: usize) -> io::Result<Self> {
        if isize::try_from(length).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if length == 0 {
            return Ok(Self {
                start: NonNull::dangling(),
                length,
            });
        }
        let (access, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        );
        // SAFETY: the kernel chooses the address of the mapping, so nothing that exists is changed.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, flags) }?;
        // Otherwise a byte could take two megabytes. The call fails if the kernel has no huge
        // pages, which is fine.
        // SAFETY: it is the mapping just created, and the advice changes nothing in it.
        let _ = unsafe { madvise(start, length, Advice::LinuxNoHugepage) };
        Ok(Self {
            start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            length,
        })
    }

    /// Makes the bytes read-only and shareable.
    pub fn share(self) -> Shared {
        Shared(Rc::new(self))
    }
}

impl Deref for ZeroedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is mapped for as long as `self`, initialized to zeros by the kernel,
        // and no one else's; an empty slice may begin anywhere.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for ZeroedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `self` is borrowed mutably for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for ZeroedBuffer {
    fn drop(&mut self) {
        if self.length != 0 {
            // SAFETY: it is the very mapping that `new` created, and nothing borrows from it any
            // more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

impl fmt::Debug for ZeroedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

/// Shared immutable bytes.
#[derive(Clone, Debug)]
pub struct Shared(Rc<ZeroedBuffer>);

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

// SAFETY: the bytes are in a mapping, which stays where it is when its owner moves.
unsafe impl StableDeref for Shared {}
// SAFETY: all clones have the same mapping, which exists until the last of them is dropped.
unsafe impl CloneStableDeref for Shared {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_memory_is_zero_and_takes_nothing() {
        // Four times the memory that a test may use.
        let mut large = ZeroedBuffer::new(1 << 32).unwrap();
        assert_eq!(large.len(), 1 << 32);
        large[1 << 31] = 7;
        let large = large.share();
        assert_eq!((large[0], large.clone()[1 << 31]), (0, 7));
        assert!(ZeroedBuffer::new(0).unwrap().is_empty());
    }

    #[test]
    fn more_than_there_is_room_for_is_an_error() {
        assert!(ZeroedBuffer::new(1 << 60).is_err());
        assert!(ZeroedBuffer::new(usize::MAX).is_err());
    }
}
