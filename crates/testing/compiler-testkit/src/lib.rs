//! Shared parts of tests, random programs and fuzz targets of the script compiler. Never linked
//! into the product.
//!
//! [`FakeTarget`] is a target made of data: only what a test adds exists. [`Session`] runs a
//! compiled script on the interpreter ([`bpf_interp`]), so that its output can be compared without
//! a kernel and without root. [`diagnostics`] and [`check`] return and check the compiler's errors
//! for a rejected script.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test that is not set up as it should be fails"
)]

pub mod decode;
pub mod sample;
mod session;
mod target;
pub mod truth;

use std::fmt::Write as _;

use bt_abi::Script;
use bt_lang::Diagnostic;

pub use session::{Session, registers};
pub use target::{FakeTarget, Names};

/// Compiles a script for a target, or returns the diagnostics.
pub fn try_compile(source: &str, target: &FakeTarget) -> Result<Script, Vec<Diagnostic>> {
    let parsed = bt_lang::parse_with(
        source,
        bt_lang::Options {
            params: Some(&target.params),
            ..bt_lang::Options::default()
        },
    );
    if !parsed.is_ok() {
        return Err(parsed.diagnostics);
    }
    let compiled = bt_compiler::compile(&parsed.program, target);
    compiled.script.ok_or(compiled.diagnostics)
}

/// Compiles like [`try_compile`]; the error has a line for each diagnostic, with the source text
/// and the message.
pub fn compile(source: &str, target: &FakeTarget) -> Result<Script, String> {
    let lines = |found: &Diagnostic| format!("{}: {}", found.span.text(source), found.message);
    try_compile(source, target)
        .map_err(|found| found.iter().map(lines).collect::<Vec<_>>().join("\n"))
}

/// Returns all diagnostics of parser and compiler for a script: a line for each,
/// `error: what [where]` (or `warning:`), followed by lines for its labels and hints.
pub fn diagnostics(source: &str, target: &FakeTarget) -> String {
    let parsed = bt_lang::parse_with(
        source,
        bt_lang::Options {
            params: Some(&target.params),
            ..bt_lang::Options::default()
        },
    );
    let mut all = parsed.diagnostics.clone();
    if parsed.is_ok() {
        all.extend(bt_compiler::compile(&parsed.program, target).diagnostics);
    }
    let mut texts: Vec<(String, u32)> = Vec::new();
    for text in all.iter().map(|found| shown(found, source)) {
        match texts.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => texts.push((text, 1)),
        }
    }
    let times = |count| {
        if count > 1 {
            format!("  {count} times\n")
        } else {
            String::new()
        }
    };
    texts
        .into_iter()
        .map(|(text, count)| text + &times(count))
        .collect()
}

fn shown(found: &Diagnostic, source: &str) -> String {
    let kind = if found.is_error() { "error" } else { "warning" };
    let mut text = format!(
        "{kind}: {} [{}]\n",
        found.message,
        one_line(found.span.text(source))
    );
    for (span, label) in &found.labels {
        let _ = writeln!(text, "  label: {label} [{}]", one_line(span.text(source)));
    }
    for hint in &found.hints {
        let _ = writeln!(text, "  hint: {}", hint.replace('\n', "\\n"));
    }
    text
}

/// Limit on the shown source text, in characters.
const MAX_SHOWN_CHARS: usize = 60;

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    if short.len() < line.len() {
        short + "..."
    } else {
        line
    }
}

/// Checks the message of the first diagnostic for a script on the target of [`sample`].
#[track_caller]
pub fn check(script: &str, expected: &str) {
    let said = diagnostics(script, &sample::target());
    let first = said.lines().next().unwrap_or_default();
    let message = first
        .split_once(": ")
        .and_then(|(_, rest)| rest.rsplit_once(" ["))
        .map_or("", |(message, _)| message);
    assert_eq!(message, expected, "{script}\n{said}");
}
