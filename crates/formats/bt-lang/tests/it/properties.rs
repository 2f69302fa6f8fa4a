//! Properties of every text and of every tree.

use std::fmt::Write as _;

use crate::common::Chance;
use bt_lang::dump::dump;
use bt_lang::fmt::format;
use bt_lang::parse;
use bt_lang::render::{Source, render};
use proptest::prelude::*;

/// Parses, and checks properties of any input. Spans lie within the text, in order and on character
/// boundaries. A tree without errors can be formatted, and parses to the same tree again.
fn anything(text: &str) {
    let parsed = parse(text);
    let source = Source::new("x.bt", text);
    for diagnostic in &parsed.diagnostics {
        let spans = diagnostic
            .labels
            .iter()
            .map(|label| label.0)
            .chain([diagnostic.span]);
        for span in spans {
            assert!(
                span.start <= span.end && span.end as usize <= text.len(),
                "{diagnostic:?}"
            );
            assert!(
                text.get(span.start as usize..span.end as usize).is_some(),
                "{diagnostic:?}"
            );
        }
        assert!(!render(diagnostic, &source, true).is_empty());
    }
    let tree = dump(&parsed.program);
    let formatted = format(&parsed.program, text);
    if parsed.is_ok() {
        assert!(
            !tree.contains("(error)"),
            "an error node without an error: {tree}"
        );
        let again = parse(&formatted);
        assert_eq!(dump(&again.program), tree, "{formatted}");
        assert!(again.is_ok(), "{formatted}\n{:?}", again.diagnostics);
        assert_eq!(format(&again.program, &formatted), formatted);
    }
}

const WORDS: [&str; 64] = [
    "BEGIN",
    "kprobe:f",
    "uprobe:/a/b:c",
    "{",
    "}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ";",
    ",",
    "/",
    "/",
    "$x",
    "@m",
    "@",
    "$1",
    "$#",
    "1",
    "0x",
    "5s",
    "\"a\"",
    "\"",
    "'c'",
    "if",
    "else",
    "while",
    "for",
    "unroll",
    "let",
    "return",
    "macro",
    "fn",
    "struct",
    "enum",
    "union",
    "s",
    "config",
    "import",
    "typedef",
    "sizeof",
    "offsetof",
    "typeof",
    "comptime",
    "=",
    "+=",
    "++",
    "--",
    "->",
    ".",
    "..",
    ":",
    "?",
    "*",
    "&",
    "-",
    "#define",
    "#include",
    "\n",
    "// c\n",
    "/* c */",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formatted_trees_read_as_themselves(seed: u64) {
        let program = Chance::new(seed).program(5);
        let text = format(&program, "");
        let parsed = parse(&text);
        prop_assert_eq!(dump(&parsed.program), dump(&program), "{}", text);
        prop_assert!(parsed.diagnostics.is_empty(), "{:?} in {}", parsed.diagnostics, text);
        prop_assert_eq!(format(&parsed.program, &text), text);
    }

    #[test]
    fn random_tokens(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..60), blanks: bool) {
        anything(&words.join(if blanks { " " } else { "" }));
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        anything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_text(text in "\\PC{0,80}") {
        anything(&text);
    }

    #[test]
    fn damaged_scripts(seed: u64, cut in 0_usize..2000, length in 0_usize..30, put in prop::sample::select(&WORDS[..])) {
        let mut text = format(&Chance::new(seed).program(4), "");
        let from = text.floor_char_boundary(cut.min(text.len()));
        let to = text.floor_char_boundary((from + length).min(text.len()));
        text.replace_range(from..to, put);
        anything(&text);
    }
}

#[test]
fn deep_nesting_is_reported() {
    let openers = [
        "(",
        "{",
        "[",
        "-",
        "!",
        "*",
        "@m[",
        "f(",
        "a[",
        "if (",
        "if {",
        "sizeof(",
        "(uint8)",
        "(typeof(",
        "$x ? ",
        "1 ? 2 : ",
        "comptime ",
        "if a {} else ",
        "while (",
        "(a=",
        "(1, ",
        "a + ",
        "a.b + (",
        "typeof(",
        "(a[(",
        "let $x : typeof(",
    ];
    for opener in openers {
        let count = if opener == "(" { 100_000 } else { 10_000 };
        let text = format!("BEGIN {{ $x = {} }}", opener.repeat(count));
        let parsed = parse(&text);
        assert!(!parsed.is_ok(), "{opener}");
        let statements = parse(&format!("BEGIN {{ {} }}", opener.repeat(count)));
        assert!(!dump(&statements.program).is_empty());
    }
}

#[test]
fn long_chains_are_reported() {
    let count = 20_000;
    let chains = [
        " + 1", ".b", "->b", "[1]", ".0", "++", " || 1", " ? 1 : 2", "*", " && $x.b",
    ];
    for chain in chains {
        let parsed = parse(&format!("BEGIN {{ $x = $a{}; }}", chain.repeat(count)));
        assert!(!parsed.is_ok(), "{chain}");
        let mixed = format!(
            "{}$a{}",
            "(".repeat(90),
            format!("{})", ".b".repeat(200)).repeat(90)
        );
        assert!(!parse(&format!("BEGIN {{ $x = {mixed}; }}")).is_ok());
    }
    for ty in ["*", "[1]"] {
        assert!(
            !parse(&format!("BEGIN {{ $x = (uint8{})$a; }}", ty.repeat(count))).is_ok(),
            "{ty}"
        );
        assert!(
            !parse(&format!("struct a {{ int {}x; }}", "*".repeat(count))).is_ok(),
            "{ty}"
        );
        assert!(
            !parse(&format!("struct a {{ int x{}; }}", "[1]".repeat(count))).is_ok(),
            "{ty}"
        );
    }
    assert!(!parse(&"struct a { ".repeat(count)).is_ok());
    assert!(!parse(&format!("struct a {{ void {}", "(*".repeat(count))).is_ok());
}

#[test]
fn wide_is_not_deep() {
    let mut text = "BEGIN { ".to_owned();
    for at in 0..20_000 {
        let _ = write!(text, "if ($a == {at}) {{ @x[{at}, \"b\"] = {at}; }} else ");
    }
    text.push_str("{ print(1); } f(1");
    text.push_str(&", 1".repeat(20_000));
    text.push_str("); }");
    let parsed = parse(&text);
    assert_eq!(parsed.diagnostics, []);
}
