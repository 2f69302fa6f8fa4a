//! Any text as a script: parsed, told of, formatted, its macros expanded.
#![no_main]

use bt_lang::ast::Program;
use bt_lang::dump::dump;
use bt_lang::fmt::format;
use bt_lang::{Parsed, conditions, macros, parse};
use dptrace_fuzz::compiled::check_diagnostics;
use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;

/// A node of the tree for a byte or two, a few hundred bytes each.
const MEMORY_RATIO: usize = 600;

fn check_format(parsed: &Parsed, text: &str) {
    let tree = dump(&parsed.program);
    assert!(
        !tree.contains("(error)"),
        "an error node, and no error: {tree}"
    );
    let formatted = format(&parsed.program, text);
    let again = parse(&formatted);
    assert_eq!(dump(&again.program), tree, "{formatted}");
    assert_eq!(format(&again.program, &formatted), formatted);
}

fuzz_target!(|text: &str| {
    let parsed = within(text.len(), MEMORY_RATIO, || parse(text));
    check_diagnostics(&parsed.diagnostics, text);
    if parsed.is_ok() {
        check_format(&parsed, text);
    } else {
        let _ = format(&parsed.program, text);
    }
    let mut program: Program = parsed.program;
    check_diagnostics(
        &conditions::apply(&mut program, &["BPFTRACE_HAVE_BTF"]),
        text,
    );
    check_diagnostics(&macros::expand(&mut program), text);
    assert!(!dump(&program).is_empty());
});
