//! An audit as text.

use screen::{Screen, columns, counted, pad, pad_left, shorten, time, times, wrap};

use super::layout::FIRST_CLASS;
use super::run::{AuditResult, MAX_INTRUSIONS};
use super::summary::{is_own, label, listed_victims, one_line, own_and_others, safe, share, whose};
use super::{CpuReport, Intruder, Victim, labelled, name_of};

/// Limit on listed intruders, on its own threads, and on listed victims, per CPU: a screen for a
/// CPU.
const MAX_LISTED: usize = 5;
/// Width of the names in a file or a pipe, and on a wide terminal.
const NAME_WIDTH: usize = 49;
/// Minimum width of the names.
const MIN_NAME_WIDTH: usize = 20;
/// Width of a line of intruders without the name.
const NUMBERS_WIDTH: usize = 34;
/// Minimum width of a wrapped text.
const MIN_TEXT_WIDTH: usize = 20;

/// Formats the whole report: a line for each CPU, and their details unless only a `summary` is
/// wanted. A terminal gets no line that is too wide for it.
pub(super) fn report(found: &AuditResult, summary: bool, screen: Screen) -> String {
    let mut text = ReportText {
        text: String::new(),
        found,
        screen,
    };
    for cpu in &found.cpus {
        text.wrapped("", 2, &one_line(found, cpu));
    }
    if summary {
        return text.text;
    }
    for cpu in &found.cpus {
        text.text.push('\n');
        text.cpu(cpu);
    }
    text.each();
    text.text
}

/// Text of a report, as far as it is written.
struct ReportText<'a> {
    text: String,
    found: &'a AuditResult,
    screen: Screen,
}

