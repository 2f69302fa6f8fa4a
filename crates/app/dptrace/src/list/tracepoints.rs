//! Lists the kernel's tracepoints.

use std::io::Write as _;

use console::messages::note;
use console::output::Output;
use host::{HostError, Tracefs, TracepointName};
use kernel_text::tracefs::{Array, Field, TracepointFormat};
use serde_json::{Value, json};
use text::patterns::ProbePattern;

use super::nothing_fits_in_groups;
use super::target::Request;
use text::json::document;

/// Lists the tracepoints that match the pattern; their fields only with `--json`, since each is in
/// a file of its own.
pub(super) fn list(
    request: &Request,
    pattern: Option<&ProbePattern>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let tracefs = Tracefs::find()?;
    let mut names = tracefs.names()?;
    let known: Vec<_> = names
        .iter()
        .map(|of| (of.category.clone(), of.name.clone()))
        .collect();
    names.retain(|of| pattern.is_none_or(|pattern| pattern.matches(&of.category, &of.name)));
    if names.is_empty() {
        return Err(nothing_fits_in_groups("tracepoint", request, &known, ""));
    }
    for of in &names {
        if request.json {
            match tracefs.format(of) {
                Ok(format) => {
                    writeln!(
                        output.buffer,
                        "{}",
                        document("list.tracepoint", &tracepoint_json(of, &format))
                    )?;
                }
                Err(error @ HostError::TracefsForbidden { .. }) => return Err(error.into()),
                Err(error) => note(&format!("left out: {:#}", anyhow::Error::new(error))),
            }
        } else {
            writeln!(output.buffer, "{}:{}", of.category, of.name)?;
        }
        output.drain()?;
    }
    Ok(())
}

fn tracepoint_json(of: &TracepointName, format: &TracepointFormat) -> Value {
    let fields: Vec<_> = format.own_fields().map(field_json).collect();
    json!({ "kind": "tracepoint", "category": of.category, "name": of.name, "id": format.id, "fields": fields })
}

fn field_json(field: &Field) -> Value {
    let elements = match field.array {
        Some(Array::Count(count)) => json!(count),
        Some(Array::Unstated) => json!("any"),
        None => Value::Null,
    };
    json!({
        "name": field.name,
        "type": field.type_text,
        "elements": elements,
        "offset": field.offset,
        "size": field.size,
        "signed": field.signed,
    })
}
