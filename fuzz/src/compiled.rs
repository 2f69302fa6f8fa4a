//! What must hold of whatever the compiler makes of a script.

use bpf_insn::asm::Reference;
use bpf_insn::{Code, Listing};
use bt_abi::Script;
use bt_compiler::compile;
use bt_lang::render::{Source, render};
use bt_lang::{Diagnostic, Options, parse_with};
use compiler_testkit::FakeTarget;

use crate::within;

/// A node of the tree for a byte or two, a few hundred bytes each, and what is made of it.
const MEMORY_RATIO: usize = 4000;
/// A few bytes can stand for much: macros and unrolled loops. That has limits of its own.
const MAX_EXPANDED_BYTES: usize = 192 << 20;
/// No program that the kernel takes is longer (`BPF_COMPLEXITY_LIMIT_INSNS` of `linux/bpf.h`).
const MAX_SLOTS: u32 = 1_000_000;

/// Every place that a diagnostic names is one of the text, and what is shown of it is clean.
pub fn check_diagnostics(diagnostics: &[Diagnostic], text: &str) {
    let source = Source::new("script.bt", text);
    for diagnostic in diagnostics {
        let spans = diagnostic
            .labels
            .iter()
            .map(|label| label.0)
            .chain([diagnostic.span]);
        for span in spans {
            assert!(
                text.get(span.start as usize..span.end as usize).is_some(),
                "{diagnostic:?}"
            );
        }
        let shown = render(diagnostic, &source, false);
        assert!(
            !shown.contains(|c: char| c.is_control() && c != '\n'),
            "{shown:?}"
        );
    }
}

/// Compiles a text for a machine; says whether that was accepted.
pub fn check_compile(text: &str, machine: &FakeTarget) -> bool {
    let parsed = parse_with(
        text,
        Options {
            params: Some(&machine.params),
            ..Options::default()
        },
    );
    if !parsed.is_ok() {
        check_diagnostics(&parsed.diagnostics, text);
        return false;
    }
    let compiled = within(
        text.len() + MAX_EXPANDED_BYTES / MEMORY_RATIO,
        MEMORY_RATIO,
        || compile(&parsed.program, machine),
    );
    check_diagnostics(&compiled.diagnostics, text);
    let wrong = compiled.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(
        compiled.script.is_none(),
        wrong,
        "{:?}",
        compiled.diagnostics
    );
    let Some(script) = compiled.script else {
        return false;
    };
    check_script(&script);
    true
}

fn check_script(script: &Script) {
    for program in &script.module.programs {
        let named = |name: &str| program.subprograms.iter().any(|sub| sub.name == name);
        for code in
            std::iter::once(&program.code).chain(program.subprograms.iter().map(|sub| &sub.code))
        {
            check_code(code);
            for reference in code
                .lines()
                .iter()
                .filter_map(|line| line.reference.as_ref())
            {
                let known = match reference {
                    Reference::Map(name) | Reference::Data(name) => {
                        script.module.maps.iter().any(|map| map.name == *name)
                    }
                    Reference::Call(name) | Reference::Function(name) => named(name),
                };
                assert!(known, "{reference:?}");
            }
        }
    }
    for action in &script.actions {
        assert!(
            action
                .fields
                .iter()
                .all(|field| field.offset + field.ty.size() <= action.size),
            "{action:?}"
        );
    }
    assert!(
        script
            .probes
            .iter()
            .all(|probe| probe.program < script.module.programs.len())
    );
}

/// Each jump goes to an instruction, none leaves the code, the last instruction does not fall out of it, and the bytes
/// read back as what they were made of.
fn check_code(code: &Code) {
    assert!(!code.is_empty() && code.slots() <= MAX_SLOTS);
    let again = Code::decode(&code.to_bytes()).unwrap();
    assert_eq!(again.slots(), code.slots());
    for (line, read) in code.lines().iter().zip(again.lines()) {
        assert_eq!(line.slot, read.slot);
        assert_eq!(line.target.is_some(), read.target.is_some(), "{:?}", line);
    }
    let text = Listing::new(code).to_string();
    assert!(text.lines().count() >= code.lines().len());
    let last = code.lines().last().map(|line| line.insn);
    assert!(
        matches!(
            last,
            Some(bpf_insn::Insn::Exit | bpf_insn::Insn::Jump { .. })
        ),
        "{last:?}"
    );
}
