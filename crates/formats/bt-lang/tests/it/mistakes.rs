//! Tests of diagnostics: every error is reported at its position.

use bt_lang::ast::ItemKind;
use bt_lang::{Diagnostic, parse};

/// Checks all diagnostics: the text at the span, and the message.
fn check(text: &str, expected: &[(&str, &str)]) {
    let parsed = parse(text);
    let reported: Vec<(&str, &str)> = parsed
        .diagnostics
        .iter()
        .map(|diagnostic| (diagnostic.span.text(text), diagnostic.message.as_str()))
        .collect();
    assert_eq!(reported, expected, "{text}");
}

fn hints(text: &str) -> Vec<String> {
    parse(text)
        .diagnostics
        .into_iter()
        .flat_map(|diagnostic: Diagnostic| diagnostic.hints)
        .collect()
}

#[test]
fn all_mistakes_in_one_go() {
    let text = "k:f {\n  $x = ;\n  $y = 1\n  f(1, ;\n  print(2);\n}\nk:g { 08; }\nkrobe:h { }\n";
    check(
        text,
        &[
            (";", "expected an expression, found `;`"),
            ("1", "expected `;` after this statement"),
            (";", "expected an expression, found `;`"),
            (
                "08",
                "a number that begins with 0 is octal, and has no digit 8 or 9",
            ),
            ("krobe", "there is no kind of probe `krobe`"),
        ],
    );
    assert_eq!(hints(text), ["did you mean `kprobe` or `uprobe`?"]);
    // Valid probes are kept.
    let probes = parse(text).program.items;
    assert_eq!(
        probes
            .iter()
            .filter(|item| matches!(item.kind, ItemKind::Probe(_)))
            .count(),
        3
    );
}

#[test]
fn a_missing_brace_spoils_one_probe() {
    let text = "k:f {\n  if (1) {\n  $x = 1;\n}\nk:g {\n  $y = ;\n}\n";
    check(
        text,
        &[
            ("k", "expected `}` to end a block, found `k`"),
            (";", "expected an expression, found `;`"),
        ],
    );
}

#[test]
fn statements() {
    check(
        "k:f { $x = 1 $y = 2; }",
        &[("1", "expected `;` after this statement")],
    );
    check(
        "k:f { 1 = 2; }",
        &[(
            "1",
            "only variables (`$name`) and maps (`@name`) can be set",
        )],
    );
    check(
        "k:f { $x.y = 2; }",
        &[(
            "$x.y",
            "parts of a value can't be set, only variables and maps",
        )],
    );
    check(
        "k:f { 1++; }",
        &[("1", "`++` needs a variable (`$name`) or a map (`@name`)")],
    );
    check(
        "k:f { if (1) $x = 2; }",
        &[("$x", "expected `{` to open a block, found `$x`")],
    );
    check(
        "k:f { let @x; }",
        &[(
            "@x",
            "a map is declared outside of probes, and a map that isn't declared needs no `let`",
        )],
    );
    check(
        "k:f { for ($x : 5) { } f(;  }",
        &[
            ("5", "a `for` walks a map or a range"),
            (";", "expected an expression, found `;`"),
        ],
    );
    check(
        "k:f { $x = (a=1, a=2); }",
        &[("a", "there are two fields `a` in this record")],
    );
    check("k:f { ` }", &[("`", "expected an expression, found ```")]);
    check(
        "k:f { \"a\n }",
        &[(
            "\"a",
            "there is no `\"` at the end of this text, on its line",
        )],
    );
}

#[test]
fn attach_points() {
    check(
        "kretprobe:f+4 { }",
        &[("f+4", "`kretprobe` takes no offset")],
    );
    check(
        "u:/bin/sh { }",
        &[("/bin/sh", "this is a file, and there is no function")],
    );
    check(
        "k:f /pid = 1/ { $x = ; }",
        &[
            ("=", "a predicate sets nothing"),
            (";", "expected an expression, found `;`"),
        ],
    );
    check(
        "t:a { }",
        &[("t:a", "`t` takes 2 parts after it, and 1 is found")],
    );
    check("i:x:1 { }", &[("x", "`x` isn't a unit of time")]);
    check("i:s:0 { }", &[("0", "a timer's count is at least 1")]);
    check("i:5 { }", &[("5", "the shortest interval is 1us")]);
    check(
        "w:1:2:z { }",
        &[("z", "a watchpoint's mode is made of `r`, `w` and `x`")],
    );
    assert_eq!(
        hints("t:a { }"),
        ["it looks like `tracepoint:category:event`"]
    );
}

#[test]
fn items() {
    check(
        "struct a { int x int y; }",
        &[("int", "expected `;` after a field, found `int`")],
    );
    check(
        "struct a { int x __attribute__((packed)); }",
        &[(
            "__attribute__((packed))",
            "a field's layout can't be set by an attribute",
        )],
    );
    check(
        "macro m($a, $a) { }",
        &[("$a", "there are two parameters `$a`")],
    );
    check("let $x = 1;", &[("$x", "a variable lives within a probe")]);
    check(
        "config = { a 1 }",
        &[("1", "expected `=` and the setting's value, found `1`")],
    );
}

/// Regression test for a finding of the fuzz target `script`.
#[test]
fn a_missing_semicolon_after_a_wide_character() {
    check(
        "k:f { \"よ\n}",
        &[(
            "\"よ",
            "there is no `\"` at the end of this text, on its line",
        )],
    );
    check(
        "import \"よ\nk:f { }",
        &[
            (
                "\"よ",
                "there is no `\"` at the end of this text, on its line",
            ),
            ("よ", "expected `;` after an import"),
        ],
    );
}

#[test]
fn an_endless_number_of_mistakes_is_cut() {
    let reported = parse(&"k:f { ; = ; }\n".repeat(5000)).diagnostics;
    assert_eq!(reported.len(), 101);
    assert_eq!(
        reported[100].message,
        "more than 100 errors; the rest are not reported"
    );
}
