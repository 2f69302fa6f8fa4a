//! An audit as text.

use std::fmt::Write as _;

use ::text::printable;
use screen::{pad, pad_left, time};

use super::layout::FIRST_CLASS;
use super::run::{AuditResult, MAX_INTRUSIONS};
use super::windows::MIN_LISTED_WAIT_NANOS;
use super::{CpuReport, Intruder, Victim, name_of};

/// Limit on listed intruders, and on listed victims, per CPU.
const MAX_LISTED: usize = 20;

/// Formats the whole report; `summary` gives one line for each CPU.
pub(super) fn report(found: &AuditResult, summary: bool) -> String {
    let mut text = String::new();
    for (nth, cpu) in found.cpus.iter().enumerate() {
        if summary {
            line(&mut text, &one_line(cpu));
            continue;
        }
        if nth > 0 {
            text.push('\n');
        }
        write_cpu(&mut text, found, cpu);
    }
    if !summary {
        each(&mut text, found);
    }
    text
}

/// Appends a line; writing to a string does not fail.
fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{}", line.trim_end());
}

fn share(part: u64, of: u64) -> String {
    screen::percent(screen::share(part, of), 2)
}

fn safe(text: &str) -> String {
    printable::text(text.as_bytes()).into_owned()
}

/// Formats the summary of a CPU.
fn one_line(cpu: &CpuReport) -> String {
    let poller = match &cpu.poller {
        Some(poller) => format!(
            "{} has {}",
            safe(&poller.name),
            share(poller.total, cpu.window)
        ),
        None => "no poller".to_owned(),
    };
    let worst = match cpu.intruders.first() {
        Some(worst) => format!(
            "; most taken by {} {}: {}, {} longest",
            worst.kind,
            safe(&worst.name),
            share(worst.total, cpu.window),
            time(worst.longest)
        ),
        None => String::new(),
    };
    let starved = listed_victims(cpu)
        .next()
        .map_or_else(String::new, |victim| {
            let longest = time(victim.who.longest);
            format!(
                "; {} {} waited {longest}",
                victim.who.kind,
                safe(&victim.who.name)
            )
        });
    format!(
        "CPU {}: {}, {poller}{worst}{starved}",
        cpu.cpu,
        time(cpu.window)
    )
}

fn budget(text: &mut String, cpu: &CpuReport) {
    for part in cpu.budget.iter().filter(|part| part.total > 0) {
        let longest = if part.longest > 0 {
            format!(", longest {}", time(part.longest))
        } else {
            String::new()
        };
        let count = if part.count > 0 {
            format!("{} times{longest}", part.count)
        } else {
            String::new()
        };
        let columns = [
            pad_left(&share(part.total, cpu.window), 9),
            pad_left(&time(part.total), 9),
        ];
        line(
            text,
            &format!(
                "{}  {}  {} {count}",
                columns[0],
                columns[1],
                pad(part.what, 18)
            ),
        );
    }
}

fn intruders(text: &mut String, cpu: &CpuReport) {
    if !cpu.intruders.is_empty() {
        line(
            text,
            "  intruders                                             count     total   longest",
        );
    }
    for intruder in cpu.intruders.iter().take(MAX_LISTED) {
        row(
            text,
            &format!("{} {}", intruder.kind, safe(&intruder.name)),
            intruder,
        );
        details(text, intruder);
    }
    if let Some(rest) = cpu
        .intruders
        .get(MAX_LISTED..)
        .filter(|rest| !rest.is_empty())
    {
        let total: u64 = rest.iter().map(|intruder| intruder.total).sum();
        line(
            text,
            &format!(
                "    and {} more, {} in all (--json lists them)",
                rest.len(),
                time(total)
            ),
        );
    }
}

fn write_cpu(text: &mut String, found: &AuditResult, cpu: &CpuReport) {
    let poller = match &cpu.poller {
        Some(poller) => format!(
            "{} has it for {}",
            described(poller),
            share(poller.total, cpu.window)
        ),
        None => "no thread has it for half of the time".to_owned(),
    };
    line(
        text,
        &format!("CPU {}, {}: {poller}", cpu.cpu, time(cpu.window)),
    );
    budget(text, cpu);
    if let Some(&stolen) = found.stolen.get(&cpu.cpu).filter(|stolen| **stolen > 0) {
        line(
            text,
            &format!(
                "  the hypervisor had the CPU for {} of this; the budget counts that for whoever \
                 was running",
                time(stolen)
            ),
        );
    }
    intruders(text, cpu);
    victims(text, cpu);
    losses(text, cpu);
}

