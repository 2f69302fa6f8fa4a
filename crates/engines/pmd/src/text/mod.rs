//! The texts of `dpif-netdev/pmd-perf-show`, `pmd-stats-show` and `pmd-rxq-show`.
//!
//! They are written for people, and their lines differ from version to version
//! (`lib/dpif-netdev-perf.c` and `lib/dpif-netdev.c` of Open vSwitch, 2.17 to 4.0). So each line is
//! read by its name and each column by its heading; other forms are skipped. All three have the
//! same headings of sections, so one parser reads them.

/// Limit on the milliseconds read of one thread: Open vSwitch keeps 1,000 (`HISTORY_LEN`).
const MAX_PARSED_MILLISECONDS: usize = 100_000;
/// Limit on the milliseconds read of a text: those of a thousand threads. With the other limits, it
/// keeps an untrusted text of some MiB from taking many times its size.
const MAX_ROWS: usize = 1 << 20;
/// Limit on the threads read of a text: machines have fewer CPUs.
const MAX_SECTIONS: usize = 4096;
/// Limit on the other lines read of a text.
const MAX_LINES: usize = 1 << 18;

/// Parsed text, thread by thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Sections of the PMD threads, in the order of the text. The main thread has none.
    pub sections: Vec<Section>,
}

impl Text {
    /// Returns the number of milliseconds of all threads.
    pub fn milliseconds(&self) -> usize {
        self.sections
            .iter()
            .flat_map(|section| &section.milliseconds)
            .map(Vec::len)
            .sum()
    }
}

/// Section of one PMD thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Number of the CPU on which the thread polls.
    pub core: u32,
    /// NUMA node of that CPU.
    pub numa: Option<u32>,
    /// Lines with a number, by name in lower case: `rx packets`, `idle cycles`.
    numbers: Vec<(String, u64)>,
    /// Lines with a word, by name in lower case: `isolated`.
    words: Vec<(String, String)>,
    /// Queues that the thread polls.
    pub queues: Vec<Queue>,
    /// Milliseconds in the order of the text, normally newest first. `None` if the text has no
    /// table of them, as without `pmd-perf-metrics`.
    pub milliseconds: Option<Vec<Millisecond>>,
}

/// Receive queue of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Name of its port: untrusted text.
    pub port: String,
    /// Queue number.
    pub queue: u32,
    /// Share of the thread's time, in percent, if the text has one.
    pub percent: Option<u32>,
}

/// Line of the history of milliseconds. It begins at the end of the iteration that found the line
/// before it to be over, so a long iteration belongs to the line in which it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Millisecond {
    /// Start, in milliseconds of `CLOCK_MONOTONIC` (`time_msec` in `lib/timeval.c`).
    pub ms: u64,
    /// Iterations of the thread's loop.
    pub iterations: u64,
    /// Cycles per iteration, on average.
    pub cycles: u64,
    /// Packets. Their column is called `Kpps`, since they are counted per millisecond.
    pub packets: u64,
    /// Length of the longest vhost queue seen.
    pub vhost_queue: u64,
    /// Packets without a flow, which the thread has looked up in the tables of OpenFlow.
    pub upcalls: u64,
    /// Cycles per upcall, on average.
    pub upcall_cycles: u64,
}

impl Section {
    /// Returns the number after this name, which must be in lower case.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, number)| *number)
    }

    /// Returns the word after this name, which must be in lower case: untrusted text.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.words
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, word)| word.as_str())
    }

    fn line(&mut self, line: &str) {
        let trimmed = line.trim().trim_start_matches("- ");
        let Some((name, value)) = trimmed.split_once(':') else {
            return;
        };
        if name == "port" {
            self.queues.extend(queue(value));
            return;
        }
        let (name, value) = (name.trim().to_lowercase(), value.trim());
        let word = value.split_ascii_whitespace().next().unwrap_or_default();
        match word.parse() {
            Ok(number) => self.numbers.push((name, number)),
            Err(_) if !word.is_empty() => self.words.push((name, word.to_owned())),
            Err(_) => {}
        }
    }

    /// Reads a line of the history by the headings of its columns.
    fn row(&mut self, headings: &[&str], line: &str) {
        let rows = self.milliseconds.get_or_insert_default();
        if rows.len() < MAX_PARSED_MILLISECONDS {
            rows.extend(millisecond(headings, line));
        }
    }
}