impl ReportText<'_> {
    /// Appends a line whose columns fit.
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Appends a text behind `head`, and on a terminal breaks it at blanks; further lines are
    /// indented, and words that are too long are shortened.
    fn wrapped(&mut self, head: &str, indent: usize, text: &str) {
        let Some(width) = self.screen.width() else {
            return self.line(&format!("{head}{}", text.replace(UNBROKEN, " ")));
        };
        let room = width.saturating_sub(indent.max(columns(head)));
        let room = room.max(MIN_TEXT_WIDTH);
        let joined = joined_words(text);
        let words: Vec<_> = joined.split(' ').map(|word| shorten(word, room)).collect();
        let lines = wrap(&words.join(" "), room);
        for (nth, line) in lines.iter().enumerate() {
            let before = if nth == 0 { head } else { &" ".repeat(indent) };
            self.line(&format!("{before}{}", line.replace(UNBROKEN, " ")));
        }
    }

    fn name_width(&self) -> usize {
        self.screen.width().map_or(NAME_WIDTH, |width| {
            width
                .saturating_sub(NUMBERS_WIDTH)
                .clamp(MIN_NAME_WIDTH, NAME_WIDTH)
        })
    }

    fn cpu(&mut self, cpu: &CpuReport) {
        let poller = match &cpu.poller {
            Some(poller) => format!(
                "{} has it for {}",
                described(poller),
                share(poller.total, cpu.window)
            ),
            None => "no thread has it for half of the time".to_owned(),
        };
        self.wrapped(
            "",
            2,
            &format!("CPU {}, {}: {poller}", cpu.cpu, time(cpu.window)),
        );
        self.budget(cpu);
        let stolen = self.found.stolen.get(&cpu.cpu).copied().unwrap_or(0);
        if stolen > 0 {
            let text = format!(
                "the hypervisor had the CPU for {} of this; the budget counts that for whoever was \
                 running",
                time(stolen)
            );
            self.wrapped("  ", 2, &text);
        }
        self.intruders(cpu);
        self.victims(cpu);
        self.losses(cpu);
    }

    fn budget(&mut self, cpu: &CpuReport) {
        for part in cpu.budget.iter().filter(|part| part.total > 0) {
            let longest = if part.longest > 0 {
                format!(", longest {}", time(part.longest))
            } else {
                String::new()
            };
            let count = if part.count > 0 {
                times(part.count) + &longest
            } else {
                String::new()
            };
            let [of_window, total] =
                [share(part.total, cpu.window), time(part.total)].map(|it| pad_left(&it, 9));
            self.line(&format!(
                "{of_window}  {total}  {} {count}",
                pad(part.what, 18)
            ));
        }
    }

    fn intruders(&mut self, cpu: &CpuReport) {
        let (own, others) = own_and_others(self.found, cpu);
        let own_head = match self.found.threads {
            Some(_) => format!("threads of {}", whose(self.found)),
            None => format!("other threads of {}", whose(self.found)),
        };
        for (head, listed) in [("intruders", others), (&own_head, own)] {
            if listed.is_empty() {
                continue;
            }
            self.head(head);
            for intruder in listed.iter().take(MAX_LISTED) {
                self.row(&label(intruder), intruder);
                self.details(cpu, intruder);
            }
            let rest = listed.get(MAX_LISTED..).unwrap_or_default();
            if !rest.is_empty() {
                let total = time(rest.iter().map(|intruder| intruder.total).sum());
                let more = rest.len();
                self.line(&format!(
                    "    and {more} more, {total} in all (--json lists them)"
                ));
            }
        }
    }

    /// Appends the head of a list of intruders or victims.
    fn head(&mut self, head: &str) {
        let width = self.name_width() + 1;
        self.line(&format!(
            "  {}    count     total   longest",
            pad(head, width)
        ));
    }

    /// Appends a line of intruders or victims.
    fn row(&mut self, name: &str, who: &Intruder) {
        let numbers = [who.count.to_string(), time(who.total), time(who.longest)];
        let [count, total, longest] = numbers.map(|it| pad_left(&it, 9));
        let width = self.name_width();
        let name = if self.screen.is_terminal() {
            shorten(name, width)
        } else {
            name.into()
        };
        self.line(&format!(
            "    {} {count} {total} {longest}",
            pad(&name, width)
        ));
    }

    /// Appends the cause and facts of an intruder, and the histogram of its lengths.
    fn details(&mut self, cpu: &CpuReport, who: &Intruder) {
        let facts = facts(who);
        let parts = [
            who.cause.as_deref().map(safe),
            Some(facts).filter(|facts| !facts.is_empty()),
            who.affinity
                .as_ref()
                .map(|cpus| format!("for CPU {}", safe(cpus))),
            parts_elsewhere(cpu, who),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            self.wrapped("      ", 8, &parts.join(", "));
        }
        if who.count > 1 {
            self.wrapped("      ", 8, &histogram(&who.classes));
        }
    }

    fn victims(&mut self, cpu: &CpuReport) {
        let listed: Vec<&Victim> = listed_victims(cpu).collect();
        if listed.is_empty() {
            return;
        }
        self.head("victims: could run, but had to wait");
        for victim in listed.iter().take(MAX_LISTED) {
            let what = if victim.who.kind == "work" {
                "queued work"
            } else {
                victim.who.kind
            };
            let name = safe(&victim.who.name);
            self.row(&labelled(what, &name), &victim.who);
            let own = is_own(self.found.threads.as_ref(), cpu, &victim.who)
                .then(|| format!("a thread of {}", whose(self.found)));
            let waits = victim
                .still
                .map(|still| format!("still waits, for {}", time(still)));
            let before = victim
                .before
                .then(|| "was already waiting at the start".to_owned());
            let facts = [own, waits, before, victim.who.cause.as_deref().map(safe)];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            if !facts.is_empty() {
                self.wrapped("      ", 8, &facts.join(", "));
            }
        }
        let more = listed.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            self.line(&format!("    and {more} more (--json lists them)"));
        }
    }

    fn losses(&mut self, cpu: &CpuReport) {
        if cpu.lost > 0 {
            let text = format!(
                "{} did not fit the maps: {} of the budget is in no line of intruders",
                counted(cpu.lost, "event"),
                time(cpu.unnamed)
            );
            self.wrapped("  ", 4, &text);
        }
        if cpu.unsent > 0 {
            let text = format!(
                "the ring was full: {} missing from the list of single ones",
                counted(cpu.unsent, "intrusion")
            );
            self.wrapped("  ", 4, &text);
        }
    }

    /// Appends the individual intrusions, in the order of time.
    fn each(&mut self) {
        let found = self.found;
        let start = found.cpus.iter().map(|cpu| cpu.start).min().unwrap_or(0);
        if !found.each.kept.is_empty() {
            self.line("\n  time since the start  CPU    length");
        }
        for one in &found.each.kept {
            let (kind, name, cause) = name_of(&found.sums, &one.key, &one.name, &found.names);
            let at = format!("{:.9} s", one.began.saturating_sub(start) as f64 / 1e9);
            let cause = cause.map_or_else(String::new, |cause| format!(", {}", safe(&cause)));
            let head = format!(
                "  {}  {} {} ",
                pad_left(&at, 20),
                pad_left(&one.key.cpu.to_string(), 4),
                pad_left(&time(one.own), 9)
            );
            let what = labelled(kind, &safe(&name));
            self.wrapped(&head, columns(&head), &format!("{what}{cause}"));
        }
        let left_out: u64 = found.each.left_out.values().sum();
        if left_out > 0 {
            let text = format!(
                "and {}: at most {MAX_INTRUSIONS} are listed (a greater --each leaves out the \
                 short ones)",
                counted(left_out, "later intrusion")
            );
            self.wrapped("  ", 2, &text);
        }
    }
}

