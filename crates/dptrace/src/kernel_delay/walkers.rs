//! Walks the copied stacks of several processes.

use std::collections::HashMap;

use kernel_delay::layout::STACK_DEPTH;
use kernel_delay::{CopiedStack, Stack, StackEnd};
use symbolize::StackWalker;

use crate::failure::warn_symbols;

/// How many processes' unwind tables are kept: where there are more, all are forgotten.
const MAX_WALKERS: usize = 32;

/// The unwind tables of processes.
pub(super) struct StackWalkers {
    /// How many bytes of a stack are copied, where it has as many.
    copied: u32,
    walkers: HashMap<u32, StackWalker>,
}

impl StackWalkers {
    /// Reads what these processes have mapped now; of those that come later it is read when the first stack of them comes.
    pub(super) fn new(pids: &[u32], copied: u32) -> Self {
        let walkers = pids.iter().take(MAX_WALKERS).map(|&pid| (pid, StackWalker::new(pid, copied, &warn_symbols())));
        Self { copied, walkers: walkers.collect() }
    }

    /// The addresses of a stack, the innermost first.
    pub(super) fn walk(&mut self, stack: CopiedStack<'_>) -> Stack {
        if self.walkers.len() >= MAX_WALKERS && !self.walkers.contains_key(&stack.pid) {
            self.walkers.clear();
        }
        let copied = self.copied;
        let new = || StackWalker::new(stack.pid, copied, &warn_symbols());
        walked(self.walkers.entry(stack.pid).or_insert_with(new), stack, copied)
    }
}

/// The most addresses that a walked stack has are those that are kept of one.
const _: () = assert!(symbolize::MAX_ADDRESSES == STACK_DEPTH);

/// Walks a stack of which at most `copied` bytes were copied.
fn walked(walker: &mut StackWalker, stack: CopiedStack<'_>, copied: u32) -> Stack {
    let found = walker.walk(stack.registers, stack.bytes);
    let end = match found.end {
        symbolize::StackEnd::Whole => StackEnd::Whole,
        symbolize::StackEnd::NotCopied => StackEnd::NotCopied(copied),
        symbolize::StackEnd::TooDeep => StackEnd::TooDeep,
        symbolize::StackEnd::Unknown => StackEnd::Unknown,
        symbolize::StackEnd::Refused => StackEnd::Refused,
    };
    Stack { addresses: found.addresses, end }
}
