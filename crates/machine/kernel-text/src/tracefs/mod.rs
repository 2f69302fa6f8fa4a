//! The record format of a kernel tracepoint: the text of `/sys/kernel/tracing/events/SYSTEM/NAME/format`.
//!
//! The form is that of `f_show` in the kernel's `kernel/trace/trace_events.c`: `name:`, `ID:`, `format:`, then a line for
//! each field (those common to all tracepoints first, an empty line, then its own), then `print fmt:`.

mod field;

use crate::error::TextError;

pub use field::{Array, Field, Location};

/// Limit on fields; the kernel's tracepoints have fewer than 50.
const MAX_FIELDS: usize = 1024;

/// Format of a tracepoint's record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TracepointFormat {
    /// Name within its system.
    pub name: String,
    /// Number that perf_event_open(2) takes for it.
    pub id: u64,
    /// Fields in order, including the common ones.
    pub fields: Vec<Field>,
    /// Form in which the kernel would print a record: a format string and its arguments, in C.
    pub print: String,
}

impl TracepointFormat {
    /// Parses the text of a `format` file.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut parts = Parts::default();
        let mut next = 1;
        for line in text.lines() {
            let error = |expected| TextError::TracepointFormat {
                line: next,
                expected,
            };
            parts.line(line.trim()).map_err(error)?;
            next += 1;
        }
        let missing = |expected| TextError::TracepointFormat {
            line: next,
            expected,
        };
        Ok(Self {
            name: parts.name.ok_or_else(|| missing("a line name:"))?,
            id: parts.id.ok_or_else(|| missing("a line ID:"))?,
            fields: parts.fields,
            print: parts.print,
        })
    }

    /// Returns the field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the fields of this tracepoint alone, without those that every tracepoint has.
    pub fn own_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| !field.is_common())
    }
}

/// Parts that were found so far.
#[derive(Default)]
struct Parts {
    name: Option<String>,
    id: Option<u64>,
    fields: Vec<Field>,
    print: String,
}

impl Parts {
    /// Takes a line; the error names the expected part.
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(name) = line.strip_prefix("name:") {
            self.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        } else if let Some(id) = line.strip_prefix("ID:") {
            self.id = Some(id.trim().parse().map_err(|_| "a number after ID:")?);
        } else if let Some(print) = line.strip_prefix("print fmt:") {
            print.trim().clone_into(&mut self.print);
        } else if line.starts_with("field") {
            if self.fields.len() == MAX_FIELDS {
                return Err("no more than 1024 fields");
            }
            self.fields.push(field::parse(line)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
