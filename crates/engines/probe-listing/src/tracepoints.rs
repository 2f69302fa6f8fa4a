//! Lists the kernel's tracepoints.

use std::io::Write;

use host::{HostError, Tracefs, TracepointName};
use kernel_text::tracefs::{Array, Field, TracepointFormat};
use serde_json::{Value, json};
use text::json::document;
use text::patterns::ProbePattern;

use crate::{Form, Search};

impl Search<'_> {
    /// Writes the tracepoints that match the pattern, or all of them; their fields only as JSON,
    /// since each is in a file of its own.
    ///
    /// # Errors
    /// If none matches, if tracefs can't be read, or if writing fails.
    pub fn tracepoints(
        &self,
        pattern: Option<&ProbePattern>,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let tracefs = Tracefs::find()?;
        let mut names = tracefs.names()?;
        let known: Vec<_> = names
            .iter()
            .map(|it| (it.category.clone(), it.name.clone()))
            .collect();
        names.retain(|it| pattern.is_none_or(|pattern| pattern.matches(&it.category, &it.name)));
        if names.is_empty() {
            return Err(self.no_match_in_groups("tracepoint", &known, ""));
        }
        for name in &names {
            if self.form != Form::Json {
                writeln!(out, "{}:{}", name.category, name.name)?;
                continue;
            }
            match tracefs.format(name) {
                Ok(format) => {
                    let line = document("list.tracepoint", &tracepoint_json(name, &format));
                    writeln!(out, "{line}")?;
                }
                Err(error @ HostError::TracefsForbidden { .. }) => return Err(error.into()),
                Err(error) => self.observer.note_left_out(error),
            }
        }
        Ok(())
    }
}

fn tracepoint_json(name: &TracepointName, format: &TracepointFormat) -> Value {
    let fields: Vec<_> = format.own_fields().map(field_json).collect();
    json!({ "kind": "tracepoint", "category": name.category, "name": name.name, "id": format.id, "fields": fields })
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
