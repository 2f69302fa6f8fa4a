//! `dptrace trace` of the trace folder of a DPDK program: events in the Common Trace Format.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use console::messages::note;
use console::output::Output;
use ctf::{Form, MergedStreams, Writer};
use errors::usage;
use screen::counted;
use text::printable::path as printable;
use trace_source::dpdk::{DpdkTrace, EventFilter};
use whole_file::Access;

use super::TraceArgs;
use super::format::FormatName;

/// Prints its events, or describes it.
pub(super) fn run(args: &TraceArgs, folder: &Path) -> anyhow::Result<()> {
    refuse(args)?;
    let filter = args.filter.resolve_events()?;
    let trace = DpdkTrace::open(folder)?;
    let streams = trace.streams()?;
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    if args.info {
        let text = trace.info(streams, args.screen());
        output.buffer.extend_from_slice(text.as_bytes());
        return Ok(output.finish()?);
    }
    if args.list_tpoints {
        output.buffer.extend_from_slice(trace.kinds().as_bytes());
        return Ok(output.finish()?);
    }
    trace.check(&filter)?;
    let form = if args.format() == FormatName::Ndjson {
        Form::Json
    } else {
        Form::Text
    };
    let events = MergedStreams::new(streams);
    list(args, &filter, (events, trace.files()), form, &mut output)?;
    Ok(output.finish()?)
}

/// Refuses options that mean nothing here.
fn refuse(args: &TraceArgs) -> anyhow::Result<()> {
    let is_known = matches!(args.format(), FormatName::Text | FormatName::Ndjson);
    let given = [
        ("--follow", args.follow),
        ("--for", args.duration.is_some()),
        (
            "--recording",
            args.objects.sources().recordings().next().is_some(),
        ),
        ("--tsc", args.tsc),
        ("--format spdk, json and csv", !is_known),
        (
            "--json with --info or --list-tpoints",
            args.json && (args.info || args.list_tpoints),
        ),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(usage(format!(
            "{option} does not work for DPDK traces: they are printed as text, like babeltrace2's, \
             or with --format ndjson"
        ))),
        None => Ok(()),
    }
}

/// Size of buffered output, in bytes, at which it is written.
const FLUSH_BYTES: usize = 128 << 10;

fn list(
    args: &TraceArgs,
    filter: &EventFilter,
    (mut events, files): (MergedStreams<'_>, &[PathBuf]),
    form: Form,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut writer = Writer::new(form);
    let (mut first, mut read, mut shown) = (None, 0_u64, 0_u64);
    let mut last = VecDeque::new();
    while let Some((nth, event)) = events.next() {
        let stream = &events.streams()[nth];
        read += 1;
        let first = *first.get_or_insert(event.nanos);
        if !filter.wants(stream, &event, first) {
            continue;
        }
        if let Some(most) = args.tail {
            last.push_back((nth, event));
            if last.len() > most {
                last.pop_front();
            }
            continue;
        }
        if args.head.is_some_and(|most| shown >= most) {
            break;
        }
        shown += 1;
        writer.event(&mut output.buffer, stream.head(), &event);
        if output.buffer.len() >= FLUSH_BYTES {
            output.drain()?;
        }
    }
    for (nth, event) in last.iter().take(args.head.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    })) {
        shown += 1;
        writer.event(&mut output.buffer, events.streams()[*nth].head(), event);
    }
    output.flush()?;
    for (stream, file) in events.streams().iter().zip(files) {
        if let Some(problem) = stream.problem() {
            note(&format!(
                "{}: {problem}; everything before that is printed",
                printable(file)
            ));
        }
    }
    if read == 0 {
        note("the trace has no events");
    } else if shown == 0 && args.head != Some(0) && args.tail != Some(0) {
        note(&format!(
            "none of the {} pass the filters",
            counted(read, "event")
        ));
    }
    Ok(())
}
