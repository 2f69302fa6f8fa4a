//! The page `/metrics`.

use std::borrow::Cow;

use metrics::text::{Exemplar, Family, Format, Kind, Text, Value};
use text::printable;

use super::cells::SlowExemplar;
use super::groups::{Group, Groups, StageTimes, State, WHOLE};
use super::parquet::WRITTEN;
use super::store::Store;
use super::targets::TargetStatus;
use super::{LOST, QUANTILES};

const SECONDS: Option<&str> = Some("seconds");

const STAGES: Family = Family {
    name: "dptrace_stage_seconds",
    kind: Kind::Histogram,
    unit: SECONDS,
    help: "Time between two tracepoints of a request, or all of it (stage \"whole\").",
};
const PERCENTILE: Family = Family {
    name: "dptrace_stage_percentile_seconds",
    kind: Kind::Gauge,
    unit: SECONDS,
    help: "Quantiles of the times in the last minute, estimated within 7%.",
};
const REQUESTS: Family = Family {
    name: "dptrace_requests",
    kind: Kind::Counter,
    unit: None,
    help: "Requests that were completed.",
};
const EXCLUDED: Family = Family {
    name: "dptrace_requests_excluded",
    kind: Kind::Counter,
    unit: None,
    help: "Requests of admin queues, which wait by design; counted nowhere else.",
};
const RECORDS: Family = Family {
    name: "dptrace_records",
    kind: Kind::Counter,
    unit: None,
    help: "Records of traces that were read.",
};
const LOSSES: Family = Family {
    name: "dptrace_lost",
    kind: Kind::Counter,
    unit: None,
    help: "Losses: ring slots overwritten before they were read, requests during which that \
           happened, and what did not fit into the kernel's maps.",
};
const THREADS: Family = Family {
    name: "dptrace_thread_seconds",
    kind: Kind::Counter,
    unit: SECONDS,
    help: "Where the time of threads went, and who took it. The parts of a thread add up to the \
           elapsed time.",
};
const ABSENCES: Family = Family {
    name: "dptrace_thread_absences",
    kind: Kind::Counter,
    unit: None,
    help: "Number of times that a thread that writes a trace was away for 10 ms or longer: off its \
           CPU, and neither waiting for work nor asleep by itself. Requests that arrive meanwhile \
           wait unread, and no other series shows that.",
};
const ABSENCE: Family = Family {
    name: "dptrace_thread_absence_seconds",
    kind: Kind::Counter,
    unit: SECONDS,
    help: "The sum of these times.",
};
const INTRUSIONS: Family = Family {
    name: "dptrace_cpu_intrusion_seconds",
    kind: Kind::Counter,
    unit: SECONDS,
    help: "Time that processes other than the followed ones took on the CPUs where these poll, and \
           who took it.",
};
const FOLLOWING: Family = Family {
    name: "dptrace_target_following",
    kind: Kind::Gauge,
    unit: None,
    help: "Whether a part of a process is followed: its trace, the time of its threads.",
};
const TARGET: Family = Family {
    name: "dptrace_target",
    kind: Kind::Info,
    unit: None,
    help: "A process that is followed.",
};
const LEFT_OUT: Family = Family {
    name: "dptrace_targets_left_out",
    kind: Kind::Gauge,
    unit: None,
    help: "Processes that write traces but are not followed, because of the limit --targets.",
};
const BUILD: Family = Family {
    name: "dptrace_build",
    kind: Kind::Info,
    unit: None,
    help: "This program.",
};
const CPU: Family = Family {
    name: "process_cpu_seconds",
    kind: Kind::Counter,
    unit: SECONDS,
    help: "Time that this program spent on CPUs.",
};

const ROWS: Family = Family {
    name: "dptrace_table_rows",
    kind: Kind::Counter,
    unit: None,
    help: "Rows that were written to tables of --parquet.",
};
const ROWS_LOST: Family = Family {
    name: "dptrace_table_rows_lost",
    kind: Kind::Counter,
    unit: None,
    help: "Rows of tables that could not be written.",
};

/// Writes the page.
pub(crate) fn page(format: Format, store: &Store, targets: &[TargetStatus]) -> String {
    let mut text = Text::new(format);
    build(&mut text, store.build);
    processes(&mut text, targets);
    connections(&mut text, store);
    threads(&mut text, store);
    intrusions(&mut text, store);
    counts(&mut text, store);
    text.finish()
}

fn build(text: &mut Text, (version, commit): (&'static str, &'static str)) {
    text.family(&BUILD);
    let labels = [("version", version), ("commit", commit)];
    text.sample(&BUILD, &labels, Value::Whole(1));
    text.family(&CPU);
    text.sample(
        &CPU,
        &[],
        Value::Nanos(sys::clock::process_ran().as_nanos() as u64),
    );
}

fn processes(text: &mut Text, targets: &[TargetStatus]) {
    text.family(&TARGET);
    for target in targets {
        let pid = target.identity.pid.to_string();
        let path = target
            .path
            .as_ref()
            .map(printable::path)
            .unwrap_or_default();
        let labels = [
            ("process", target.name.as_str()),
            ("pid", &pid),
            ("trace", &path),
        ];
        text.sample(&TARGET, &labels, Value::Whole(1));
    }
    text.family(&FOLLOWING);
    for target in targets {
        let pid = target.identity.pid.to_string();
        for (part, matches) in [("trace", target.reads), ("threads", target.is_accounted)] {
            let labels = [
                ("process", target.name.as_str()),
                ("pid", &pid),
                ("part", part),
            ];
            text.sample(&FOLLOWING, &labels, Value::Whole(matches.into()));
        }
    }
}

