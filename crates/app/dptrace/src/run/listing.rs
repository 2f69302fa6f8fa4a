//! `-l`: lists places to attach to, as bpftrace does.

use anyhow::anyhow;
use bt_engine::{Declarations, Facts, NotFound, TargetFacts as _};
use elf::Aim;
use errors::forbidden;
use text::patterns::{self, nearest};
use text::printable;
use typeinfo::NameKind;
use whole_file::Access;

use super::options::RunArgs;
use super::source::ScriptText;
use super::{Lines, compiled};
use crate::messages::{is_bpftrace_compat, note};
use crate::output::Output;
use crate::run::engine_error::engine_error;

/// Software events by name (`linux/perf_event.h`, `enum perf_sw_ids`), as bpftrace calls them.
const SOFTWARE: [&str; 11] = [
    "alignment-faults",
    "bpf-output",
    "context-switches",
    "cpu-clock",
    "cpu-migrations",
    "dummy",
    "emulation-faults",
    "major-faults",
    "minor-faults",
    "page-faults",
    "task-clock",
];
/// Hardware events, likewise (`enum perf_hw_id`).
const HARDWARE: [&str; 10] = [
    "backend-stalls",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "cache-misses",
    "cache-references",
    "cpu-cycles",
    "frontend-stalls",
    "instructions",
    "ref-cycles",
];
/// Short names that are listed too.
const SOFTWARE_SHORT: [&str; 4] = ["cpu", "cs", "faults", "dummy"];
/// Units of timers.
const UNITS: [&str; 4] = ["hz", "ms", "s", "us"];

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
        let text = ScriptText::of(args)?;
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

/// Kind of probe: its names, and the function that finds its probes.
struct Kind {
    name: &'static str,
    short: &'static [&'static str],
    list: fn(&str, &Facts) -> Result<Vec<String>, NotFound>,
}

const KINDS: [Kind; 14] = [
    Kind {
        name: "hardware",
        short: &["h"],
        list: |rest, _| events(&[&HARDWARE], rest),
    },
    Kind {
        name: "interval",
        short: &["i"],
        list: |rest, _| events(&[&UNITS], rest),
    },
    Kind {
        name: "kprobe",
        short: &["k"],
        list: kernel_functions,
    },
    Kind {
        name: "kretprobe",
        short: &["kr"],
        list: kernel_functions,
    },
    Kind {
        name: "profile",
        short: &["p"],
        list: |rest, _| events(&[&UNITS], rest),
    },
    Kind {
        name: "rawtracepoint",
        short: &["rt"],
        list: raw_tracepoints,
    },
    Kind {
        name: "software",
        short: &["s"],
        list: |rest, _| events(&[&SOFTWARE, &SOFTWARE_SHORT], rest),
    },
    Kind {
        name: "tracepoint",
        short: &["t"],
        list: tracepoints,
    },
    Kind {
        name: "uprobe",
        short: &["u"],
        list: user_functions,
    },
    Kind {
        name: "uretprobe",
        short: &["ur"],
        list: user_functions,
    },
    Kind {
        name: "usdt",
        short: &["U"],
        list: usdt,
    },
    Kind {
        name: "fentry",
        short: &["f", "kfunc"],
        list: vmlinux_functions,
    },
    Kind {
        name: "fexit",
        short: &["fr", "kretfunc"],
        list: vmlinux_functions,
    },
    Kind {
        name: "iter",
        short: &["it"],
        list: iterators,
    },
];

