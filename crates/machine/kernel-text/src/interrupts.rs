//! `/proc/interrupts`: counts of each interrupt on each CPU (proc_interrupts(5)).

use std::collections::BTreeMap;

/// Counts of all interrupts, by their label: a number, or letters such as `LOC`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, Row>);

/// An interrupt's line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Counts by CPU.
    pub by_cpu: BTreeMap<u32, u64>,
    /// Text behind the counts: controller, kind and devices, or a description.
    pub what: String,
}

impl Counts {
    /// Parses the table. Lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let cpus: Vec<u32> = header
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
            .collect();
        let rows = lines.filter_map(|line| {
            let (label, rest) = line.split_once(':')?;
            let mut rest = rest.trim_start();
            let mut by_cpu = BTreeMap::new();
            for cpu in &cpus {
                let (count, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                // Some rows (ERR, MIS) have one count for all.
                let Ok(count) = count.parse() else { break };
                by_cpu.insert(*cpu, count);
                rest = behind.trim_start();
            }
            Some((
                label.trim().to_owned(),
                Row {
                    by_cpu,
                    what: rest.trim_end().to_owned(),
                },
            ))
        });
        Self(rows.collect())
    }

    /// Returns the line with this label.
    pub fn row(&self, label: &str) -> Option<&Row> {
        self.0.get(label)
    }

    /// Returns how often it came to a CPU since an earlier reading.
    pub fn since(&self, earlier: &Self, label: &str, cpu: u32) -> u64 {
        let count = |counts: &Self| {
            counts
                .row(label)
                .and_then(|row| row.by_cpu.get(&cpu).copied())
                .unwrap_or_default()
        };
        count(self).saturating_sub(count(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2       \n \
        24:          1          5  IO-APIC   5-edge      ACPI:Ged\n\
        LOC:   34254663   36561958   Local timer interrupts\n\
        ERR:          7\nnonsense\n";

    #[test]
    fn counts_are_those_of_the_cpus_of_the_header() {
        let counts = Counts::parse(TEXT);
        let row = counts.row("24").unwrap();
        assert_eq!(
            (row.by_cpu.get(&2), row.what.as_str()),
            (Some(&5), "IO-APIC   5-edge      ACPI:Ged")
        );
        assert_eq!(counts.row("LOC").unwrap().what, "Local timer interrupts");
        assert_eq!(counts.row("ERR").unwrap().by_cpu, BTreeMap::from([(0, 7)]));
        let later = Counts::parse(&TEXT.replace("  5  IO", "  9  IO"));
        assert_eq!(
            (
                later.since(&counts, "24", 2),
                later.since(&counts, "24", 0),
                counts.since(&later, "x", 1)
            ),
            (4, 0, 0)
        );
        assert_eq!(Counts::parse(""), Counts::default());
    }
}
