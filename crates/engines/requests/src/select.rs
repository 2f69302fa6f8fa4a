//! Selections of records, as they are typed: globs of tracepoints, conditions, lcores and objects.

use std::collections::HashSet;

use anyhow::{Context as _, bail};
use errors::usage;
use glob::Pattern;
use objects::ObjectSpec;
use observer::Observer;
use records::{Condition, Objects, Test, parse_number};
use spdk_trace::{Tpoint, TpointSet};
use text::patterns;

use crate::field;

/// Adds the tracepoints whose names match a glob; returns whether there are any.
pub fn add_matching<'t>(
    wanted: &mut TpointSet,
    glob: &str,
    tpoints: impl Iterator<Item = &'t Tpoint>,
) -> anyhow::Result<bool> {
    let pattern = pattern(glob)?;
    let mut is_any = false;
    for tpoint in tpoints.filter(|tpoint| pattern.matches(&tpoint.name)) {
        wanted.insert(tpoint.id);
        is_any = true;
    }
    Ok(is_any)
}

/// Parses a glob.
pub fn pattern(text: &str) -> anyhow::Result<Pattern> {
    Pattern::new(text).map_err(|e| {
        usage(format!(
            "the glob {text:?} is wrong at character {}: {}",
            e.pos + 1,
            e.msg
        ))
    })
}

/// Returns the tracepoints that match one of these globs. A note says which glob matches none.
///
/// # Errors
///
/// Fails if a glob is wrong, or no tracepoint matches any.
pub fn matching(
    globs: &[String],
    tpoints: &[Tpoint],
    observer: &Observer,
) -> anyhow::Result<TpointSet> {
    let mut wanted = TpointSet::default();
    let mut unknown = Vec::new();
    for glob in globs {
        if !add_matching(&mut wanted, glob, tpoints.iter())? {
            let near = patterns::hint(glob, tpoints.iter().map(|t| t.name.as_str()));
            unknown.push(format!(
                "no tracepoint of this trace matches {glob:?} (list all with --list-tpoints){near}"
            ));
        }
    }
    // One of several names may belong to another SPDK version; if none matches, nothing would be
    // listed, without an error.
    if wanted.is_empty() {
        bail!("{}", unknown.join("; "));
    }
    for text in &unknown {
        observer.note(text);
    }
    Ok(wanted)
}

/// Parses a condition such as `size>=4096`.
///
/// # Errors
///
/// Fails if it has no operator, the field does not exist, or its value is no number or glob.
pub fn condition(text: &str, specs: &[ObjectSpec]) -> anyhow::Result<Condition> {
    let (name, must) = condition_parts(text)?;
    let field = field::parse(name, specs).with_context(|| format!("in the condition {text:?}"))?;
    Ok(Condition::new(field, name, must))
}

/// Splits a condition into its field and the test for its value.
///
/// # Errors
///
/// Fails if it has no operator, or its value is no number or glob.
pub fn condition_parts(text: &str) -> anyhow::Result<(&str, Test)> {
    const OPERATORS: [&str; 6] = ["!=", ">=", "<=", "=", ">", "<"];
    // The first operator counts; of two at one position, the longer.
    let found = OPERATORS.iter().filter_map(|op| Some((text.find(op)?, op)));
    let Some((at, operator)) = found.min_by_key(|(at, op)| (*at, std::cmp::Reverse(op.len())))
    else {
        return Err(usage(format!(
            "the condition {text:?} has no operator: use one of = != < <= > >="
        )));
    };
    let (name, value) = (text[..at].trim(), text[at + operator.len()..].trim());
    let number = || {
        // The listing has times in microseconds; a user may type them with a unit.
        let time = || Some(text::duration::parse_micros(value).ok()?).filter(|_| name == "time");
        parse_number(value).or_else(time).ok_or_else(|| {
            usage(format!(
                "in the condition {text:?}: {value:?} is not a number"
            ))
        })
    };
    let must = match *operator {
        "=" => Test::Matches(pattern(value)?),
        "!=" => Test::MatchesNot(pattern(value)?),
        "<" => Test::Number(f64::lt, number()?),
        "<=" => Test::Number(f64::le, number()?),
        ">" => Test::Number(f64::gt, number()?),
        _ => Test::Number(f64::ge, number()?),
    };
    Ok((name, must))
}

/// Parses lcores: numbers and ranges, such as `4-7`.
///
/// # Errors
///
/// Fails if a text is neither.
pub fn lcores(texts: &[String]) -> anyhow::Result<HashSet<u16>> {
    let mut lcores = HashSet::new();
    for text in texts {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => lcores.extend(first..=last),
            _ => {
                return Err(usage(format!(
                    "{text:?} is neither an lcore nor a range of lcores (0,4-7)"
                )));
            }
        }
    }
    Ok(lcores)
}

/// Parses objects: names (`r10`) and addresses (`0x7f00dc0a8000`).
///
/// # Errors
///
/// Fails if a text is neither.
pub fn objects(texts: &[String]) -> anyhow::Result<Objects> {
    let mut objects = Objects::default();
    for text in texts {
        // No application uses a digit as a prefix: the prefix was forgotten, or this is an address.
        if let Some(digits) = text.strip_prefix("0x") {
            let id = u64::from_str_radix(digits, 16);
            objects.ids.insert(id.map_err(|_| {
                usage(format!(
                    "{text:?} is neither an object's name nor an address"
                ))
            })?);
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(usage(format!(
                "{text:?} has no prefix: an object's name is a prefix and a number, such as r10"
            )));
        } else {
            objects
                .names
                .insert(text.parse().map_err(|e| usage(format!("{text:?}: {e}")))?);
        }
    }
    Ok(objects)
}
