//! An audit as text.

use std::fmt::Write as _;

use screen::{pad, pad_left, time};

use super::layout::FIRST_CLASS;
use super::run::{AuditResult, MAX_INTRUSIONS};
use super::summary::{is_own, label, listed_victims, one_line, own_and_others, safe, share};
use super::{CpuReport, Intruder, Victim, labelled, name_of};

/// Limit on listed intruders, on its own threads, and on listed victims, per CPU: a screen for a
/// CPU.
const MAX_LISTED: usize = 5;

/// Formats the whole report: a line for each CPU, and their details unless only a `summary` is
/// wanted.
pub(super) fn report(found: &AuditResult, summary: bool) -> String {
    let mut text = String::new();
    for cpu in &found.cpus {
        line(&mut text, &one_line(found, cpu));
    }
    if summary {
        return text;
    }
    for cpu in &found.cpus {
        text.push('\n');
        write_cpu(&mut text, found, cpu);
    }
    each(&mut text, found);
    text
}

/// Appends a line; writing to a string does not fail.
fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{}", line.trim_end());
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

fn intruders(text: &mut String, found: &AuditResult, cpu: &CpuReport) {
    let (own, others) = own_and_others(found, cpu);
    let whose = match found.threads {
        Some(_) => "threads of the process itself",
        None => "other threads of the poller's process",
    };
    for (head, listed) in [("intruders", others), (whose, own)] {
        if listed.is_empty() {
            continue;
        }
        let columns = "    count     total   longest";
        line(text, &format!("  {}{columns}", pad(head, 50)));
        for intruder in listed.iter().take(MAX_LISTED) {
            row(text, &label(intruder), intruder);
            details(text, intruder);
        }
        let rest = listed.get(MAX_LISTED..).unwrap_or_default();
        if !rest.is_empty() {
            let total = time(rest.iter().map(|intruder| intruder.total).sum());
            let more = rest.len();
            line(
                text,
                &format!("    and {more} more, {total} in all (--json lists them)"),
            );
        }
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
    intruders(text, found, cpu);
    victims(text, found, cpu);
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

fn victims(text: &mut String, found: &AuditResult, cpu: &CpuReport) {
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
        let name = safe(&victim.who.name);
        row(text, &labelled(what, &name), &victim.who);
        let own = is_own(found.threads.as_ref(), cpu, &victim.who)
            .then(|| "a thread of the process itself".to_owned());
        let waits = victim
            .still
            .map(|still| format!("still waits, for {}", time(still)));
        let before = victim
            .before
            .then(|| "was already waiting at the start".to_owned());
        let facts = [own, waits, before, victim.who.cause.as_deref().map(safe)];
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
                "  {}  {} {}{cause}",
                columns[0],
                columns[1..].join(" "),
                labelled(kind, &safe(&name))
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