/// Parses a text.
pub fn parse(text: &str) -> Text {
    let (mut sections, mut headings): (Vec<Section>, Option<Vec<&str>>) = (Vec::new(), None);
    // Lines of the main thread, or before the first heading, belong to no thread.
    let mut is_of_thread = false;
    let (mut lines, mut rows) = (0, 0);
    for line in text.lines() {
        if let Some(heading) = heading(line) {
            is_of_thread = heading.is_some() && sections.len() < MAX_SECTIONS;
            sections.extend(heading.filter(|_| is_of_thread));
            headings = None;
            continue;
        }
        let Some(section) = sections.last_mut().filter(|_| is_of_thread) else {
            continue;
        };
        if let Some(found) = columns(line) {
            // Other tables are skipped.
            headings = found.contains(&"ms").then_some(found);
            if headings.is_some() {
                section.milliseconds.get_or_insert_default();
            }
        } else if let Some(headings) = &headings {
            rows += 1;
            if rows <= MAX_ROWS {
                section.row(headings, line);
            }
        } else {
            lines += 1;
            if lines <= MAX_LINES {
                section.line(line);
            }
        }
    }
    Text { sections }
}

/// Parses the heading of a section: of a PMD thread, or of another one (`Some(None)`). `None` if
/// the line is no heading.
#[expect(
    clippy::option_option,
    reason = "a heading of another thread is none of a section, and no line of one either"
)]
fn heading(line: &str) -> Option<Option<Section>> {
    let who = line.trim_end().strip_suffix(':')?;
    if who == "main thread" {
        return Some(None);
    }
    let mut words = who.strip_prefix("pmd thread ")?.split_ascii_whitespace();
    let mut section = Section::default();
    let mut core = None;
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        match name {
            "numa_id" => section.numa = value.parse().ok(),
            "core_id" => core = value.parse().ok(),
            _ => {}
        }
    }
    Some(core.map(|core| Section { core, ..section }))
}

/// Splits the headings of a table at two blanks or more; `None` if the line is not one of words,
/// none of them a number.
fn columns(line: &str) -> Option<Vec<&str>> {
    if line.contains(':') {
        return None;
    }
    let headings: Vec<&str> = line
        .split("  ")
        .map(str::trim)
        .filter(|heading| !heading.is_empty())
        .collect();
    let is_heading = |heading: &&str| heading.starts_with(|c: char| c.is_ascii_alphabetic());
    (headings.len() > 2 && headings.iter().all(is_heading)).then_some(headings)
}

fn millisecond(headings: &[&str], line: &str) -> Option<Millisecond> {
    let mut row = Millisecond::default();
    let mut values = line.split_ascii_whitespace();
    for heading in headings {
        let value = values.next()?.parse().ok()?;
        match *heading {
            "ms" => row.ms = value,
            "iterations" => row.iterations = value,
            "cycles/it" => row.cycles = value,
            "Kpps" => row.packets = value,
            "vhost qlen" => row.vhost_queue = value,
            "upcalls" => row.upcalls = value,
            "cycles/upcall" => row.upcall_cycles = value,
            _ => {}
        }
    }
    // A line that was never written consists of zeros.
    (values.next().is_none() && row.ms > 0).then_some(row)
}

/// Parses the text after `port:`, such as `null0             queue-id:  0 (enabled)   pmd usage: 51
/// %`.
fn queue(line: &str) -> Option<Queue> {
    let (port, rest) = line.rsplit_once("queue-id:")?;
    let queue = rest.split_ascii_whitespace().next()?.parse().ok()?;
    let usage = rest
        .split_once("pmd usage:")
        .and_then(|(_, usage)| usage.split_ascii_whitespace().next()?.parse().ok());
    Some(Queue {
        port: port.trim().to_owned(),
        queue,
        percent: usage,
    })
}

#[cfg(test)]
mod tests;
