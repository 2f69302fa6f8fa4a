//! Kinds of probes, and the functions that find the probes of each.

use bt_engine::unstable::{Facts, NotFound, TargetFacts as _};
use elf::ProbePoint;
use ordering::Order as _;
use text::patterns::{self, nearest};

use super::fits;

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

/// Kind of probe: its names, and the function that finds its probes.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) list: fn(&str, &Facts) -> Found,
}

const fn kind(
    name: &'static str,
    short: &'static [&'static str],
    list: fn(&str, &Facts) -> Found,
) -> Kind {
    Kind { name, short, list }
}

pub(super) const KINDS: [Kind; 14] = [
    kind("hardware", &["h"], |rest, _| events(&[&HARDWARE], rest)),
    kind("interval", &["i"], |rest, _| events(&[&UNITS], rest)),
    kind("kprobe", &["k"], kernel_functions),
    kind("kretprobe", &["kr"], kernel_functions),
    kind("profile", &["p"], |rest, _| events(&[&UNITS], rest)),
    kind("rawtracepoint", &["rt"], raw_tracepoints),
    kind("software", &["s"], |rest, _| {
        events(&[&SOFTWARE, &SOFTWARE_SHORT], rest)
    }),
    kind("tracepoint", &["t"], tracepoints),
    kind("uprobe", &["u"], user_functions),
    kind("uretprobe", &["ur"], user_functions),
    kind("usdt", &["U"], usdt),
    kind("fentry", &["f", "kfunc"], vmlinux_functions),
    kind("fexit", &["fr", "kretfunc"], vmlinux_functions),
    kind("iter", &["it"], iterators),
];

/// Returns the names of a table that match, with a trailing colon for the period.
fn events(tables: &[&[&str]], rest: &str) -> Found {
    let wanted = rest.split(':').next().unwrap_or_default();
    let of_names = |message: String, near: Vec<&str>| NotFound {
        message,
        absent: true,
        hints: patterns::did_you_mean(&near).into_iter().collect(),
    };
    let names = patterns::NamePattern::parse(if wanted.is_empty() { "*" } else { wanted });
    let names = names.map_err(|error| of_names(error.to_string(), Vec::new()))?;
    let mut all: Vec<&str> = tables
        .iter()
        .flat_map(|table| table.iter().copied())
        .collect();
    all.order();
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
pub(super) type Found = Result<Vec<String>, NotFound>;

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
    names.order();
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
    names.order();
    Ok(names)
}

fn user_functions(rest: &str, facts: &Facts) -> Found {
    let (target, name) = split(rest);
    let (target, cpp) = match target.and_then(|target| target.strip_suffix(":cpp")) {
        Some(target) => (Some(target), true),
        None => (target, false),
    };
    let found = facts.functions(target, name, cpp, ProbePoint::Within(0))?;
    let found = found.into_iter().filter(|place| place.at.is_ok());
    let mut names: Vec<String> = found
        .map(|place| format!("{}:{}", place.shown, place.name))
        .collect();
    names.order();
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
    names.order();
    names.dedup();
    Ok(names)
}