/// Appends a line of intruders or victims.
fn row(text: &mut String, name: &str, who: &Intruder) {
    let [count, total, longest] = [who.count.to_string(), time(who.total), time(who.longest)];
    let numbers = format!(
        "{} {} {}",
        pad_left(&count, 9),
        pad_left(&total, 9),
        pad_left(&longest, 9)
    );
    line(text, &format!("    {} {numbers}", pad(name, 49)));
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

/// Appends the cause and facts of an intruder, and the histogram of its lengths.
fn details(text: &mut String, who: &Intruder) {
    let facts = facts(who);
    let parts = [
        who.cause.as_deref().map(safe),
        Some(facts).filter(|facts| !facts.is_empty()),
        who.affinity
            .as_ref()
            .map(|cpus| format!("for CPU {}", safe(cpus))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        line(text, &format!("      {}", parts.join(", ")));
    }
    if who.count > 1 {
        line(text, &format!("      {}", histogram(&who.classes)));
    }
}

/// Formats a histogram: `<512 ns: 3, <1.02 us: 70`.
fn histogram(classes: &[u64]) -> String {
    let shown = classes.iter().enumerate().filter(|(_, count)| **count > 0);
    let class = |(nth, count): (usize, &u64)| {
        format!("<{}: {count}", time(1 << (FIRST_CLASS as usize + nth)))
    };
    shown.map(class).collect::<Vec<_>>().join(", ")
}

/// Returns the victims that waited longer than usual.
fn listed_victims(cpu: &CpuReport) -> impl Iterator<Item = &Victim> {
    cpu.victims
        .iter()
        .filter(|victim| victim.who.longest >= MIN_LISTED_WAIT_NANOS)
}

fn victims(text: &mut String, cpu: &CpuReport) {
    let listed: Vec<&Victim> = listed_victims(cpu).collect();
    if listed.is_empty() {
        return;
    }
    line(
        text,
        "  victims: could run, but had to wait                   count     total   longest",
    );
    for victim in listed.iter().take(MAX_LISTED) {
        let what = if victim.who.kind == "work" {
            "queued work"
        } else {
            victim.who.kind
        };
        row(
            text,
            &format!("{what} {}", safe(&victim.who.name)),
            &victim.who,
        );
        let waits = victim
            .still
            .map(|still| format!("still waits, for {}", time(still)));
        let before = victim
            .before
            .then(|| "was already waiting at the start".to_owned());
        let facts = [waits, before, victim.who.cause.as_deref().map(safe)];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        if !facts.is_empty() {
            line(text, &format!("      {}", facts.join(", ")));
        }
    }
    if let Some(more) = listed
        .len()
        .checked_sub(MAX_LISTED)
        .filter(|more| *more > 0)
    {
        line(text, &format!("    and {more} more (--json lists them)"));
    }
}

fn losses(text: &mut String, cpu: &CpuReport) {
    if cpu.lost > 0 {
        let unnamed = time(cpu.unnamed);
        line(
            text,
            &format!(
                "  {} did not fit the maps; {unnamed} of the budget appear in no line of intruders",
                cpu.lost
            ),
        );
    }
    if cpu.unsent > 0 {
        line(
            text,
            &format!(
                "  {} single intrusions were lost: the ring was full",
                cpu.unsent
            ),
        );
    }
}

/// Appends the individual intrusions, in the order of time.
fn each(text: &mut String, found: &AuditResult) {
    let start = found.cpus.iter().map(|cpu| cpu.start).min().unwrap_or(0);
    if !found.each.kept.is_empty() {
        line(text, "\n  time since the start  CPU    length");
    }
    for one in &found.each.kept {
        let (kind, name, cause) = name_of(&found.sums, &one.key, &one.name, &found.names);
        let at = format!("{:.9} s", one.began.saturating_sub(start) as f64 / 1e9);
        let cause = cause.map_or_else(String::new, |cause| format!(", {}", safe(&cause)));
        let columns = [
            pad_left(&at, 20),
            pad_left(&one.key.cpu.to_string(), 4),
            pad_left(&time(one.own), 9),
        ];
        line(
            text,
            &format!(
                "  {}  {} {kind} {}{cause}",
                columns[0],
                columns[1..].join(" "),
                safe(&name)
            ),
        );
    }
    let left_out: u64 = found.each.left_out.values().sum();
    if left_out > 0 {
        line(
            text,
            &format!(
                "  and {left_out} later ones: at most {MAX_INTRUSIONS} are listed (a greater --each \
                 leaves out the short ones)"
            ),
        );
    }
}
