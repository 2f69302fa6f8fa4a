//! Stacks of events, as text.

use crate::Events;
use crate::events::EventStacks;
use crate::layout::{EventHead, StackEvent, WrongSize};
use crate::stacks::{CopiedStack, Stack, StackId, Symbols, Unwind, is_entry};
use std::collections::HashMap;
use zerocopy::FromBytes as _;

/// Cache of the lines of stacks.
#[derive(Default)]
pub(super) struct StackCache {
    /// True to include the kernel's entry code of a system call.
    pub(super) whole: bool,
    pub(super) kernel: HashMap<StackId, Vec<String>>,
    /// Lines by process: the same addresses belong to other functions elsewhere.
    pub(super) user: HashMap<(u32, StackId), Vec<String>>,
}

impl StackCache {
    /// Returns the lines of both stacks, the kernel's first, innermost functions first.
    pub(super) fn lines(
        &mut self,
        stacks: &EventStacks,
        events: &Events,
        symbols: &dyn Symbols,
    ) -> Vec<String> {
        let mut lines = self.kernel_lines(stacks, events, symbols).to_vec();
        lines.extend_from_slice(self.user_lines(stacks, events, symbols));
        lines
    }

    /// Returns the lines of the kernel's stack, innermost function first.
    pub(super) fn kernel_lines(
        &mut self,
        stacks: &EventStacks,
        events: &Events,
        symbols: &dyn Symbols,
    ) -> &[String] {
        let Some((id, stack)) = known(stacks.kernel, events) else {
            return &[];
        };
        let whole = self.whole;
        self.kernel.entry(id).or_insert_with(|| {
            let mut lines = stack.lines(|at, _| Some(symbols.kernel(at)));
            lines.retain(|line| whole || !is_entry(line));
            lines
        })
    }

    /// Returns the lines of the process's stack, innermost function first.
    pub(super) fn user_lines(
        &mut self,
        stacks: &EventStacks,
        events: &Events,
        symbols: &dyn Symbols,
    ) -> &[String] {
        let Some((id, stack)) = known(stacks.user, events) else {
            return &[];
        };
        self.user
            .entry((stacks.pid, id))
            .or_insert_with(|| stack.lines(|at, caller| symbols.user(stacks.pid, at, caller)))
    }
}

/// Returns a stack that was kept, with its number.
fn known(id: Option<StackId>, events: &Events) -> Option<(StackId, &Stack)> {
    let id = id?;
    Some((id, events.stacks.get(id)?))
}

/// Parses an event with stacks: its head, and the kernel's and the user's stack if they could be
/// read.
pub(super) fn stacks(
    bytes: &[u8],
    unwind: Option<Unwind<'_>>,
) -> Result<(EventHead, [Option<Stack>; 2]), WrongSize> {
    let wrong = |wanted| WrongSize::event(bytes.len(), wanted);
    let (event, copied) =
        StackEvent::read_from_prefix(bytes).map_err(|_| wrong(size_of::<StackEvent>()))?;
    let StackEvent {
        head,
        kernel,
        registers,
    } = event;
    let kernel = match walked(head.kernel_bytes) {
        Some(bytes) => Some(
            kernel
                .get(..bytes / size_of::<u64>())
                .ok_or_else(|| wrong(bytes))?,
        ),
        None => None,
    };
    let user = match walked(head.user_bytes) {
        Some(bytes) => Some(
            copied
                .get(..bytes)
                .ok_or_else(|| wrong(size_of::<StackEvent>() + bytes))?,
        ),
        None => None,
    };
    let user = user.map(|bytes| match unwind {
        Some(unwind) => unwind(CopiedStack {
            pid: head.tgid as u32,
            registers,
            bytes,
        }),
        None => Stack::from_frame_pointers(
            bytes
                .as_chunks()
                .0
                .iter()
                .copied()
                .map(u64::from_ne_bytes)
                .collect(),
        ),
    });
    Ok((
        head,
        [
            kernel.map(|addresses| Stack::from_kernel(addresses.to_vec())),
            user,
        ],
    ))
}

/// Returns the size of a stack in bytes; `None` if the length is 0 or an error: the stack could
/// not be read.
fn walked(length: i64) -> Option<usize> {
    usize::try_from(length).ok().filter(|length| *length > 0)
}
