//! System calls as single events, with the stacks that led to them. What is kept is bounded, whatever comes.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::layout::{Comm, EventHead, StackEvent, WrongSize, slot_of};
use serde_json::{Value, json};
use zerocopy::FromBytes as _;

use crate::names::call_name;
use crate::number::grouped;
use crate::snapshot::name;
use crate::stacks::{CopiedStack, Stack, StackId, Stacks, Symbols, Unwind};

/// A system call that came to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    entry: u64,
    exit: u64,
    tid: u32,
    slot: u32,
    comm: Comm,
    kernel: Option<StackId>,
    user: Option<StackId>,
}

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Events.
    pub events: usize,
    /// Different stacks; none means that there are no stacks.
    pub stacks: usize,
}

/// The events of a window.
#[derive(Clone, Debug)]
pub struct Events {
    limits: Limits,
    kept: Vec<Event>,
    stacks: Stacks,
    /// Events beyond the limit.
    dropped: u64,
    /// Events one of whose stacks is not there: it could not be read, or there are too many.
    lost_stacks: u64,
}

impl Events {
    /// Nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, kept: Vec::new(), stacks: Stacks::new(limits.stacks), dropped: 0, lost_stacks: 0 }
    }

    /// Takes an event's bytes. Where stacks are copied, `unwind` walks them.
    pub fn add(&mut self, bytes: &[u8], unwind: Option<Unwind<'_>>) -> Result<(), WrongSize> {
        if self.kept.len() >= self.limits.events {
            self.dropped += 1;
            return Ok(());
        }
        let (head, kernel, user) = if self.limits.stacks > 0 {
            let (head, [kernel, user]) = stacks(bytes, unwind)?;
            let [kernel, user] = [kernel, user].map(|stack| self.stacks.add(stack?));
            self.lost_stacks += u64::from(kernel.is_none() || user.is_none());
            (head, kernel, user)
        } else {
            let wrong = |_| WrongSize::event(bytes.len(), size_of::<EventHead>());
            (EventHead::read_from_bytes(bytes).map_err(wrong)?, None, None)
        };
        let EventHead { entry, exit, tid, comm, .. } = head;
        self.kept.push(Event { entry, exit, tid, slot: slot_of(head.call), comm, kernel, user });
        Ok(())
    }

    /// Events that were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The text, piece by piece: each call with its stacks under it, in the order in which they began. `wanted` says which
    /// threads. It can be long, so that nobody should have it in one piece.
    pub fn text<E>(
        &mut self,
        symbols: &dyn Symbols,
        wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.kept.sort_by_key(|event| event.entry);
        take(&head())?;
        let mut shown = Shown::default();
        for event in &self.kept {
            let comm = name(&event.comm);
            if wanted(&comm) {
                take(&line(event, &comm, &shown.of(event, self, symbols)))?;
            }
        }
        if self.lost_stacks > 0 {
            let (lost, room) = (self.lost_stacks, self.stacks.most());
            take(&format!(
                "\n# WARNING: {lost} events have a stack that could not be read or found no room:\n\
                 #          --stack-trace-size makes room for more than {room}.\n"
            ))?;
        }
        if self.dropped > 0 {
            let (dropped, kept) = (self.dropped, self.kept.len());
            take(&format!("\n# WARNING: {dropped} events are not shown: the first {kept} are.\n"))?;
        }
        Ok(())
    }

    /// The same for programs.
    pub fn json(&mut self, symbols: &dyn Symbols, wanted: impl Fn(&str) -> bool) -> Value {
        self.kept.sort_by_key(|event| event.entry);
        let mut shown = Shown::default();
        let events = self.kept.iter().filter(|event| wanted(&name(&event.comm))).map(|event| {
            json!({
                "entry_ns": event.entry, "exit_ns": event.exit, "tid": event.tid, "name": name(&event.comm),
                "syscall": call_name(event.slot), "stack": shown.of(event, self, symbols),
            })
        });
        let events: Vec<Value> = events.collect();
        json!({ "events": events, "dropped": self.dropped, "lost_stacks": self.lost_stacks })
    }
}

fn head() -> String {
    let (entry, exit, delta) = ("ENTRY (ns)", "EXIT (ns)", "DELTA (us)");
    let mut text = String::from("\n\n# SYSCALL EVENTS:\n");
    // Writing to a string does not fail.
    let _ = writeln!(text, "  {entry:>19} {exit:>19} {:>10} {:16} {delta:>10}  SYSCALL", "TID", "COMM");
    let _ = writeln!(text, "  {:-<19} {:-<19} {:-<10} {:-<16} {:-<10}  {:-<16}", "", "", "", "", "", "");
    text
}

fn line(event: &Event, comm: &str, stack: &[String]) -> String {
    let Event { entry, exit, tid, slot, .. } = event;
    let delta = grouped((exit - entry) / 1000);
    let mut text = format!("  {entry:19} {exit:19} {tid:10} {comm:16} {delta:>10}  {}\n", call_name(*slot));
    for line in stack {
        let _ = writeln!(text, "          {line}");
    }
    text
}

