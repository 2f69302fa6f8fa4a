//! `-l`: lists places to attach to, as bpftrace does.

mod kinds;

use anyhow::anyhow;
use bt_engine::unstable::{Declarations, Facts, NotFound};
use console::messages::{is_bpftrace_compat, note};
use console::output::Output;
use errors::forbidden;
use ordering::Order as _;
use text::patterns::{self, nearest};
use text::printable;
use typeinfo::NameKind;
use whole_file::Access;

use super::options::RunArgs;
use super::source::ScriptText;
use super::{Lines, compiled};
use crate::run::engine_error::engine_error;
use kinds::KINDS;

/// Lists the probes that match.
pub(super) fn list(args: &RunArgs) -> anyhow::Result<()> {
    let mut lines = Lines::default();
    let builder = compiled::builder("", &[], args).target(compiled::target(args)?);
    let facts = builder.facts().map_err(engine_error)?;
    let types = Declarations::new(&facts);
    let mut missing = Vec::new();
    let mut found = false;
    for pattern in wanted(args)? {
        match list_pattern(&pattern, args, &facts, &types, &mut lines)? {
            None => found = true,
            Some(why) => missing.push(format!("no probe matches {pattern:?}: {why}")),
        }
    }
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    output.buffer.extend(lines.0.as_bytes());
    output.flush()?;
    if let Some(why) = facts.tracepoints_refused() {
        return Err(forbidden(format!("tracepoints are not listed: {why}")));
    }
    if let Some(why) = facts.file_refused().filter(|_| !missing.is_empty()) {
        return Err(compiled::unreadable(&why));
    }
    // bpftrace exits with status 0 and no message for these.
    if !is_bpftrace_compat() {
        report_missing(&missing, found)?;
    }
    Ok(output.finish()?)
}

/// Reports the patterns that nothing matches. If something else was found, that is no failure.
fn report_missing(missing: &[String], found: bool) -> anyhow::Result<()> {
    let (notes, error) = match missing.split_last() {
        Some((last, rest)) if !found => (rest, Some(last)),
        _ => (missing, None),
    };
    for why in notes {
        note(why);
    }
    error.map_or(Ok(()), |why| Err(anyhow!("{why}")))
}

/// Returns the patterns to list: as typed, or the attach points of a script.
fn wanted(args: &RunArgs) -> anyhow::Result<Vec<String>> {
    let word = args.words.first();
    let is_file = word.is_some_and(|word| {
        std::path::Path::new(word).is_file() || bundled_scripts::is_bundled(word)
    });
    if !args.programs.is_empty() || is_file {
        let text = ScriptText::read(args)?;
        let parsed = compiled::parse(&text, args)?;
        let points = parsed
            .syntax_tree()
            .items
            .iter()
            .filter_map(|item| match &item.kind {
                bt_lang::ast::ItemKind::Probe(probe) => Some(probe),
                _ => None,
            });
        // `begin` and the like exist everywhere.
        let is_listed = |point: &&bt_lang::ast::AttachPoint| {
            KINDS.iter().any(|kind| kind.name == point.kind.name())
        };
        let points = points
            .flat_map(|probe| &probe.points)
            .filter(is_listed)
            .map(|point| point.raw.clone());
        return Ok(points.collect());
    }
    let Some(word) = word else {
        return Ok(vec!["*:*".into()]);
    };
    if std::path::Path::new(word)
        .extension()
        .is_some_and(|it| it == "bt")
    {
        note(&if is_bpftrace_compat() {
            format!(
                "It appears that '{word}' is a filename but the file does not exist. Treating \
                 '{word}' as a search pattern."
            )
        } else {
            format!("there is no file '{word}': looking for probes of that name")
        });
    }
    Ok(word
        .split(',')
        .map(|pattern| pattern.trim().to_owned())
        .collect())
}

/// Returns the name and kind of a type, if the pattern is one.
fn type_name(pattern: &str) -> Option<(&str, NameKind)> {
    let kinds = [
        ("struct ", NameKind::Struct),
        ("union ", NameKind::Union),
        ("enum ", NameKind::Enum),
    ];
    kinds
        .iter()
        .find_map(|(word, kind)| Some((pattern.strip_prefix(word)?.trim(), *kind)))
}

