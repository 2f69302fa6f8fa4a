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
    pub(super) fn lines(
        &mut self,
        stacks: &EventStacks,
        events: &Events,
        symbols: &dyn Symbols,
    ) -> Vec<String> {
        let known = |id| events.stacks.get(id);
        let mut lines = Vec::new();
        if let Some((id, stack)) = stacks.kernel.and_then(|id| Some((id, known(id)?))) {
            let whole = self.whole;
            let shown = self.kernel.entry(id).or_insert_with(|| {
                let mut lines = stack.lines(|at, _| Some(symbols.kernel(at)));
                lines.retain(|line| whole || !is_entry(line));
                lines
            });
            lines.extend_from_slice(shown);
        }
        if let Some((id, stack)) = stacks.user.and_then(|id| Some((id, known(id)?))) {
            let shown = self
                .user
                .entry((stacks.pid, id))
                .or_insert_with(|| stack.lines(|at, caller| symbols.user(stacks.pid, at, caller)));
            lines.extend_from_slice(shown);
        }
        lines
    }
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
