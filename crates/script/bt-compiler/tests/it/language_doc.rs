//! Comparison of `docs/language.md` with the compiler's tables.

use std::fmt::Write as _;
use std::path::Path;

use bt_compiler::language::{Word, WordKind, words};

/// Environment variable; if it is 1, the test writes the document's tables instead of comparing
/// them.
const UPDATE: &str = "DPTRACE_UPDATE_DOCS";
/// Line that the tables follow.
const MARK: &str = "<!-- From here on: made from the compiler's tables, by crates/script/bt-compiler/tests/it/language_doc.rs. -->\n";

fn tables() -> String {
    let mut text = String::new();
    let kinds = [
        (WordKind::Builtin, "Builtins", "name", "what it is"),
        (WordKind::Function, "Functions", "form", "what it does"),
        (
            WordKind::Aggregation,
            "What a map gathers",
            "form",
            "what it holds",
        ),
        (
            WordKind::Unsupported,
            "Functions that are refused",
            "name",
            "in its place",
        ),
    ];
    for (kind, title, name, doc) in kinds {
        writeln!(text, "\n## {title}\n\n| {name} | {doc} |\n|---|---|").unwrap();
        for Word { form, doc, .. } in words().into_iter().filter(|word| word.kind == kind) {
            writeln!(text, "| `{form}` | {doc} |").unwrap();
        }
    }
    text
}

#[test]
fn the_document_has_the_compilers_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/language.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (head, reported) = document.split_once(MARK).unwrap();
    let expected = tables();
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        std::fs::write(&path, format!("{head}{MARK}{expected}")).unwrap();
        return;
    }
    assert!(
        reported == expected,
        "docs/language.md is not what the tables say: {UPDATE}=1 cargo test -p dptrace-bt-compiler"
    );
}

#[test]
fn every_name_is_there_once() {
    let mut names: Vec<_> = words()
        .into_iter()
        .map(|word| (word.kind, word.form))
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(all > 100, "{all}");
}
