//! Upcalls of the kernel's Open vSwitch: packets sent to user space, by CPU and result.

use screen::grouped;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::layout::UpcallKey;
use serde_json::{Value, json};

use crate::names::error_name;

/// Counts by CPU.
type ByCpu = BTreeMap<u32, u64>;

/// Upcalls of a window, of all processes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Upcalls {
    /// Counts by error, 0 for no error.
    counts: BTreeMap<u32, ByCpu>,
    /// True if errors are known.
    with_errors: bool,
}

impl Upcalls {
    /// Sums the map's keys and values.
    pub fn from_pairs(pairs: &[(UpcallKey, u64)], with_errors: bool) -> Self {
        let mut counts: BTreeMap<u32, ByCpu> = BTreeMap::new();
        for (UpcallKey { cpu, error }, count) in pairs {
            *counts.entry(*error).or_default().entry(*cpu).or_default() += count;
        }
        Self {
            counts,
            with_errors,
        }
    }

    /// Returns the number of upcalls with matching errors, by CPU.
    fn by_cpu(&self, wanted: impl Fn(u32) -> bool) -> ByCpu {
        let mut sums = ByCpu::new();
        for (_, counts) in self.counts.iter().filter(|(error, _)| wanted(**error)) {
            for (cpu, count) in counts {
                *sums.entry(*cpu).or_default() += count;
            }
        }
        sums
    }

    /// Writes the section of the report.
    pub(crate) fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "\n\n# UPCALL STATISTICS, of all processes (TOTAL [CPU: COUNT, ...]):"
        )?;
        line(text, "Total upcalls", &self.by_cpu(|_| true))?;
        if !self.with_errors {
            return writeln!(
                text,
                "  (without kprobes, the number of failures is unknown)"
            );
        }
        line(text, "Successful upcalls", &self.by_cpu(|error| error == 0))?;
        line(text, "Failed upcalls", &self.by_cpu(|error| error != 0))?;
        for (error, counts) in self.counts.iter().filter(|(error, _)| **error != 0) {
            line(text, &format!("  {}", error_name(*error)), counts)?;
        }
        Ok(())
    }

    /// Returns the upcalls as JSON.
    pub(crate) fn json(&self) -> Value {
        let cpus = |counts: &ByCpu| -> Vec<Value> {
            counts
                .iter()
                .map(|(cpu, count)| json!({ "cpu": cpu, "count": count }))
                .collect()
        };
        let failed = |with: bool| {
            self.with_errors
                .then(|| self.by_cpu(|error| (error != 0) == with))
        };
        let errors = self.counts.iter().filter(|(error, _)| **error != 0).map(|(error, counts)| {
            json!({
                "error": error, "name": error_name(*error), "count": counts.values().sum::<u64>(), "cpus": cpus(counts),
            })
        });
        let total = self.by_cpu(|_| true);
        json!({
            "total": total.values().sum::<u64>(),
            "successful": failed(false).map(|counts| counts.values().sum::<u64>()),
            "failed": failed(true).map(|counts| counts.values().sum::<u64>()),
            "cpus": cpus(&total),
            "errors": self.with_errors.then(|| errors.collect::<Vec<_>>()),
        })
    }
}

fn line(text: &mut String, what: &str, counts: &ByCpu) -> std::fmt::Result {
    let each: Vec<String> = counts
        .iter()
        .map(|(cpu, count)| format!("{cpu}: {}", grouped(*count)))
        .collect();
    writeln!(
        text,
        "  {what:20}: {:>12} [{}]",
        grouped(counts.values().sum()),
        each.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(cpu: u32, error: u32, count: u64) -> (UpcallKey, u64) {
        (UpcallKey { cpu, error }, count)
    }

    #[test]
    fn upcalls_are_printed_by_cpu_and_error() {
        let pairs = [pair(1, 0, 1200), pair(0, 0, 3), pair(1, 107, 2)];
        let mut text = String::new();
        Upcalls::from_pairs(&pairs, true).write(&mut text).unwrap();
        let printed: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            printed,
            [
                "  Total upcalls       :        1,205 [0: 3, 1: 1,202]",
                "  Successful upcalls  :        1,203 [0: 3, 1: 1,200]",
                "  Failed upcalls      :            2 [1: 2]",
                "    ENOTCONN          :            2 [1: 2]",
            ]
        );
        let json = Upcalls::from_pairs(&pairs, true).json();
        assert_eq!(
            (&json["total"], &json["failed"], &json["errors"][0]["error"]),
            (&1205.into(), &2.into(), &107.into())
        );
    }

    #[test]
    fn without_errors_only_the_sum_is_printed() {
        let mut text = String::new();
        let upcalls = Upcalls::from_pairs(&[], false);
        upcalls.write(&mut text).unwrap();
        assert!(
            text.contains("Total upcalls       :            0 []") && !text.contains("Failed"),
            "{text}"
        );
        assert_eq!(
            (&upcalls.json()["total"], &upcalls.json()["failed"]),
            (&0.into(), &Value::Null)
        );
    }
}
