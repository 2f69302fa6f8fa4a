//! Tests of scripts after macro expansion.

use std::fmt::Write as _;

use bt_lang::ast::Program;
use bt_lang::dump::dump;
use bt_lang::{macros, parse};

fn expanded(text: &str) -> (Program, Vec<String>) {
    let mut parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    let diagnostics = macros::expand(&mut parsed.program);
    (
        parsed.program,
        diagnostics
            .into_iter()
            .map(|diagnostic| diagnostic.message)
            .collect(),
    )
}

/// Checks the body of the only probe.
fn check(text: &str, body: &str) {
    let (program, mistakes) = expanded(text);
    assert_eq!(mistakes, Vec::<String>::new(), "{text}");
    let tree: String = dump(&program)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(tree, format!("(probe (begin) (block {body}))"), "{text}");
}

fn check_mistake(text: &str, mistake: &str) {
    let (_, mistakes) = expanded(text);
    assert_eq!(mistakes, [mistake], "{text}");
}

#[test]
fn parameters_are_put_in() {
    check(
        "macro m($x) { $x += 1; } begin { m($a); }",
        "(block (+= $a 1))",
    );
    check(
        "macro m(@x) { @x[1] = 2 } begin { m(@a); }",
        "(block (= @a[1] 2))",
    );
    check(
        "macro m(x) { x + 1 } begin { $b = m(2 * 3); }",
        "(= $b (block (value (+ (* 2 3) 1))))",
    );
    check(
        "macro m(x) { x } begin { $b = m($a); }",
        "(= $b (block (value (block (value $a)))))",
    );
    check(
        "macro m() { 1 } begin { $b = m; }",
        "(= $b (block (value 1)))",
    );
    check(
        "macro m(@x) { for ($k : @x) { } } begin { m(@y); }",
        "(block (for $$m$1$k @y (do)))",
    );
}

#[test]
fn variables_of_a_macro_are_its_own() {
    check(
        "macro m(x) { let $y = x; $y } begin { $y = m($y); }",
        "(= $y (block (let $$m$1$y (block (value $y))) (value $$m$1$y)))",
    );
    // Each expansion has its own variable, even nested ones of the same macro.
    check(
        "macro m(x) { $y = 1; x + $y } begin { $a = m(m(2)); }",
        "(= $a (block (= $$m$2$y 1) (value (+ (block (= $$m$1$y 1) (value (+ 2 $$m$1$y))) $$m$2$y))))",
    );
}

#[test]
fn macros_call_macros() {
    check(
        "macro a(x) { x + 1 } macro b(y) { y + a(y) } begin { $a = b(3); }",
        "(= $a (block (value (+ 3 (block (value (+ 3 1)))))))",
    );
    check(
        "macro p() { 2 } macro q(p) { p } begin { $a = q(1); }",
        "(= $a (block (value 1)))",
    );
}

#[test]
fn types_are_parameters() {
    check(
        "macro s(a) { sizeof(a[2]) + sizeof(a*) + sizeof(a) } begin { s(typeof(struct F)); }",
        "(block (+ (+ (sizeof (type (array (struct F) 2))) (sizeof (type (ptr (struct F))))) (sizeof (type (struct F)))))",
    );
    check(
        "macro c(a) { (a*)-1 } begin { c(uint8); }",
        "(block (cast (ptr uint8) (- 1)))",
    );
    check(
        "macro o(s, f) { offsetof(struct s, f) } begin { o(t, a.b); }",
        "(block (offsetof (type (struct t)) a b))",
    );
}

#[test]
fn the_macro_that_fits_is_taken() {
    let both = "macro m(@x) { 1 } macro m(x) { 2 }";
    check(
        &format!("{both} begin {{ m(@a); m($a); m(@a[1]); }}"),
        "(block 1) (block 2) (block 2)",
    );
    check_mistake(
        "macro m(x) { 2 } macro m($x) { 1 } begin { }",
        "there is a macro `m` with such parameters already",
    );
    check_mistake(
        "macro m(@x) { } begin { m($a); }",
        "`m` takes a map without a key here, for `@x`",
    );
    check_mistake(
        "macro m(x) { } begin { m(1, 2); }",
        "`m` takes 1 argument, and here are 2",
    );
    check_mistake(
        "macro m(x) { } begin { m; }",
        "`m` takes 1 argument, and here are 0",
    );
}

#[test]
fn mistakes_within_macros() {
    check_mistake(
        "macro m() { @a = 1 } begin { m(); }",
        "the macro uses the map `@a`, which isn't among its parameters",
    );
    check_mistake(
        "macro a() { b() } macro b() { a() } begin { a(); }",
        "a macro can't call itself: a > b > a",
    );
    check_mistake(
        "macro m($x) { let $x = 1; } begin { m($a); }",
        "`$x` is a parameter of the macro, and can't be declared again",
    );
    check_mistake(
        "begin { f(typeof(uint8)); }",
        "only a macro takes a type as an argument",
    );
    check_mistake(
        "macro m(x) { sizeof(struct x) } begin { m(1); }",
        "the macro's argument is not a type that fits here",
    );
}

#[test]
fn macros_cannot_fill_the_memory() {
    let too_much = "the macros of this script expand too far: too deeply nested, or too long";
    let mut doubling = "macro m0(x) { x + x }".to_owned();
    for at in 1..60 {
        let _ = write!(doubling, "macro m{at}(x) {{ m{}(x + x) }}", at - 1);
    }
    let (_, mistakes) = expanded(&format!("{doubling} begin {{ m59(1); }}"));
    assert!(
        mistakes.iter().any(|mistake| mistake == too_much),
        "{mistakes:?}"
    );

    let mut calls = "macro c0() { 1 }".to_owned();
    for at in 1..60 {
        let _ = write!(calls, "macro c{at}() {{ c{0}() + c{0}() }}", at - 1);
    }
    let (_, mistakes) = expanded(&format!("{calls} begin {{ c59(); }}"));
    assert!(
        mistakes.iter().any(|mistake| mistake == too_much),
        "{mistakes:?}"
    );

    let mut deep = "macro d0() { 1 }".to_owned();
    for at in 1..2000 {
        let call = format!("{}d{}(){}", "(1 + ".repeat(80), at - 1, ")".repeat(80));
        let _ = write!(deep, "macro d{at}() {{ {call} }}");
    }
    let (_, mistakes) = expanded(&format!("{deep} begin {{ d1999(); }}"));
    assert!(
        mistakes.iter().any(|mistake| mistake == too_much),
        "{mistakes:?}"
    );
}