/// What stacks look like, each once.
#[derive(Default)]
struct Shown {
    kernel: HashMap<StackId, Vec<String>>,
    user: HashMap<StackId, Vec<String>>,
}

impl Shown {
    fn of(&mut self, event: &Event, events: &Events, symbols: &dyn Symbols) -> Vec<String> {
        let known = |id| events.stacks.get(id);
        let mut lines = Vec::new();
        if let Some((id, stack)) = event.kernel.and_then(|id| Some((id, known(id)?))) {
            let shown = self.kernel.entry(id).or_insert_with(|| stack.lines(|at, _| symbols.kernel(at)));
            lines.extend_from_slice(shown);
        }
        if let Some((id, stack)) = event.user.and_then(|id| Some((id, known(id)?))) {
            let shown = self.user.entry(id).or_insert_with(|| stack.lines(|at, caller| symbols.user(at, caller)));
            lines.extend_from_slice(shown);
        }
        lines
    }
}

/// What each event has, and the stacks of one that has some: the kernel's and the user's, where they could be read.
fn stacks(bytes: &[u8], unwind: Option<Unwind<'_>>) -> Result<(EventHead, [Option<Stack>; 2]), WrongSize> {
    let wrong = |wanted| WrongSize::event(bytes.len(), wanted);
    let (event, copied) = StackEvent::read_from_prefix(bytes).map_err(|_| wrong(size_of::<StackEvent>()))?;
    let StackEvent { head, kernel, registers } = event;
    let kernel = match walked(head.kernel_bytes) {
        Some(bytes) => Some(kernel.get(..bytes / size_of::<u64>()).ok_or_else(|| wrong(bytes))?),
        None => None,
    };
    let user = match walked(head.user_bytes) {
        Some(bytes) => Some(copied.get(..bytes).ok_or_else(|| wrong(size_of::<StackEvent>() + bytes))?),
        None => None,
    };
    let user = user.map(|bytes| match unwind {
        Some(unwind) => unwind(CopiedStack { registers, bytes }),
        None => Stack::of_kernel(bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes).collect()),
    });
    Ok((head, [kernel.map(|addresses| Stack::of_kernel(addresses.to_vec())), user]))
}

/// The bytes of a stack; none where it could not be had, for which the length is an error.
fn walked(length: i64) -> Option<usize> {
    usize::try_from(length).ok().filter(|length| *length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::KernelStack;
    use zerocopy::{FromZeros as _, IntoBytes as _};

    struct Plain;

    impl Symbols for Plain {
        fn kernel(&self, address: u64) -> Vec<String> {
            vec![format!("k{address}")]
        }
        fn user(&self, address: u64, _: bool) -> Vec<String> {
            vec![format!("u{address}")]
        }
    }

    fn event(entry: u64, stack: u64) -> Vec<u8> {
        let mut event = StackEvent::new_zeroed();
        event.head = EventHead { entry, exit: entry + 5000, kernel_bytes: 8, user_bytes: -14, ..EventHead::default() };
        event.kernel[0] = stack;
        [event.as_bytes(), &[0; size_of::<KernelStack>()]].concat()
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_rest_is_counted() {
        let mut events = Events::new(Limits { events: 3, stacks: 1 });
        for (entry, stack) in [(30, 7), (10, 8), (20, 7), (40, 7)] {
            events.add(&event(entry, stack), None).unwrap();
        }
        let mut text = String::new();
        let taken: Result<(), ()> = events.text(
            &Plain,
            |_| true,
            |piece| {
                text.push_str(piece);
                Ok(())
            },
        );
        taken.unwrap();
        let order: Vec<usize> = ["10 ", "20 ", "30 "].map(|at| text.find(at).unwrap()).into();
        assert!(order.is_sorted(), "{text}");
        assert_eq!((text.matches("k7").count(), text.matches("k8").count(), events.dropped()), (2, 0, 1), "{text}");
        assert!(text.contains("3 events have a stack that could not be read"), "{text}");
        assert!(text.contains("1 events are not shown"), "{text}");
        events.add(&event(50, 7), None).unwrap();
        assert_eq!(events.dropped(), 2);
    }

    /// Never an event of zeros.
    #[test]
    fn an_event_of_the_wrong_size_is_an_error() {
        let whole = event(10, 7);
        for (stacks, bytes) in [(1, &[][..]), (1, &whole[..100]), (0, &[]), (0, &whole)] {
            let error = Events::new(Limits { events: 1, stacks }).add(bytes, None).unwrap_err().to_string();
            assert!(error.contains("the ring events") && error.contains("internal error"), "{error}");
        }
        let mut beyond = StackEvent::new_zeroed();
        for head in [EventHead { user_bytes: 8, ..beyond.head }, EventHead { kernel_bytes: 1024, ..beyond.head }] {
            beyond.head = head;
            let error = Events::new(Limits { events: 1, stacks: 1 }).add(beyond.as_bytes(), None);
            assert!(error.is_err(), "{head:?}");
        }
    }
}
