//! Tests of the formatter's style, and of comments being kept.

use bt_lang::fmt::format;
use bt_lang::parse;

fn check(text: &str, expected: &str) {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    assert_eq!(format(&parsed.program, text), expected);
}

#[test]
fn style() {
    check(
        "#include <a.h>\n#define N 1\nstruct a{int x;char*y;}\nk:f,kr:g/pid==1/{@x[1,2]=count();if($a){f();}else{g()}}",
        "#include <a.h>\n#define N 1\n\nstruct a {\n  int x;\n  char *y;\n};\n\nk:f,\nkr:g\n/pid == 1/ {\n  @x[1, 2] = count();\n  \
         if ($a) {\n    f();\n  } else {\n    g();\n  }\n}\n",
    );
}

#[test]
fn only_needed_parentheses_are_kept() {
    check(
        "BEGIN{$x=((1)+(2*3))*(-(4));}",
        "BEGIN {\n  $x = (1 + 2 * 3) * -4;\n}\n",
    );
    check(
        "BEGIN{$x=- -$y - (-1 - 2);}",
        "BEGIN {\n  $x = - -$y - (-1 - 2);\n}\n",
    );
    check(
        "BEGIN{$x=(uint8*)(($y));}",
        "BEGIN {\n  $x = (uint8 *)$y;\n}\n",
    );
}

#[test]
fn comments_stay() {
    check(
        "// head\n\nBEGIN { // opens\n  // own\n  f(1, /* in */ 2); // behind\n\n  /* last */\n} // end\n// tail\n",
        "// head\n\nBEGIN { // opens\n  // own\n  f(1, 2); /* in */ // behind\n\n  /* last */\n} // end\n// tail\n",
    );
}

/// Regression test for a finding of the fuzz target `script`.
#[test]
fn a_line_that_continues_nothing() {
    check("#pragma x\\", "#pragma x\n");
    check(
        "#define A 1 \\\r\n + 2\r\n#undef B",
        "#define A 1   + 2\n#undef B\n",
    );
}

#[test]
fn a_statement_stays_one() {
    check(
        "macro m() { if (1) { 2 }; }",
        "macro m() {\n  if (1) {\n    2;\n  };\n}\n",
    );
    check(
        "BEGIN { if (1) { }; *$x; }",
        "BEGIN {\n  if (1) {\n  };\n  *$x;\n}\n",
    );
}
