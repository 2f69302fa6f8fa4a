//! Fields of records by the names that users type.

use errors::usage;
use objects::ObjectSpec;
use records::Field;
use text::patterns;

/// Parses a field by its name or a common synonym; `specs` are the known objects.
pub fn parse(name: &str, specs: &[ObjectSpec]) -> anyhow::Result<Field> {
    Field::named(name, specs).ok_or_else(|| unknown(name, specs))
}

/// Returns the error for an unknown field: near names including synonyms, or all names if none is
/// near.
fn unknown(name: &str, specs: &[ObjectSpec]) -> anyhow::Error {
    let known = records::names(specs);
    let near = patterns::hint(
        name,
        records::aliases().chain(known.iter().map(String::as_str)),
    );
    let more = if near.is_empty() {
        format!("; the fields are {}", known.join(", "))
    } else {
        near
    };
    usage(format!("there is no field {name:?}{more}"))
}
