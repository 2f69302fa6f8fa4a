//! What tests, random programs and fuzz targets of the script compiler share. Never linked into the product.
//!
//! [`FakeTarget`] is the one target that is made of data: a test says what is there and nothing else is. [`Session`] runs a
//! compiled script on the interpreter ([`bpf_interp`]), so that what it prints can be compared without a kernel and without
//! root. [`diagnostics`] and [`check`] are for what the compiler says of a script that it refuses.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that is not set up as it should be fails")]

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

/// Compiles a script for a target, or says what is wrong with it.
pub fn try_compile(source: &str, target: &FakeTarget) -> Result<Script, Vec<Diagnostic>> {
    let parsed =
        bt_lang::parse_with(source, bt_lang::Options { params: Some(&target.params), ..bt_lang::Options::default() });
    if !parsed.is_ok() {
        return Err(parsed.diagnostics);
    }
    let compiled = bt_compiler::compile(&parsed.program, target);
    compiled.script.ok_or(compiled.diagnostics)
}

/// As [`try_compile`], the mistakes as lines of what is meant and what is wrong.
pub fn compile(source: &str, target: &FakeTarget) -> Result<Script, String> {
    let lines = |found: &Diagnostic| format!("{}: {}", found.span.text(source), found.message);
    try_compile(source, target).map_err(|found| found.iter().map(lines).collect::<Vec<_>>().join("\n"))
}

/// Everything that parser and compiler say of a script: a line for each diagnostic, `error: what [where]` (or `warning:`),
/// with its labels and hints in lines of their own.
pub fn diagnostics(source: &str, target: &FakeTarget) -> String {
    let parsed =
        bt_lang::parse_with(source, bt_lang::Options { params: Some(&target.params), ..bt_lang::Options::default() });
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
    let times = |count| if count > 1 { format!("  {count} times\n") } else { String::new() };
    texts.into_iter().map(|(text, count)| text + &times(count)).collect()
}

fn shown(found: &Diagnostic, source: &str) -> String {
    let kind = if found.is_error() { "error" } else { "warning" };
    let mut text = format!("{kind}: {} [{}]\n", found.message, one_line(found.span.text(source)));
    for (span, label) in &found.labels {
        let _ = writeln!(text, "  label: {label} [{}]", one_line(span.text(source)));
    }
    for hint in &found.hints {
        let _ = writeln!(text, "  hint: {}", hint.replace('\n', "\\n"));
    }
    text
}

/// The most of a place's text that is shown.
const SHOWN: usize = 60;

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(SHOWN).collect();
    if short.len() < line.len() { short + "..." } else { line }
}

/// Checks in one line what the compiler says of a script for the target of [`sample`]: the first diagnostic's text.
#[track_caller]
pub fn check(script: &str, expected: &str) {
    let said = diagnostics(script, &sample::target());
    let first = said.lines().next().unwrap_or_default();
    let message =
        first.split_once(": ").and_then(|(_, rest)| rest.rsplit_once(" [")).map_or("", |(message, _)| message);
    assert_eq!(message, expected, "{script}\n{said}");
}
