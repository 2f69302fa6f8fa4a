//! System calls as single events, with the stacks that led to them. Memory is bounded for any
//! number of events.

mod lines;
mod profile;
mod stacks;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;

use crate::layout::{Comm, EventHead, WrongSize, slot_of};
use ordering::Order as _;
use screen::{counted, time};
use serde_json::{Value, json};
use zerocopy::FromBytes as _;

use crate::events::lines::{each_head, each_line, folded_head, folded_line, indented};
use crate::events::stacks::{StackCache, stacks};
use crate::names::call_name;
use crate::sample::Stat;
use crate::selection::View;
use crate::snapshot::name;
use crate::stacks::{StackId, Stacks, Symbols, Unwind};

/// Completed system call.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    entry: u64,
    exit: u64,
    tid: u32,
    comm: Comm,
    stacks: EventStacks,
}

impl Event {
    fn nanos(&self) -> u64 {
        self.exit.saturating_sub(self.entry)
    }
}

/// Key of calls that are shown as one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct EventStacks {
    pid: u32,
    slot: u32,
    kernel: Option<StackId>,
    user: Option<StackId>,
}

/// Form of the list of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventList {
    /// One line per event, in order of time.
    Each,
    /// Stacks that look the same on this screen as one, worst first: all, or only the worst.
    Folded(View),
}

/// Maximum number of folded stacks listed by default.
const FOLDED: usize = 20;
/// Maximum number of events a second that a user can read.
const MAX_EVENTS_PER_SECOND: u64 = 1000;

/// Limits on the events and stacks kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of events.
    pub events: usize,
    /// Maximum number of different stacks; 0 if events have no stacks.
    pub stacks: usize,
}

/// Events of a window.
#[derive(Clone, Debug)]
pub struct Events {
    limits: Limits,
    kept: Vec<Event>,
    stacks: Stacks,
    /// Number of events beyond the limit.
    dropped: u64,
    /// Number of events that lack a stack because it could not be read, or because there are too
    /// many.
    lost_stacks: u64,
}