/// Blank at which no line breaks.
const UNBROKEN: char = '\u{a0}';

/// Joins each number with the unit of time after it, and each name with the id after it, so that no
/// line breaks there.
fn joined_words(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = word.trim_end_matches([',', ';', ':', ')']);
        let is_unit = matches!(unit, "ns" | "us" | "ms" | "s");
        if is_unit && joined.ends_with(|c: char| c.is_ascii_digit()) || word.starts_with('[') {
            joined.push(UNBROKEN);
        } else if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

/// Returns what an interrupt's line leaves out, if other lines of the CPU have it: the budget adds
/// both.
fn parts_elsewhere(cpu: &CpuReport, who: &Intruder) -> Option<String> {
    let part = match (who.kind, who.name.as_str()) {
        ("timer interrupt", _) => "hrtimer function",
        ("soft interrupt", "TIMER") => "timer function",
        ("call interrupt", _) => "called function",
        _ => return None,
    };
    let is_listed = cpu.intruders.iter().any(|other| other.kind == part);
    is_listed.then(|| format!("without its {part}s, which have lines of their own"))
}

/// Formats a thread with its facts:
/// `reactor_1 [4711] (process nvmf_tgt [4700], SCHED_FIFO 50, may run on CPU 1)`.
fn described(who: &Intruder) -> String {
    let facts = facts(who);
    if facts.is_empty() {
        safe(&who.name)
    } else {
        format!("{} ({facts})", safe(&who.name))
    }
}

fn facts(who: &Intruder) -> String {
    let Some(thread) = &who.thread else {
        return String::new();
    };
    let process = Some(&thread.process.1).filter(|name| !name.is_empty());
    let parts = [
        process.map(|name| format!("process {} [{}]", safe(name), thread.process.0)),
        Some(thread.policy.clone()).filter(|policy| !policy.is_empty()),
        thread
            .affinity
            .as_ref()
            .map(|cpus| format!("may run on CPU {cpus}")),
        thread
            .cgroup
            .as_ref()
            .filter(|group| *group != "/")
            .map(|group| format!("cgroup {}", safe(group))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Formats a histogram: `<512 ns: 3, <1.02 us: 70`.
fn histogram(classes: &[u64]) -> String {
    let shown = classes.iter().enumerate().filter(|(_, count)| **count > 0);
    let class = |(nth, count): (usize, &u64)| {
        let below = time(1 << (FIRST_CLASS as usize + nth));
        format!("<{below}: {count}").replace(' ', &UNBROKEN.to_string())
    };
    shown.map(class).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ids_stay_together() {
        let text = "1.07 s, reactor_1 [77] had 36.3 ms; s 12";
        let joined = joined_words(text);
        assert_eq!(
            joined,
            "1.07\u{a0}s, reactor_1\u{a0}[77] had 36.3\u{a0}ms; s 12"
        );
        assert_eq!(joined.replace(UNBROKEN, " "), text);
    }
}
