//! Facts about the machine and process of a report, and its time.

use capture::Meta;
use screen::{counted, time};
use timeline::pass::PassStats;
use timeline::source::Source;

/// Returns pairs of name and value. The values come from files; the page escapes them.
pub(crate) fn facts(source: &Source, passed: &PassStats) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push((name.to_owned(), value));
        }
    };
    if let Some(meta) = &source.meta {
        add_meta(meta, &mut fact);
    }
    if source.trace.is_some() {
        fact("records", counted(passed.records, "record"));
    }
    if source.kernel.is_some() {
        let lost = if passed.lost > 0 {
            format!(", {} lost", passed.lost)
        } else {
            String::new()
        };
        fact(
            "kernel's events",
            format!("{}{lost}", counted(passed.events, "event")),
        );
    }
    facts
}

fn add_meta(meta: &Meta, fact: &mut impl FnMut(&str, String)) {
    let Meta {
        process,
        machine,
        begin,
        end,
        ..
    } = meta;
    let ended = end.as_ref().map_or_else(
        || "cut short".to_owned(),
        |end| {
            format!(
                "{}, until {}",
                time(end.at.boot_nanos.saturating_sub(begin.boot_nanos)),
                end.why
            )
        },
    );
    fact("captured", format!("{}, {ended}", begin.utc));
    fact("process", format!("{}, {}", process.pid, process.program));
    fact("command line", process.command_line.join(" "));
    fact(
        "machine",
        format!(
            "{}, Linux {}, {}",
            machine.hostname, machine.kernel, machine.arch
        ),
    );
    fact("CPUs online", machine.cpus_online.clone());
    fact("isolated CPUs", machine.cpus_isolated.clone());
    fact("CPUs without ticks", machine.cpus_nohz_full.clone());
    fact("frequency governors", machine.governors.join(", "));
    fact("kernel's command line", machine.kernel_command_line.clone());
    if let Some(join) = end.as_ref().and_then(|end| end.join) {
        let of = format!(
            "{} at p50, {} at p99, at {}",
            time(join.p50),
            time(join.p99),
            counted(join.hits, "hit")
        );
        fact("clocks apart", of);
    }
    fact("made by", format!("dptrace {}", meta.dptrace));
}