/// Lists the definitions of a type.
fn list_types(
    pattern: &str,
    found: Vec<(String, String)>,
    facts: &Facts,
    lines: &mut Lines,
) -> anyhow::Result<()> {
    if found.is_empty() {
        let of_process = if facts.file_names().is_empty() {
            ""
        } else {
            ", nor the process's debug information"
        };
        anyhow::bail!(
            "the kernel's types have no {pattern}{of_process} (--debuginfo DIR adds a place)"
        );
    }
    for (place, definition) in found {
        lines.push(format_args!(
            "{place}: {}",
            printable::lines(definition.as_bytes())
        ));
    }
    Ok(())
}

/// Lists the matches of a pattern; returns the reason if there are none.
fn list_pattern(
    pattern: &str,
    args: &RunArgs,
    facts: &Facts,
    types: &Declarations<'_>,
    lines: &mut Lines,
) -> anyhow::Result<Option<String>> {
    if let Some((name, kind)) = type_name(pattern) {
        list_types(pattern, types.definitions(kind, name), facts, lines)?;
        return Ok(None);
    }
    // A pattern of one part matches whole names, unless it is the name of a kind.
    let whole = !pattern.contains(':') && !KINDS.iter().any(|kind| fits(pattern, kind.name));
    let pattern = if whole {
        format!("*:{pattern}")
    } else {
        pattern.to_owned()
    };
    let (kind, rest) = pattern.split_once(':').unwrap_or((&pattern, "*"));
    let kinds = match patterns::NamePattern::parse(kind) {
        Ok(kinds) => kinds,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let mut missing: Vec<NotFound> = Vec::new();
    let mut found_one = false;
    for known in &KINDS {
        if !kinds.matches(known.name) && !known.short.contains(&kind) {
            continue;
        }
        // Without a file there is nothing to search.
        let of_files = ["uprobe", "uretprobe", "usdt"].contains(&known.name);
        if kind.contains('*') && of_files && args.pid.is_none() && !rest.contains('/') {
            continue;
        }
        let found = match (known.list)(rest, facts) {
            Ok(found) => found,
            Err(why) => {
                missing.push(why);
                continue;
            }
        };
        found_one |= !found.is_empty();
        for found in found {
            // Names come from the files; one must not become two lines either.
            lines.push(format_args!(
                "{}:{}",
                known.name,
                printable::text(found.as_bytes())
            ));
            if args.verbose > 0 {
                for argument in types.arguments(known.name, &found) {
                    lines.push(format_args!("    {}", printable::text(argument.as_bytes())));
                }
            }
        }
    }
    Ok((!found_one).then(|| no_match_reason(kind, whole, &missing)))
}

/// Returns why nothing matches: the kind's own reason if there is one, or the near names of all.
fn no_match_reason(kind: &str, whole: bool, missing: &[NotFound]) -> String {
    match missing {
        [] => {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            let near = nearest(kind, names.iter().copied(), 2);
            let near = patterns::did_you_mean(&near).map(|near| format!(" ({near})"));
            format!(
                "there is no kind of probe {kind:?} to list{}; the kinds are {}",
                near.unwrap_or_default(),
                names.join(", ")
            )
        }
        [one] => std::iter::once(&one.message)
            .chain(&one.hints)
            .cloned()
            .collect::<Vec<_>>()
            .join("; "),
        several => {
            let hints = several.iter().flat_map(|it| &it.hints);
            let mut near: Vec<&str> = hints.flat_map(|hint| patterns::names_meant(hint)).collect();
            near.order();
            near.dedup();
            near.truncate(MAX_NEAR_NAMES);
            let near = patterns::did_you_mean_at_end(&near);
            let files = if whole {
                " (of files: -l 'uprobe:FILE:*' or 'usdt:FILE:*')"
            } else {
                ""
            };
            format!("no probe of the kernel has this name{files}{near}")
        }
    }
}

/// Limit on the number of near names.
const MAX_NEAR_NAMES: usize = 6;

/// Returns whether a name matches a pattern.
fn fits(pattern: &str, name: &str) -> bool {
    patterns::NamePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(name))
}