fn connections(text: &mut Text, store: &Store) {
    let groups = &store.groups;
    let shown = groups.shown();
    text.family(&REQUESTS);
    for group in &shown {
        let key = &group.key;
        let labels = [
            ("subnqn", key.subnqn.as_str()),
            ("hostnqn", &key.hostnqn),
            ("transport", &key.transport),
        ];
        text.sample(&REQUESTS, &labels, Value::Whole(group.requests));
    }
    let rest = groups.rest();
    text.family(&STAGES);
    for group in shown.iter().filter(|group| group.state == State::Detailed) {
        for (stage, cell) in group.cells.iter() {
            let key = &group.key;
            let labels = [
                ("subnqn", key.subnqn.as_str()),
                ("hostnqn", &key.hostnqn),
                ("transport", &key.transport),
                ("stage", groups.stage_name(stage)),
            ];
            let slowest = if groups.is_other(group) {
                rest.get(&stage).and_then(|(_, slowest)| *slowest)
            } else {
                cell.slowest()
            };
            text.histogram(
                &STAGES,
                &labels,
                &cell.total,
                slowest.map(exemplar).as_ref(),
            );
        }
    }
    percentiles(text, groups, &shown, &rest);
}

fn percentiles(text: &mut Text, groups: &Groups, shown: &[&Group], rest: &StageTimes) {
    text.family(&PERCENTILE);
    for group in shown {
        let is_shown = |stage| group.state == State::Detailed || stage == WHOLE;
        for (stage, cell) in group.cells.iter().filter(|(stage, _)| is_shown(*stage)) {
            let of_all = rest
                .get(&stage)
                .filter(|_| groups.is_other(group))
                .map(|(times, _)| Cow::Borrowed(times));
            let recent = of_all.unwrap_or_else(|| Cow::Owned(cell.recent.all()));
            for (name, quantile) in QUANTILES {
                let Some(nanos) = recent.quantile(quantile) else {
                    continue;
                };
                let key = &group.key;
                let labels = [
                    ("subnqn", key.subnqn.as_str()),
                    ("hostnqn", &key.hostnqn),
                    ("transport", &key.transport),
                    ("stage", groups.stage_name(stage)),
                    ("percentile", name),
                ];
                text.sample(&PERCENTILE, &labels, Value::Nanos(nanos));
            }
        }
    }
}

/// Returns the exemplar of a slowest time.
fn exemplar(slow: SlowExemplar) -> Exemplar {
    Exemplar {
        nanos: slow.nanos,
        utc: slow.utc,
        label: ("object", slow.name.to_string()),
    }
}

fn threads(text: &mut Text, store: &Store) {
    text.family(&THREADS);
    for (process, thread, place, by, nanos) in store.threads.shown() {
        let labels = [
            ("process", process),
            ("thread", thread),
            ("where", place.word()),
            ("by", by),
        ];
        text.sample(&THREADS, &labels, Value::Nanos(nanos));
    }
    text.family(&ABSENCES);
    for (process, thread, times, _) in store.threads.absences() {
        text.sample(
            &ABSENCES,
            &[("process", process), ("thread", thread)],
            Value::Whole(times),
        );
    }
    text.family(&ABSENCE);
    for (process, thread, _, nanos) in store.threads.absences() {
        text.sample(
            &ABSENCE,
            &[("process", process), ("thread", thread)],
            Value::Nanos(nanos),
        );
    }
}

fn intrusions(text: &mut Text, store: &Store) {
    text.family(&INTRUSIONS);
    for (cpu, kind, by, nanos) in store.intrusions.shown() {
        let labels = [
            ("cpu", cpu.to_string()),
            ("kind", kind.to_owned()),
            ("by", by.to_owned()),
        ];
        let labels = labels
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        text.sample(&INTRUSIONS, &labels, Value::Nanos(nanos));
    }
}

fn counts(text: &mut Text, store: &Store) {
    text.family(&RECORDS);
    for (process, counts) in &store.processes {
        text.sample(
            &RECORDS,
            &[("process", process)],
            Value::Whole(counts.records),
        );
    }
    text.family(&LEFT_OUT);
    text.sample(&LEFT_OUT, &[], Value::Whole(store.targets_left_out));
    text.family(&EXCLUDED);
    for (process, counts) in &store.processes {
        text.sample(
            &EXCLUDED,
            &[("process", process)],
            Value::Whole(counts.excluded),
        );
    }
    text.family(&LOSSES);
    for (process, counts) in &store.processes {
        for (what, lost) in LOST.iter().zip(counts.lost) {
            text.sample(
                &LOSSES,
                &[("process", process), ("what", what)],
                Value::Whole(lost),
            );
        }
    }
    let Some(written) = &store.written else {
        return;
    };
    for (family, rows) in [(&ROWS, written.rows), (&ROWS_LOST, written.lost)] {
        text.family(family);
        for (table, rows) in WRITTEN.into_iter().zip(rows) {
            text.sample(family, &[("table", table.name)], Value::Whole(rows));
        }
    }
}