impl Events {
    /// Creates an empty list.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            kept: Vec::new(),
            stacks: Stacks::new(limits.stacks),
            dropped: 0,
            lost_stacks: 0,
        }
    }

    /// Takes an event's bytes. If stacks are copied, `unwind` walks them.
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
            (
                EventHead::read_from_bytes(bytes).map_err(wrong)?,
                None,
                None,
            )
        };
        let EventHead {
            entry,
            exit,
            tid,
            comm,
            ..
        } = head;
        let stacks = EventStacks {
            pid: head.tgid as u32,
            slot: slot_of(head.call),
            kernel,
            user,
        };
        self.kept.push(Event {
            entry,
            exit,
            tid,
            comm,
            stacks,
        });
        Ok(())
    }

    /// Returns the number of events that were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the text in pieces, since all of it together can be too long. `wanted` selects
    /// threads by name.
    pub fn text<E>(
        &mut self,
        symbols: &dyn Symbols,
        wanted: impl Fn(&str) -> bool,
        list: EventList,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        match list {
            EventList::Each => self.each(symbols, wanted, &mut take)?,
            EventList::Folded(view) => self.folded_text(symbols, wanted, view, &mut take)?,
        }
        if self.lost_stacks > 0 {
            let room = self.stacks.most();
            let events = counted(self.lost_stacks, "event");
            let have = if self.lost_stacks == 1 { "has" } else { "have" };
            take(&format!(
                "\n# WARNING: {events} {have} a stack that could not be read or stored:\n\
                 #          --stack-trace-size makes room for more than {room}.\n"
            ))?;
        }
        if self.dropped > 0 {
            let (dropped, kept) = (self.dropped, self.kept.len());
            let (events, are) = (
                counted(dropped, "event"),
                if dropped == 1 { "is" } else { "are" },
            );
            take(&format!(
                "\n# WARNING: {events} {are} not shown: the first {kept} are.\n"
            ))?;
        }
        Ok(())
    }

    /// Writes each call with its stacks under it, in the order of their starts.
    fn each<E>(
        &mut self,
        symbols: &dyn Symbols,
        wanted: impl Fn(&str) -> bool,
        take: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.kept.order_by_key(|event| event.entry);
        take(&each_head())?;
        let mut shown = StackCache::default();
        for event in &self.kept {
            let comm = name(&event.comm);
            if wanted(&comm) {
                take(&each_line(
                    event,
                    &comm,
                    &shown.lines(&event.stacks, self, symbols),
                ))?;
            }
        }
        Ok(())
    }

    /// Writes stacks that look the same once, ordered by the total time of their calls, longest
    /// first.
    fn folded_text<E>(
        &self,
        symbols: &dyn Symbols,
        wanted: impl Fn(&str) -> bool,
        view: View,
        take: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut shown = StackCache::default();
        // The same function has different addresses in two processes, and a terminal cuts long
        // lines.
        let rows = self.folded(wanted).into_iter().map(|(stacks, stat)| {
            let lines = shown.lines(&stacks, self, symbols);
            let stack: Vec<String> = lines
                .iter()
                .map(|line| view.screen.cut(&indented(line)).into_owned())
                .collect();
            ((stacks.slot, stack), stat)
        });
        let folded = worst_first(merged(rows));
        take(&folded_head())?;
        let most = if view.all { usize::MAX } else { FOLDED };
        for ((slot, stack), stat) in folded.iter().take(most) {
            take(&folded_line(*slot, stat, stack))?;
        }
        let left = folded.get(most..).unwrap_or_default();
        if !left.is_empty() {
            let total = time(left.iter().map(|(_, stat)| stat.total).sum());
            let left = counted(left.len() as u64, "more stack");
            take(&format!(
                "# {left}, with calls that took {total} in all (--all shows them)\n"
            ))?;
        }
        Ok(())
    }

    /// Sums the calls of wanted threads by their stacks, greatest sum first.
    fn folded(&self, wanted: impl Fn(&str) -> bool) -> Vec<(EventStacks, Stat)> {
        worst_first(self.summed(wanted, |event| event.stacks))
    }

    /// Sums the calls of wanted threads by a key.
    fn summed<K: Eq + Hash>(
        &self,
        wanted: impl Fn(&str) -> bool,
        key: impl Fn(&Event) -> K,
    ) -> HashMap<K, Stat> {
        let calls = self
            .kept
            .iter()
            .filter(|event| wanted(&name(&event.comm)))
            .map(|event| {
                let nanos = event.nanos();
                (
                    key(event),
                    Stat {
                        count: 1,
                        total: nanos,
                        min: 0,
                        max: nanos,
                    },
                )
            });
        merged(calls)
    }

    /// Proposes a minimum length in nanoseconds that leaves at most [`MAX_EVENTS_PER_SECOND`] events a second, and
    /// returns about how many calls are at least as long, assuming that lost events are like those
    /// kept. `None` if there are few enough already.
    pub(crate) fn proposed(&self, window: u64, lost: u64) -> Option<(u64, u64)> {
        let enough = (MAX_EVENTS_PER_SECOND as f64 * window as f64 / 1e9).max(1.0) as u64;
        let kept = self.kept.len() as u64;
        let with_lost = |count: u64| {
            (count as f64 * (kept + self.dropped + lost) as f64 / kept.max(1) as f64) as u64
        };
        let longer = |least: u64| {
            with_lost(
                self.kept
                    .iter()
                    .filter(|event| event.nanos() >= least)
                    .count() as u64,
            )
        };
        if with_lost(kept) <= enough {
            return None;
        }
        let lengths = (3..10).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
        lengths
            .map(|least| (least, longer(least)))
            .find(|(_, count)| *count <= enough)
    }

    /// Writes the single events as JSON, in pieces: a list of 65,536 with their stacks takes 30 MB
    /// and more as text, and several times that as values.
    pub fn json_list<E>(
        &mut self,
        symbols: &dyn Symbols,
        wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(String) -> Result<(), E>,
    ) -> Result<(), E> {
        self.kept.order_by_key(|event| event.entry);
        let mut shown = StackCache {
            whole: true,
            ..StackCache::default()
        };
        let mut before = '[';
        for event in self.kept.iter().filter(|event| wanted(&name(&event.comm))) {
            let event = json!({
                "entry_ns": event.entry, "exit_ns": event.exit, "tid": event.tid, "name": name(&event.comm),
                "syscall": call_name(event.stacks.slot), "stack": shown.lines(&event.stacks, self, symbols),
                "pid": event.stacks.pid,
            });
            take(format!("{before}{event}"))?;
            before = ',';
        }
        take(if before == '[' { "[]" } else { "]" }.to_owned())
    }

    /// Returns everything except [`Self::json_list`] as JSON. Its text has a place for the list,
    /// which [`split_at_list`] finds.
    pub fn json(&self, symbols: &dyn Symbols, wanted: impl Fn(&str) -> bool) -> Value {
        let mut shown = StackCache {
            whole: true,
            ..StackCache::default()
        };
        let rows = self.folded(wanted).into_iter();
        let rows = rows.map(|(stacks, stat)| {
            (
                (stacks.pid, stacks.slot, shown.lines(&stacks, self, symbols)),
                stat,
            )
        });
        let stacks = worst_first(merged(rows)).into_iter().map(|((pid, slot, stack), stat)| {
            json!({
                "pid": pid, "syscall": call_name(slot), "count": stat.count, "total_ns": stat.total, "max_ns": stat.max,
                "stack": stack,
            })
        });
        let stacks: Vec<Value> = stacks.collect();
        json!({ "events": LIST, "dropped": self.dropped, "lost_stacks": self.lost_stacks, "stacks": stacks })
    }
}

/// Placeholder for the list of events in [`Events::json`].
const LIST: &str = "\u{1}";

/// Splits an object's text before and after the list of its events; `None` if it has no place for
/// one. JSON strings escape quotation marks, so no process's name looks like it.
pub fn split_at_list(text: &str) -> Option<(&str, &str)> {
    const KEY: &str = "\"events\":";
    let place = format!("{KEY}{}", json!(LIST));
    let (before, after) = text.split_once(&place)?;
    Some((&text[..before.len() + KEY.len()], after))
}

/// Sums the rows with the same key.
fn merged<K: Eq + Hash>(rows: impl Iterator<Item = (K, Stat)>) -> HashMap<K, Stat> {
    let mut sums: HashMap<K, Stat> = HashMap::new();
    for (key, stat) in rows {
        let sum = sums.entry(key).or_default();
        let (count, total) = (sum.count + stat.count, sum.total + stat.total);
        *sum = Stat {
            count,
            total,
            min: 0,
            max: sum.max.max(stat.max),
        };
    }
    sums
}

/// Sorts by sum, greatest first.
fn worst_first<K: Ord>(sums: HashMap<K, Stat>) -> Vec<(K, Stat)> {
    let mut sums: Vec<(K, Stat)> = sums.into_iter().collect();
    sums.order_by(|(key, stat), (other_key, other)| {
        other
            .total
            .cmp(&stat.total)
            .then_with(|| key.cmp(other_key))
    });
    sums
}
