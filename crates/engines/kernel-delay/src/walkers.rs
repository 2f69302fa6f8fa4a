//! Walkers of the copied stacks of several processes.

use std::sync::{Arc, Mutex, PoisonError};

use host::Process;
use symbolize::Warn;

use crate::layout::STACK_DEPTH;
use crate::live::Unwinder;
use crate::{Stack, StackEnd};

/// Unwind tables of processes, for all samples of a run.
pub struct StackWalkers {
    /// Maximum number of bytes copied of a stack.
    copied: u32,
    walkers: Arc<Mutex<symbolize::StackWalkers>>,
}

impl StackWalkers {
    /// Creates walkers that know no process yet.
    pub fn new(copied: u32, warn: Warn) -> Self {
        Self {
            copied,
            walkers: Arc::new(Mutex::new(symbolize::StackWalkers::new(copied, warn))),
        }
    }

    /// Begins a sample: reads the current mappings of these processes. The returned unwinder walks
    /// the sample's stacks.
    pub fn begin(&self, pids: &[u32]) -> Unwinder {
        self.walkers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin(pids);
        let (copied, walkers) = (self.copied, Arc::clone(&self.walkers));
        Box::new(move |stack| {
            let mut walkers = walkers.lock().unwrap_or_else(PoisonError::into_inner);
            to_stack(
                walkers.walk(stack.pid, stack.registers, stack.bytes),
                copied,
            )
        })
    }

    /// Returns the processes' mappings in this sample after they opened libraries.
    pub fn take_seen(&self) -> Vec<(u32, Process)> {
        self.walkers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_seen()
    }
}

/// A walked stack has at most as many addresses as are kept.
const _: () = assert!(symbolize::MAX_ADDRESSES == STACK_DEPTH);

/// Converts a walked stack of which at most `copied` bytes were copied.
fn to_stack(found: symbolize::WalkedStack, copied: u32) -> Stack {
    let end = match found.end {
        symbolize::StackEnd::Whole => StackEnd::Whole,
        symbolize::StackEnd::NotCopied => StackEnd::NotCopied(copied),
        symbolize::StackEnd::TooDeep => StackEnd::TooDeep,
        symbolize::StackEnd::Unknown => StackEnd::Unknown,
        symbolize::StackEnd::Refused => StackEnd::Refused,
    };
    Stack {
        addresses: found.addresses,
        end,
    }
}
