//! Fields of records by the names that users type.

use errors::usage;
use objects::ObjectSpec;
use records::Field;
use text::patterns;

/// From its name, or from what users call it; `specs` are the objects that there are.
pub fn parse(name: &str, specs: &[ObjectSpec]) -> anyhow::Result<Field> {
    Field::named(name, specs).ok_or_else(|| unknown(name, specs))
}

/// Near names, also those that users have for fields; all of them only if none is near.
fn unknown(name: &str, specs: &[ObjectSpec]) -> anyhow::Error {
    let known = records::names(specs);
    let near = patterns::hint(name, records::aliases().chain(known.iter().map(String::as_str)));
    let more = if near.is_empty() { format!("; the fields are {}", known.join(", ")) } else { near };
    usage(format!("there is no field {name:?}{more}"))
}
