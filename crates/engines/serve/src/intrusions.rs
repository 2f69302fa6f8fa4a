//! Time that others took of the CPUs of pollers, as counters.

use std::collections::BTreeMap;

use super::limits::{INTRUDERS, Limits};

/// Name of intruders without a name of their own.
const OTHER: &str = "other";
/// Time in nanoseconds that an intruder must have taken for a name of its own, and by which it must
/// surpass a named one to get its place.
const MIN_NAMED_NS: u64 = 5_000_000;
/// Limit on the intruders without a name that are remembered: beyond it, those that took most
/// lately are kept.
const MAX_UNNAMED: usize = 64;
/// Denominator of the part of the time taken lately that a second forgets: it covers about the last
/// minute.
const FORGOTTEN_PER_SECOND: u64 = 64;

/// Intruder: its kind and its name.
pub(crate) type IntruderKey = (&'static str, String);

/// Counter of one intruder.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    nanos: u64,
    idle: u32,
    /// Time that it took lately, in nanoseconds: see [`FORGOTTEN_PER_SECOND`].
    lately: u64,
}

/// Intruders on one CPU.
#[derive(Debug, Default)]
struct Cpu {
    named: BTreeMap<IntruderKey, Counter>,
    /// Time in nanoseconds that intruders without a name took lately. All that they took is in
    /// `other`.
    unnamed: BTreeMap<IntruderKey, u64>,
    other: Counter,
}

/// Intruders on all audited CPUs.
#[derive(Debug)]
pub(crate) struct Intrusions {
    cpus: BTreeMap<u32, Cpu>,
    most: usize,
    forget: u32,
}

impl Intrusions {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            cpus: BTreeMap::new(),
            most: limits.cpus,
            forget: limits.forget,
        }
    }

    /// Adds the time taken of a CPU, in nanoseconds. `unnamed` is the time for which no intruder
    /// was found.
    pub(crate) fn add(&mut self, cpu: u32, taken: Vec<(IntruderKey, u64)>, unnamed: u64) {
        if !self.cpus.contains_key(&cpu) && self.cpus.len() >= self.most {
            return;
        }
        let cpu = self.cpus.entry(cpu).or_default();
        // As long as it is audited, it is shown.
        cpu.other.idle = 0;
        cpu.other.nanos += unnamed;
        for (who, nanos) in taken {
            cpu.add(who, nanos);
        }
    }

    /// Ends a second. Drops the series of intruders that took nothing for long, and of CPUs that
    /// are not audited any more.
    pub(crate) fn second(&mut self) {
        let forget = self.forget;
        for cpu in self.cpus.values_mut() {
            cpu.other.idle = cpu.other.idle.saturating_add(1);
            for counter in cpu.named.values_mut() {
                counter.idle = counter.idle.saturating_add(1);
                counter.lately -= counter.lately.div_ceil(FORGOTTEN_PER_SECOND);
            }
            for lately in cpu.unnamed.values_mut() {
                *lately -= lately.div_ceil(FORGOTTEN_PER_SECOND);
            }
            cpu.unnamed.retain(|_, lately| *lately > 0);
            cpu.named.retain(|_, counter| counter.idle < forget);
        }
        self.cpus.retain(|_, cpu| cpu.other.idle < forget);
    }

    /// Returns all counters: the CPU, the intruder's kind and name, and nanoseconds.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (u32, &'static str, &str, u64)> {
        self.cpus.iter().flat_map(|(number, cpu)| {
            let named = cpu
                .named
                .iter()
                .map(|((kind, by), counter)| (*number, *kind, by.as_str(), counter.nanos));
            named.chain([(*number, OTHER, OTHER, cpu.other.nanos)])
        })
    }
}

impl Cpu {
    fn add(&mut self, who: IntruderKey, nanos: u64) {
        if let Some(counter) = self.named.get_mut(&who) {
            counter.nanos += nanos;
            counter.lately += nanos;
            counter.idle = if nanos > 0 { 0 } else { counter.idle };
            return;
        }
        let lately = self.unnamed.entry(who.clone()).or_default();
        *lately += nanos;
        let lately = *lately;
        let is_full = self.named.len() >= INTRUDERS;
        let least = self
            .named
            .values()
            .map(|counter| counter.lately)
            .min()
            .filter(|_| is_full)
            .unwrap_or_default();
        if lately >= MIN_NAMED_NS.saturating_add(least) {
            if is_full {
                self.drop_least();
            }
            self.unnamed.remove(&who);
            // The time that it took before is in `other`, whose counter must not fall.
            self.named.insert(
                who,
                Counter {
                    nanos,
                    idle: 0,
                    lately,
                },
            );
            return;
        }
        self.other.nanos += nanos;
        if self.unnamed.len() > MAX_UNNAMED {
            let mut all: Vec<u64> = self.unnamed.values().copied().collect();
            let middle = all.len() / 2;
            let (_, &mut median, _) = all.select_nth_unstable(middle);
            self.unnamed.retain(|_, lately| *lately > median);
        }
    }

