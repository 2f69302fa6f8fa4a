//! Timers, and counted events.

use bt_lang::ast::{AttachPoint, PointForm, ProbeKind};
use text::patterns::did_you_mean;

use super::{Target, context, refused, unsupported};
use crate::ctx::Inputs;
use crate::facts::NotFound;
use crate::process;
use bpf_program::ProgramKind;
use bt_abi::{Attach, SampleRate};
use uapi::perf::{TYPE_HARDWARE, TYPE_SOFTWARE};

/// Units by name, in nanoseconds.
const UNITS: [(&str, u64); 5] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("m", 60_000_000_000),
];

/// Resolves timers and counted events.
pub(super) fn targets(inputs: &Inputs<'_>, point: &AttachPoint) -> Result<Vec<Target>, NotFound> {
    match (point.kind, &point.form) {
        (ProbeKind::Interval | ProbeKind::Profile, PointForm::Timer { unit, count }) => {
            let unit = unit.as_ref().map(|unit| unit.text.as_str());
            timer(inputs, point.kind, unit, *count)
        }
        (ProbeKind::Software | ProbeKind::Hardware, PointForm::Sample { event, period }) => {
            counter(inputs, point.kind, &event.text, *period)
        }
        (kind, _) => Err(unsupported(kind)),
    }
}

/// Resolves `interval:s:1` and `profile:hz:99`.
fn timer(
    inputs: &Inputs<'_>,
    kind: ProbeKind,
    unit: Option<&str>,
    count: u64,
) -> Result<Vec<Target>, NotFound> {
    if count == 0 {
        return Err(refused(
            format!("{} needs a number above 0", kind.name()),
            "as in interval:s:1",
        ));
    }
    let hertz = unit == Some("hz");
    if let Some(most) = inputs
        .facts
        .most_samples()
        .filter(|most| hertz && kind == ProbeKind::Profile && count > *most)
    {
        return Err(refused(
            format!("profile:hz:{count} is above the kernel's limit of {most} samples per second"),
            "the limit is the setting kernel.perf_event_max_sample_rate; the kernel lowers it when samples take long",
        ));
    }
    let nanos = match unit {
        Some("hz") => (1_000_000_000 / count).max(1),
        Some(unit) => {
            let size = UNITS
                .iter()
                .find(|(known, _)| *known == unit)
                .map(|(_, size)| *size);
            let size = size.ok_or_else(|| {
                refused(
                    format!("{unit} is an invalid unit for {}", kind.name()),
                    "use hz, s, ms or us",
                )
            })?;
            count.saturating_mul(size)
        }
        None => count,
    };
    let name = match unit {
        Some(unit) => format!("{}:{unit}:{count}", kind.name()),
        None => format!("{}:{count}ns", kind.name()),
    };
    let attach = match kind {
        ProbeKind::Interval => Attach::Interval { nanos },
        _ if hertz => Attach::Profile {
            every: SampleRate::Hertz(count),
            of: process::threads(inputs),
        },
        _ => Attach::Profile {
            every: SampleRate::Nanos(nanos),
            of: process::threads(inputs),
        },
    };
    Ok(vec![Target {
        context: context(inputs, kind, &name),
        kind: ProgramKind::PerfEvent,
        btf: None,
        attach,
        name,
    }])
}

/// Event of perf: its names, its number in `linux/perf_event.h`, and its default sampling period.
type Event = (&'static [&'static str], u64, u64);

/// Software events: `enum perf_sw_ids`.
const SOFTWARE: [Event; 11] = [
    (&["cpu-clock", "cpu"], 0, 1_000_000),
    (&["task-clock"], 1, 1_000_000),
    (&["page-faults", "faults"], 2, 100),
    (&["context-switches", "cs"], 3, 1000),
    (&["cpu-migrations"], 4, 1),
    (&["minor-faults"], 5, 100),
    (&["major-faults"], 6, 1),
    (&["alignment-faults"], 7, 1),
    (&["emulation-faults"], 8, 1),
    (&["dummy"], 9, 1),
    (&["bpf-output"], 10, 1),
];

/// Hardware events: `enum perf_hw_id`.
const HARDWARE: [Event; 10] = [
    (&["cpu-cycles", "cycles"], 0, 1_000_000),
    (&["instructions"], 1, 1_000_000),
    (&["cache-references"], 2, 1_000_000),
    (&["cache-misses"], 3, 1_000_000),
    (&["branch-instructions", "branches"], 4, 100_000),
    (&["branch-misses"], 5, 100_000),
    (&["bus-cycles"], 6, 100_000),
    (&["frontend-stalls"], 7, 1_000_000),
    (&["backend-stalls"], 8, 1_000_000),
    (&["ref-cycles"], 9, 1_000_000),
];

/// Resolves `software:faults:100`.
fn counter(
    inputs: &Inputs<'_>,
    kind: ProbeKind,
    event: &str,
    period: Option<u64>,
) -> Result<Vec<Target>, NotFound> {
    let (table, number): (&[Event], u32) = if kind == ProbeKind::Software {
        (&SOFTWARE, TYPE_SOFTWARE)
    } else {
        (&HARDWARE, TYPE_HARDWARE)
    };
    let Some((_, config, usual)) = table.iter().find(|(names, ..)| names.contains(&event)) else {
        let known: Vec<&str> = table.iter().map(|(names, ..)| names[0]).collect();
        let near = bt_lang::nearest(event, known.iter().copied());
        let hint =
            did_you_mean(&near).unwrap_or_else(|| format!("expected one of {}", known.join(", ")));
        return Err(refused(
            format!("{event} is not a {} probe", kind.name()),
            hint,
        ));
    };
    let period = period.unwrap_or(*usual).max(1);
    let name = format!("{}:{event}:{period}", kind.name());
    let attach = Attach::Counter {
        kind: number,
        config: *config,
        period,
        of: process::threads(inputs),
    };
    Ok(vec![Target {
        context: context(inputs, kind, &name),
        kind: ProgramKind::PerfEvent,
        btf: None,
        attach,
        name,
    }])
}
