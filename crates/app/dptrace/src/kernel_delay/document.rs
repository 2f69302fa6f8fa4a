//! A sample with system calls as one JSON object. Their list is not kept in memory: it is written
//! as it is generated.

use std::io::Write as _;

use console::output::Output;
use kernel_delay::{Events, FunctionNames, split_at_list};
use serde_json::Value;
use text::{json, printable};

/// Writes the object as one line, with the events at their place in it.
pub(super) fn write(
    output: &mut Output,
    object: &Value,
    events: &mut Events,
    names: &FunctionNames,
    wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let text = json::document("kernel-delay.sample", &object);
    let (before, after) = split_at_list(&text).unwrap_or((&text, ""));
    write!(output.buffer, "{before}")?;
    events.json_list(names, wanted, |piece| {
        write!(output.buffer, "{}", printable::json_document(piece))?;
        output.drain()
    })?;
    writeln!(output.buffer, "{after}")?;
    Ok(output.flush()?)
}