    /// Takes the name from the intruder that took least lately: its time goes to `other`.
    fn drop_least(&mut self) {
        let least = self
            .named
            .iter()
            .min_by_key(|(_, counter)| counter.lately)
            .map(|(who, _)| who.clone());
        if let Some((who, counter)) = least.and_then(|who| self.named.remove_entry(&who)) {
            self.other.nanos += counter.nanos;
            self.unnamed.insert(who, counter.lately);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections: 1,
        with_stages: 1,
        threads: 1,
        targets: 1,
        cpus: 2,
        forget: 3,
    };

    fn intruder_key(name: usize) -> IntruderKey {
        ("thread", name.to_string())
    }

    fn sum(intrusions: &Intrusions, cpu: u32) -> u64 {
        intrusions
            .shown()
            .filter(|(number, ..)| *number == cpu)
            .map(|(.., nanos)| nanos)
            .sum()
    }

    #[test]
    fn all_that_was_taken_is_counted_once_and_names_have_an_end() {
        let mut intrusions = Intrusions::new(LIMITS);
        let all: Vec<(IntruderKey, u64)> = (0..100)
            .map(|name| (intruder_key(name), MIN_NAMED_NS))
            .collect();
        intrusions.add(1, all.clone(), 7);
        intrusions.add(1, all, 0);
        assert_eq!(intrusions.shown().count(), INTRUDERS + 1);
        assert_eq!(sum(&intrusions, 1), 200 * MIN_NAMED_NS + 7);
        // Two CPUs are the limit.
        intrusions.add(2, vec![(intruder_key(0), 1)], 0);
        intrusions.add(3, vec![(intruder_key(0), 1)], 0);
        assert_eq!((sum(&intrusions, 2), sum(&intrusions, 3)), (1, 0));
    }

    #[test]
    fn the_largest_has_a_name_whenever_it_comes() {
        let mut intrusions = Intrusions::new(Limits {
            forget: 100,
            ..LIMITS
        });
        let first: Vec<(IntruderKey, u64)> = (0..INTRUDERS)
            .map(|name| (intruder_key(name), 2 * MIN_NAMED_NS))
            .collect();
        intrusions.add(1, first, 0);
        let mut counters = BTreeMap::new();
        for second in 1..=10 {
            intrusions.add(
                1,
                vec![
                    (intruder_key(50), MIN_NAMED_NS),
                    (intruder_key(0), MIN_NAMED_NS / 10),
                ],
                0,
            );
            intrusions.second();
            for (_, kind, by, nanos) in intrusions.shown().filter(|(_, _, by, _)| *by == OTHER) {
                let before = counters.insert((kind, by.to_owned()), nanos);
                assert!(
                    before.is_none_or(|before| before <= nanos),
                    "a counter falls"
                );
            }
            let all =
                (2 * INTRUDERS as u64) * MIN_NAMED_NS + second * (MIN_NAMED_NS + MIN_NAMED_NS / 10);
            assert_eq!(sum(&intrusions, 1), all, "nothing is lost or counted twice");
        }
        let named: Vec<&str> = intrusions.shown().map(|(_, _, by, _)| by).collect();
        assert!(named.contains(&"50") && named.contains(&"0"), "{named:?}");
        assert_eq!(named.len(), INTRUDERS + 1);
    }

    #[test]
    fn small_intruders_are_named_later_and_idle_ones_lose_their_name() {
        let mut intrusions = Intrusions::new(LIMITS);
        for _ in 0..3 {
            intrusions.add(1, vec![(intruder_key(1), MIN_NAMED_NS / 2)], 0);
        }
        let shown: Vec<_> = intrusions
            .shown()
            .map(|(_, kind, by, nanos)| (kind, by.to_owned(), nanos))
            .collect();
        assert_eq!(
            shown,
            [
                ("thread", "1".to_owned(), MIN_NAMED_NS),
                (OTHER, OTHER.to_owned(), MIN_NAMED_NS / 2)
            ]
        );
        for _ in 0..2 {
            intrusions.second();
            intrusions.add(1, Vec::new(), 1);
        }
        assert_eq!(intrusions.shown().count(), 2);
        intrusions.second();
        assert_eq!(intrusions.shown().count(), 1, "for three seconds nothing");
        (0..3).for_each(|_| intrusions.second());
        assert_eq!(intrusions.shown().count(), 0, "it is not audited any more");
    }
}
