//! System calls as single events, with the stacks that led to them. What is kept is bounded, whatever comes.

use std::collections::HashMap;
use std::fmt::Write as _;

use bpf_codegen::delay::layout::{event, slot_of};
use serde_json::{Value, json};

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
    comm: [u8; 16],
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
    pub fn add(&mut self, bytes: &[u8], unwind: Option<Unwind<'_>>) {
        if self.kept.len() >= self.limits.events {
            self.dropped += 1;
            return;
        }
        let wide = |at: i16| number::<8>(bytes, at.cast_unsigned().into()).map_or(0, u64::from_ne_bytes);
        let narrow = |at: i16| number::<4>(bytes, at.cast_unsigned().into()).map_or(0, u32::from_ne_bytes);
        let with_stacks = self.limits.stacks > 0;
        let kernel = part(bytes, event::KERNEL, wide(event::KERNEL_BYTES)).map(Stack::of_kernel);
        let user = part(bytes, event::USER, wide(event::USER_BYTES)).map(|bytes| match unwind {
            Some(unwind) => {
                let registers = [0, 8, 16, 24].map(|at| wide(event::REGISTERS + at));
                unwind(CopiedStack { registers, bytes })
            }
            None => Stack::of_kernel(bytes),
        });
        let [kernel, user] = [kernel, user].map(|stack| self.stacks.add(stack.filter(|_| with_stacks)?));
        if with_stacks && (kernel.is_none() || user.is_none()) {
            self.lost_stacks += 1;
        }
        self.kept.push(Event {
            entry: wide(event::ENTRY),
            exit: wide(event::EXIT),
            tid: narrow(event::TID),
            slot: slot_of(narrow(event::CALL)),
            comm: number::<16>(bytes, event::COMM.cast_unsigned().into()).unwrap_or_default(),
            kernel,
            user,
        });
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

/// So many bytes from an offset on; nothing if they could not be had, for which the length is an error.
fn part(bytes: &[u8], at: i16, length: u64) -> Option<&[u8]> {
    let length = usize::try_from(length.cast_signed()).ok().filter(|length| *length > 0)?;
    let at = usize::from(at.cast_unsigned());
    bytes.get(at..at + length)
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<[u8; BYTES]> {
    bytes.get(at..at + BYTES)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut bytes = vec![0; event::size(0) as usize];
        let mut put = |at: i16, word: u64| {
            bytes[usize::from(at.cast_unsigned())..][..8].copy_from_slice(&word.to_ne_bytes());
        };
        put(event::ENTRY, entry);
        put(event::EXIT, entry + 5000);
        put(event::KERNEL_BYTES, 8);
        put(event::KERNEL, stack);
        put(event::USER_BYTES, (-14_i64).cast_unsigned());
        bytes
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_rest_is_told() {
        let mut events = Events::new(Limits { events: 3, stacks: 1 });
        for (entry, stack) in [(30, 7), (10, 8), (20, 7), (40, 7)] {
            events.add(&event(entry, stack), None);
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
        events.add(&[], None);
        assert_eq!(events.dropped(), 2);
    }
}
