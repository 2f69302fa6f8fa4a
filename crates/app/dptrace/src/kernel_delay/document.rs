//! A sample with system calls as one JSON object. Their list is not kept as text or values: it is written as it is made.

use std::io::Write as _;

use kernel_delay::{Events, FunctionNames, split_at_list};
use serde_json::Value;
use text::printable;

use crate::output::Output;

/// Writes the object, with the events in their place in it, as one line.
pub(super) fn write(
    output: &mut Output,
    object: &Value,
    events: &mut Events,
    names: &FunctionNames,
    wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let text = printable::json_document(object.to_string());
    let (before, after) = split_at_list(&text).unwrap_or((&text, ""));
    write!(output.buffer, "{before}")?;
    events.json_list(names, wanted, |piece| {
        write!(output.buffer, "{}", printable::json_document(piece))?;
        output.drain()
    })?;
    writeln!(output.buffer, "{after}")?;
    Ok(output.flush()?)
}
