//! The lines of a recording that still matter, for a recording that runs for days when only the
//! last moment is needed.

use std::collections::BTreeMap;

use crate::alive::LineKind;
use crate::lifetimes::{Key, lines};
use crate::spec::{ObjectSpec, Role};

/// Number of last lines kept of an object, besides its first.
const MAX_LAST_LINES: usize = 16;
/// Number of last lines kept of earlier objects with the same key.
const MAX_ENDED_LINES: usize = 4;
/// Limit on objects with lines; beyond it, the oldest are dropped.
const MAX_OBJECTS: usize = 1 << 16;

/// Lines about objects that are alive or ended recently, in order of arrival.
#[derive(Debug, Default)]
pub struct Journal {
    /// Lines by spec and key, as text.
    objects: BTreeMap<(usize, Box<str>), JournalEntry>,
    /// The last line that ends a reading, by spec.
    readings: BTreeMap<usize, Line>,
    /// Time of the last line.
    last: u64,
    count: u64,
}

/// A line with its number among all lines.
#[derive(Debug)]
struct Line(u64, Box<str>);

#[derive(Debug)]
struct JournalEntry {
    lines: Vec<Line>,
    /// Time of its end, if it has ended.
    end: Option<u64>,
}

impl JournalEntry {
    /// Adds a line; if it is a beginning, drops all but the last lines of earlier objects with the
    /// same key.
    fn add(&mut self, line: Line, begins: bool) {
        let much = self.lines.len().saturating_sub(MAX_ENDED_LINES);
        if begins && much > 0 {
            self.lines.drain(..much);
        }
        self.lines.push(line);
        if self.lines.len() > MAX_LAST_LINES + 1 {
            self.lines.remove(1);
        }
    }
}

impl Journal {
    /// Adds the next line.
    pub fn learn(&mut self, specs: &[ObjectSpec], text: &str) {
        let Some(Ok((_, event))) = lines(text, specs, self.last).next() else {
            return;
        };
        self.last = event.tsc;
        self.count += 1;
        let line = || Line(self.count, text.into());
        let reading = LineKind::parse(event.probe);
        for (number, spec) in specs.iter().enumerate() {
            let said = reading
                .filter(|(_, name)| *name == spec.name)
                .map(|(said, _)| said);
            let role = spec
                .probes
                .iter()
                .find(|probe| probe.name == event.probe)
                .map(|probe| probe.role);
            if said == Some(LineKind::Read) {
                self.readings.insert(number, line());
            }
            let Some(key) = event.arg(&spec.key).map(Key::from) else {
                continue;
            };
            let begins = said == Some(LineKind::Alive) || matches!(role, Some(Role::Begin));
            let ends = said == Some(LineKind::Gone) || matches!(role, Some(Role::End));
            if said.is_none() && role.is_none() {
                continue;
            }
            let updates = matches!(role, Some(Role::Update));
            let key = match key {
                Key::Int(number) => format!("{number:x}").into(),
                Key::Str(text) => text.into(),
            };
            let place = (number, key);
            let lives = self
                .objects
                .get(&place)
                .is_some_and(|known| known.end.is_none());
            if (ends || updates) && !lives {
                // The object's beginning was not recorded, or the object is forgotten.
                continue;
            }
            let known = self.objects.entry(place).or_insert(JournalEntry {
                lines: Vec::new(),
                end: None,
            });
            // An earlier object with this key has ended, and is kept until it is forgotten.
            known.end = if ends {
                Some(event.tsc)
            } else {
                known.end.filter(|_| !begins)
            };
            known.add(line(), begins);
        }
        if self.objects.len() > MAX_OBJECTS {
            self.drop_oldest();
        }
    }

    /// Drops the quarter of the objects with the oldest last lines; a quarter, so that it is seldom
    /// done.
    fn drop_oldest(&mut self) {
        let newest = |known: &JournalEntry| known.lines.last().map_or(0, |line| line.0);
        let mut all: Vec<u64> = self.objects.values().map(newest).collect();
        let quarter = all.len() / 4;
        let (_, from, _) = all.select_nth_unstable(quarter);
        let from = *from;
        self.objects.retain(|_, known| newest(known) >= from);
    }

    /// Forgets the objects that ended before `tsc`.
    pub fn forget(&mut self, tsc: u64) {
        self.objects
            .retain(|_, known| known.end.is_none_or(|end| end >= tsc));
    }

    /// Returns all lines, as in a recording.
    pub fn text(&self) -> String {
        let of_objects = self.objects.values().flat_map(|known| &known.lines);
        let mut all: Vec<_> = of_objects.chain(self.readings.values()).collect();
        all.sort_by_key(|line| line.0);
        all.dedup_by_key(|line| line.0);
        all.iter().flat_map(|line| [&*line.1, "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use spdk_trace::Ticks;

    use super::*;
    use crate::lifetimes::Lifetimes;
    use crate::spec::built_in;

    #[test]
    fn objects_that_ended_long_ago_are_forgotten() {
        let specs: Vec<_> = built_in()
            .unwrap()
            .into_iter()
            .filter(|spec| spec.name == "qpair")
            .collect();
        let spec = &specs[0];
        let named = |role: Role| {
            &spec
                .probes
                .iter()
                .find(|probe| probe.role == role)
                .unwrap()
                .name
        };
        let line = |probe: &str, tsc: u64, key: u64| {
            format!("{probe}: tsc={tsc:#x}, {}={key:#x}", spec.key)
        };
        let mut journal = Journal::default();
        let mut all = Vec::new();
        for key in 1..100_u64 {
            all.push(line(named(Role::Begin), 100 * key, key % 10));
            all.push(line(named(Role::Update), 100 * key + 1, key % 10));
            if key < 95 {
                all.push(line(named(Role::End), 100 * key + 50, key % 10));
            }
        }
        for line in &all {
            journal.learn(&specs, line);
        }
        journal.forget(9_000);
        let text = journal.text();
        assert!(text.lines().count() < all.len() / 2, "{text}");
        let at = |text: &str| {
            let (lifetimes, broken) = Lifetimes::read(&specs, text);
            assert!(broken.is_empty());
            let at = |key| {
                lifetimes
                    .at(0, Key::Int(key), Ticks(9_810))
                    .map(|life| (life.begin, life.text.clone()))
            };
            (0..10).map(at).collect::<Vec<_>>()
        };
        assert_eq!(at(&text), at(&all.join("\n")));
    }
}
