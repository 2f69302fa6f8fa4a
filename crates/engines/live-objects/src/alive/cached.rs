//! Memory that is read page by page, each page once. Reading a thousand objects then takes a
//! thousand system calls instead of ten thousand, and sees one state of each page.

use std::cell::RefCell;
use std::collections::HashMap;

use live_memory::{Memory, MemoryError};

/// Size of a cached piece, in bytes. The page size of every supported machine is a multiple of it.
const PAGE: u64 = 4096;
/// Limit on cached pages: 64 MiB. Pages beyond it are read each time.
const MAX_PAGES: usize = 16 << 10;

/// Memory of which each page is read once.
#[derive(Debug)]
pub struct CachedMemory<M> {
    memory: M,
    pages: RefCell<HashMap<u64, Option<Box<[u8]>>>>,
}

impl<M: Memory> CachedMemory<M> {
    /// Wraps a memory; nothing is cached yet.
    pub fn new(memory: M) -> Self {
        Self {
            memory,
            pages: RefCell::default(),
        }
    }

    /// Copies bytes of one page. Returns false if the page could not be read as a whole, or the
    /// cache is full.
    fn copy(&self, address: u64, into: &mut [u8]) -> bool {
        let (page, offset) = (address / PAGE, (address % PAGE) as usize);
        let mut pages = self.pages.borrow_mut();
        if !pages.contains_key(&page) {
            if pages.len() >= MAX_PAGES {
                return false;
            }
            let mut bytes = vec![0; PAGE as usize].into_boxed_slice();
            let read = self.memory.read(page * PAGE, &mut bytes);
            pages.insert(page, read.is_ok().then_some(bytes));
        }
        let bytes = pages
            .get(&page)
            .and_then(Option::as_deref)
            .and_then(|bytes| bytes.get(offset..offset + into.len()));
        bytes.inspect(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

impl<M: Memory> Memory for CachedMemory<M> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let length = into.len();
        let mut done = 0;
        while done < length {
            let Some(at) = address.checked_add(done as u64) else {
                break;
            };
            let part = (length - done).min((PAGE - at % PAGE) as usize);
            if !self.copy(at, &mut into[done..done + part]) {
                break;
            }
            done += part;
        }
        // Parts of the page may be readable even if the whole is not.
        if done == length {
            Ok(())
        } else {
            self.memory.read(address, into)
        }
    }
}
