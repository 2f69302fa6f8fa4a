//! `#ifdef`, `#ifndef`, `#else`, `#endif`: selects the items of a script that are compiled.
//!
//! Scripts use these to test the names that bpftrace defines (`BPFTRACE_HAVE_BTF`), and constants
//! of their own. Conditions that need C's preprocessor (`#if` with an expression) are rejected.

use std::collections::HashSet;

use crate::ast::{Item, ItemKind, Program, Span};
use crate::diag::{Diagnostic, Sink};

/// A condition whose `#endif` has not been reached.
struct OpenCondition {
    span: Span,
    /// True if the enclosing conditions hold.
    outer: bool,
    /// True if the current branch holds, ignoring `outer`.
    holds: bool,
    /// True after the `#else`.
    turned: bool,
}

/// Removes the conditions, and the items in branches that don't hold. `defined` holds the
/// predefined names.
pub fn apply(program: &mut Program, defined: &[&str]) -> Vec<Diagnostic> {
    let mut sink = Sink::default();
    let mut names: HashSet<String> = defined.iter().map(|name| (*name).to_owned()).collect();
    let mut open: Vec<OpenCondition> = Vec::new();
    program
        .items
        .retain(|item| keeps(item, &mut names, &mut open, &mut sink));
    for condition in open {
        sink.push(Diagnostic::error(
            "this condition has no `#endif`",
            condition.span,
        ));
    }
    sink.finish()
}

/// Returns whether all open conditions hold.
fn counts(open: &[OpenCondition]) -> bool {
    open.last()
        .is_none_or(|condition| condition.outer && condition.holds)
}

fn keeps(
    item: &Item,
    names: &mut HashSet<String>,
    open: &mut Vec<OpenCondition>,
    sink: &mut Sink,
) -> bool {
    let counts = counts(open);
    match &item.kind {
        ItemKind::Directive(line) => {
            directive(line, item.span, names, open, sink);
            false
        }
        ItemKind::Define(define) if counts => {
            names.insert(define.name.text.clone());
            true
        }
        _ => counts,
    }
}

fn directive(
    line: &str,
    span: Span,
    names: &mut HashSet<String>,
    open: &mut Vec<OpenCondition>,
    sink: &mut Sink,
) {
    let mut words = line.split_whitespace();
    let (keyword, name) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let counts = counts(open);
    match keyword {
        "ifdef" => open.push(OpenCondition {
            span,
            outer: counts,
            holds: names.contains(name),
            turned: false,
        }),
        "ifndef" => open.push(OpenCondition {
            span,
            outer: counts,
            holds: !names.contains(name),
            turned: false,
        }),
        "else" => match open.last_mut().filter(|condition| !condition.turned) {
            Some(condition) => (condition.holds, condition.turned) = (!condition.holds, true),
            None => sink.push(Diagnostic::error(
                "there is no condition before this `#else`",
                span,
            )),
        },
        "endif" => {
            if open.pop().is_none() {
                sink.push(Diagnostic::error(
                    "there is no condition before this `#endif`",
                    span,
                ));
            }
        }
        "undef" if counts => _ = names.remove(name),
        "undef" | "pragma" => {}
        "if" | "elif" => {
            let hint = "`#ifdef` and `#ifndef` are supported";
            sink.push(
                Diagnostic::error(format!("`#{keyword}` isn't supported"), span).with_hint(hint),
            );
            if keyword == "if" {
                open.push(OpenCondition {
                    span,
                    outer: counts,
                    holds: true,
                    turned: false,
                });
            }
        }
        // Errors in an inactive branch are ignored.
        _ if !counts => {}
        _ => sink.push(Diagnostic::error(
            format!("`#{keyword}` isn't supported"),
            span,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, defined: &[&str], tree: &str, mistakes: &[&str]) {
        let mut program = crate::parse(text).program;
        let found = apply(&mut program, defined);
        assert_eq!(crate::dump::dump(&program).trim().replace('\n', " "), tree);
        assert_eq!(
            found
                .iter()
                .map(|diagnostic| diagnostic.message.as_str())
                .collect::<Vec<_>>(),
            mistakes
        );
    }

    #[test]
    fn items_that_do_not_count_are_taken_out() {
        let text = "#ifndef A\n#include <a.h>\n#define B 1\n#else\n#include <b.h>\n#endif\n#ifdef B\n#include <c.h>\n#endif";
        check(
            text,
            &[],
            "(include <a.h>) (define B 1) (include <c.h>)",
            &[],
        );
        check(text, &["A"], "(include <b.h>)", &[]);
        check(
            "#ifdef A\n#ifndef A\n#include <a.h>\n#endif\n#include <b.h>\n#endif",
            &[],
            "",
            &[],
        );
    }

    #[test]
    fn mistakes() {
        check(
            "#endif",
            &[],
            "",
            &["there is no condition before this `#endif`"],
        );
        check(
            "#else",
            &[],
            "",
            &["there is no condition before this `#else`"],
        );
        check("#ifdef A", &[], "", &["this condition has no `#endif`"]);
        check("#if A > 1\n#endif", &[], "", &["`#if` isn't supported"]);
        check("#error no", &[], "", &["`#error` isn't supported"]);
    }
}