/// Lists the matches of a pattern; returns the reason if there are none.
fn list_pattern(
    pattern: &str,
    args: &RunArgs,
    facts: &Facts,
    types: &Declarations<'_>,
    lines: &mut Lines,
) -> anyhow::Result<Option<String>> {
    let records = [
        ("struct ", NameKind::Struct),
        ("union ", NameKind::Union),
        ("enum ", NameKind::Enum),
    ];
    if let Some((name, kind)) = records
        .iter()
        .find_map(|(word, kind)| Some((pattern.strip_prefix(word)?, *kind)))
    {
        let found = types.definitions(kind, name.trim());
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
    Ok((!found_one).then(|| why_none(kind, whole, &missing)))
}

/// Returns why nothing matches: the kind's own reason if there is one, or the near names of all.
fn why_none(kind: &str, whole: bool, missing: &[NotFound]) -> String {
    match missing {
        [] => {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            let near = nearest(kind, names.iter().copied(), 2);
            let near = if near.is_empty() {
                String::new()
            } else {
                format!(" (near: {})", near.join(", "))
            };
            format!(
                "there is no kind of probe {kind:?} to list{near}; the kinds are {}",
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
            let mut near: Vec<&str> = hints
                .filter_map(|hint| hint.strip_prefix("near: "))
                .flat_map(|it| it.split(", "))
                .collect();
            near.sort_unstable();
            near.dedup();
            near.truncate(MOST_NEAR);
            let near = if near.is_empty() {
                String::new()
            } else {
                format!("; near: {}", near.join(", "))
            };
            let files = if whole {
                " (of files: -l 'uprobe:FILE:*' or 'usdt:FILE:*')"
            } else {
                ""
            };
            format!("no probe of the kernel has this name{near}{files}")
        }
    }
}

/// Limit on the number of near names.
const MOST_NEAR: usize = 6;

/// Returns whether a name matches a pattern.
fn fits(pattern: &str, name: &str) -> bool {
    patterns::NamePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(name))
}

/// Returns the names of a table that match, with a trailing colon for the period.
fn events(tables: &[&[&str]], rest: &str) -> Found {
    let wanted = rest.split(':').next().unwrap_or_default();
    let of_names = |message: String, near: Vec<&str>| NotFound {
        message,
        absent: true,
        hints: if near.is_empty() {
            Vec::new()
        } else {
            vec![format!("near: {}", near.join(", "))]
        },
    };
    let names = patterns::NamePattern::parse(if wanted.is_empty() { "*" } else { wanted });
    let names = names.map_err(|error| of_names(error.to_string(), Vec::new()))?;
    let mut all: Vec<&str> = tables
        .iter()
        .flat_map(|table| table.iter().copied())
        .collect();
    all.sort_unstable();
    all.dedup();
    let found: Vec<String> = all
        .iter()
        .filter(|name| names.matches(name))
        .map(|name| format!("{name}:"))
        .collect();
    if found.is_empty() {
        let near = nearest(wanted, all.iter().copied(), 3);
        let known = if near.is_empty() {
            format!(": there is {}", all.join(", "))
        } else {
            String::new()
        };
        return Err(of_names(
            format!("no event is called {wanted}{known}"),
            near,
        ));
    }
    Ok(found)
}

/// Matching names, or the reason that there are none.
type Found = Result<Vec<String>, NotFound>;

/// Splits at the last colon: the parts before it, and the last part.
fn split(rest: &str) -> (Option<&str>, &str) {
    rest.rsplit_once(':')
        .map_or((None, rest), |(target, name)| (Some(target), name))
}

fn kernel_functions(rest: &str, facts: &Facts) -> Found {
    let (module, name) = split(rest);
    facts.kernel_functions(module, name)
}

fn vmlinux_functions(rest: &str, facts: &Facts) -> Found {
    let (module, name) = split(rest);
    let named = |name: String| {
        format!(
            "{}:{name}",
            module.filter(|it| !it.contains('*')).unwrap_or("vmlinux")
        )
    };
    Ok(facts
        .kernel_functions(module, name)?
        .into_iter()
        .map(named)
        .collect())
}

/// Prefix of the names of iterator contexts in the kernel's BTF (`BTF_TYPE_EMIT` in each iterator's
/// source).
const CONTEXT: &[u8] = b"bpf_iter__";
/// Iterators over one map, which a script has no way to name.
const OF_A_MAP: [&str; 3] = ["bpf_map_elem", "bpf_sk_storage_map", "sockmap"];

fn iterators(rest: &str, facts: &Facts) -> Found {
    // The names in BTF are adjacent, each ending with a 0.
    let words = facts
        .kernel_btf()
        .unwrap_or_default()
        .split(|byte| *byte == 0);
    let objects = words.filter_map(|word| std::str::from_utf8(word.strip_prefix(CONTEXT)?).ok());
    let mut names: Vec<String> = objects
        .filter(|object| fits(rest, object) && !object.contains("__") && !OF_A_MAP.contains(object))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        let message = format!("the kernel has no iterator {rest}");
        return Err(NotFound {
            message,
            absent: true,
            hints: vec!["'iter:*' lists those that it has".to_owned()],
        });
    }
    Ok(names)
}

fn raw_tracepoints(rest: &str, facts: &Facts) -> Found {
    facts.raw_tracepoints(None, split(rest).1)
}

fn tracepoints(rest: &str, facts: &Facts) -> Found {
    let (category, name) = split(rest);
    let found = facts.tracepoints(category.unwrap_or("*"), name)?;
    let mut names: Vec<String> = found
        .into_iter()
        .map(|(category, name)| format!("{category}:{name}"))
        .collect();
    names.sort();
    Ok(names)
}

fn user_functions(rest: &str, facts: &Facts) -> Found {
    let (target, name) = split(rest);
    let (target, cpp) = match target.and_then(|target| target.strip_suffix(":cpp")) {
        Some(target) => (Some(target), true),
        None => (target, false),
    };
    let found = facts.functions(target, name, cpp, Aim::Within(0))?;
    let found = found.into_iter().filter(|place| place.at.is_ok());
    let mut names: Vec<String> = found
        .map(|place| format!("{}:{}", place.shown, place.name))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn usdt(rest: &str, facts: &Facts) -> Found {
    let (target, name) = split(rest);
    let (target, provider) = match target.and_then(|target| target.rsplit_once(':')) {
        Some((file, provider)) => (Some(file), Some(provider)),
        None => (target, None),
    };
    let found = facts.usdt(target, provider, name)?;
    let mut names: Vec<String> = found
        .into_iter()
        .map(|it| format!("{}:{}:{}", it.shown, it.provider, it.name))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}
