//! The checks before an object is written, so that users never have to read a loader's error.

use super::{Function, MAPS, ObjectBuilder, ObjectError, TEXT};
use crate::asm::{Line, Reference};
use std::collections::HashSet;

/// Prefixes of section names that loaders take for something other than a program.
const RESERVED: [&str; 9] = [
    "license", "version", "maps", MAPS, TEXT, ".data", ".rodata", ".bss", ".BTF",
];

/// Returns the first error.
pub(super) fn check(object: &ObjectBuilder) -> Result<(), ObjectError> {
    if object.license.is_empty() || object.license.contains('\0') {
        return Err(ObjectError::License {
            license: object.license.clone(),
        });
    }
    check_names(object)?;
    object
        .functions
        .iter()
        .try_for_each(|function| check_function(object, function))
}

fn check_names(object: &ObjectBuilder) -> Result<(), ObjectError> {
    let mut seen = HashSet::new();
    let maps = object.maps.iter().map(|map| &map.name);
    let data = object.data.iter().map(|data| &data.name);
    let functions = object.functions.iter().map(|function| &function.name);
    for name in maps.chain(data).chain(functions) {
        if !is_identifier(name) {
            return Err(ObjectError::Name { name: name.clone() });
        }
        if !seen.insert(name) {
            return Err(ObjectError::Duplicate { name: name.clone() });
        }
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_word)
        && name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit())
}

fn check_function(object: &ObjectBuilder, function: &Function) -> Result<(), ObjectError> {
    if !function.is_subprogram() && !is_program_section(&function.section) {
        let (section, program) = (function.section.clone(), function.name.clone());
        return Err(ObjectError::Section { section, program });
    }
    if function.code.is_empty() {
        return Err(ObjectError::Empty {
            name: function.name.clone(),
        });
    }
    function
        .code
        .lines()
        .iter()
        .try_for_each(|line| check_reference(object, function, line))
}

fn is_program_section(section: &str) -> bool {
    let is_reserved = RESERVED
        .iter()
        .any(|reserved| section.starts_with(reserved));
    !section.is_empty() && !section.contains('\0') && !is_reserved
}

fn check_reference(
    object: &ObjectBuilder,
    function: &Function,
    line: &Line,
) -> Result<(), ObjectError> {
    let Some(reference) = &line.reference else {
        return Ok(());
    };
    let symbol = reference.symbol();
    let (wanted, is_there) = match reference {
        Reference::Map(_) => ("map", object.maps.iter().any(|map| map.name == symbol)),
        Reference::Data(_) => ("data", object.data.iter().any(|data| data.name == symbol)),
        Reference::Call(_) | Reference::Function(_) => {
            let mut functions = object.functions.iter();
            (
                "subprogram",
                functions.any(|callee| callee.is_subprogram() && callee.name == symbol),
            )
        }
    };
    if is_there {
        return Ok(());
    }
    let (function, symbol) = (function.name.clone(), symbol.to_owned());
    Err(ObjectError::Undefined {
        function,
        slot: line.slot,
        wanted,
        symbol,
    })
}
