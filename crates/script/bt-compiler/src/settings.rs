//! Settings of the script's `config = { }`, and of the environment, which has the last word.

use bt_lang::Diagnostic;
use bt_lang::ast::{ConfigEntry, ConfigValue, Span};

use bpf_program::License;
use bt_abi::{Config, MissingProbes, StackMode};
use text::patterns::did_you_mean;

/// Function that applies a setting; returns false if the value is invalid for it.
type ApplySetting = fn(&mut Config, &str) -> bool;

/// All settings: name, description of the value, and function that applies it.
pub(crate) const SETTINGS: &[(&str, &str, ApplySetting)] = &[
    (
        "max_strlen",
        "the longest string of str(), in bytes: 1 to 16384",
        |config, text| {
            number(text)
                .filter(|n| (1..=16384).contains(n))
                .map(|n| config.max_strlen = n as u32)
                .is_some()
        },
    ),
    (
        "max_map_keys",
        "the maximum number of keys of a map",
        |config, text| {
            number(text)
                .filter(|n| (1..1 << 30).contains(n))
                .map(|n| config.max_map_keys = n as u32)
                .is_some()
        },
    ),
    (
        "perf_rb_pages",
        "the ring's pages for each CPU: a power of two",
        |config, text| {
            let pages = number(text).filter(|n| (1..=1 << 16).contains(n));
            pages
                .map(|n| config.ring_bytes = ((n * 4096).next_power_of_two() as u32).max(1 << 18))
                .is_some()
        },
    ),
    (
        "stack_mode",
        "how stacks are shown: bpftrace, perf, raw, folded",
        |config, text| {
            let mode = StackMode::NAMES.iter().find(|(name, _)| *name == text);
            mode.map(|(_, mode)| config.stack_mode = *mode).is_some()
        },
    ),
    (
        "cpp_demangle",
        "whether C++ names are shown as in the source",
        |config, text| flag(text).map(|yes| config.cpp_demangle = yes).is_some(),
    ),
    (
        "print_maps_on_exit",
        "whether maps are printed at the end",
        |config, text| {
            flag(text)
                .map(|yes| config.print_maps_on_exit = yes)
                .is_some()
        },
    ),
    (
        "filter_pid",
        "whether the kernel's probes, too, fire only for the process of -p",
        |config, text| flag(text).map(|yes| config.filter_pid = yes).is_some(),
    ),
    (
        "missing_probes",
        "what to do about missing probes: error, warn, ignore",
        |config, text| {
            let known = [
                ("error", MissingProbes::Error),
                ("warn", MissingProbes::Warn),
                ("ignore", MissingProbes::Ignore),
            ];
            known
                .iter()
                .find(|(name, _)| *name == text)
                .map(|(_, what)| config.missing_probes = *what)
                .is_some()
        },
    ),
    (
        "show_debug_info",
        "whether stacks show source lines",
        |config, text| flag(text).map(|yes| config.show_debug_info = yes).is_some(),
    ),
    (
        "str_trunc_trailer",
        "what a cut string ends with",
        |config, text| {
            text.clone_into(&mut config.str_trunc_trailer);
            true
        },
    ),
    (
        "license",
        "one of the kernel's own list: GPL, GPL v2, GPL and additional rights, Dual BSD/GPL, Dual \
         MIT/GPL, Dual MPL/GPL",
        |config, text| {
            License::named(text)
                .map(|license| config.license = license)
                .is_some()
        },
    ),
    (
        "max_probes",
        "the maximum number of probes of the script",
        |config, text| {
            number(text)
                .map(|n| config.max_probes = Some(u32::try_from(n).unwrap_or(u32::MAX)))
                .is_some()
        },
    ),
    (
        "max_bpf_progs",
        "the maximum number of programs that the script is compiled to",
        |config, text| {
            number(text)
                .map(|n| config.max_bpf_progs = Some(u32::try_from(n).unwrap_or(u32::MAX)))
                .is_some()
        },
    ),
    (
        "on_stack_limit",
        "accepted but not used: values find their place by themselves",
        |config, text| {
            number(text)
                .map(|n| config.on_stack_limit = n as u32)
                .is_some()
        },
    ),
];

/// Settings that only the runtime obeys, each under its name in [`Config::others`].
const OF_THE_RUNTIME: [&str; 1] = ["max_cat_bytes"];

/// Settings that change how much work bpftrace does, and nothing here.
const IGNORED: [&str; 10] = [
    "cache_user_symbols",
    "lazy_symbolication",
    "log_size",
    "max_type_res_iterations",
    "use_blazesym",
    "unstable_import",
    "unstable_map_decl",
    "unstable_tseries",
    "unstable_addr",
    "unstable_typeinfo",
];

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "true" | "enable" | "warn" => Some(true),
        "0" | "false" | "disable" => Some(false),
        _ => None,
    }
}

/// Applies one line of the script's settings.
pub(crate) fn entry(config: &mut Config, entry: &ConfigEntry, diagnostics: &mut Vec<Diagnostic>) {
    let text = match &entry.value {
        ConfigValue::Int(number) => number.to_string(),
        ConfigValue::Bool(value) => value.to_string(),
        ConfigValue::Word(word) => word.clone(),
        ConfigValue::Str(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    };
    let whole = entry.key.span.to(entry.value_span);
    if let Err(diagnostic) = set(config, &entry.key.text, &text, whole, entry.value_span) {
        diagnostics.push(*diagnostic);
    }
}

/// Applies a setting of the environment. Unknown ones are no mistake, since they may be for another
/// version.
pub(crate) fn environment(
    config: &mut Config,
    name: &str,
    text: &str,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if name == "dummy_ts_map" {
        config.series_clock = Some(text.trim_start_matches('@').to_owned());
    } else if is_known(name)
        && let Err(diagnostic) = set(config, name, text, Span::default(), Span::default())
    {
        diagnostics.push(*diagnostic);
    }
}

fn is_known(name: &str) -> bool {
    SETTINGS.iter().any(|(known, ..)| *known == name)
        || OF_THE_RUNTIME.contains(&name)
        || IGNORED.contains(&name)
}

/// Applies a setting by name. Settings of the environment have no place in the script.
pub(crate) fn set(
    config: &mut Config,
    key: &str,
    text: &str,
    at: Span,
    value_at: Span,
) -> Result<(), Box<Diagnostic>> {
    let lower = key.to_ascii_lowercase();
    let name = lower.strip_prefix("bpftrace_").unwrap_or(&lower);
    if let Some((_, what, take)) = SETTINGS.iter().find(|(known, ..)| *known == name) {
        if take(config, text) {
            return Ok(());
        }
        let message = format!("invalid value for {name}: {text}");
        return Err(Box::new(
            Diagnostic::error(message, value_at).with_hint(format!("{name} is {what}")),
        ));
    }
    if OF_THE_RUNTIME.contains(&name) || IGNORED.contains(&name) || name.starts_with("unstable_") {
        config.others.push((name.to_owned(), text.to_owned()));
        return Ok(());
    }
    let near = bt_lang::nearest(name, SETTINGS.iter().map(|(known, ..)| *known));
    let diagnostic = Diagnostic::error(format!("{key}: not a known configuration option"), at);
    Err(Box::new(match did_you_mean(&near) {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }))
}
