//! Tests of the parser's tree for each part of the language: `check(text, tree)`.

use bt_lang::ast::{ForIter, StmtKind};
use bt_lang::dump::dump;
use bt_lang::{Options, parse, parse_expression, parse_statements, parse_with};

fn tree(text: &str) -> String {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    dump(&parsed.program)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Checks the tree of a script.
fn check(text: &str, expected: &str) {
    assert_eq!(tree(text), expected, "{text}");
}

/// Checks the tree of a probe's statements.
fn check_body(body: &str, expected: &str) {
    check(
        &format!("begin {{ {body} }}"),
        &format!("(probe (begin) (block {expected}))"),
    );
}

/// Checks the tree of an expression.
fn check_expr(expr: &str, expected: &str) {
    check_body(&format!("$v = {expr};"), &format!("(= $v {expected})"));
}

/// Checks the tree of an attach point.
fn check_point(point: &str, expected: &str) {
    check(
        &format!("{point} {{ }}"),
        &format!("(probe {expected} (block))"),
    );
}

#[test]
fn precedence_is_that_of_c() {
    check_expr("1 + 2 * 3 - 4", "(- (+ 1 (* 2 3)) 4)");
    check_expr("1 | 2 ^ 3 & 4 == 5", "(| 1 (^ 2 (& 3 (== 4 5))))");
    check_expr("a || b && c", "(|| a (&& b c))");
    check_expr("1 << 2 + 3 < 4", "(< (<< 1 (+ 2 3)) 4)");
    check_expr("a ? b : c ? d : e", "(? a b (? c d e))");
    check_expr("$a ?: 1", "(?: $a 1)");
    check_expr("-$a.b", "(- (. $a b))");
    check_expr("*$p->x[1]", "(* (index (-> $p x) 1))");
    check_expr("!$a++", "(! (post++ $a))");
    check_expr("(1 + 2) * 3", "(* (+ 1 2) 3)");
    check_expr("~-!*$x", "(~ (- (! (* $x))))");
    check_expr("&$x == &@m", "(== (& $x) (& @m))");
}

#[test]
fn literals() {
    check_expr("0x1F", "31");
    check_expr("1_000e3us", "1000000000ns");
    check_expr("5ull", "5ull");
    check_expr("'a'", "97");
    check_expr(r#""a\n\x41\101\"""#, r#""a\nAA\"""#);
    check_expr("true", "true");
    check_expr("(1, \"a\", $b)", "(tuple 1 \"a\" $b)");
    check_expr("(1,)", "(tuple 1)");
    check_expr("()", "(tuple)");
    check_expr("(a=1, b=(c=2))", "(record a=1 b=(record c=2))");
    check_expr("$1 + $#", "(+ $1 $#)");
}

#[test]
fn casts_and_groups() {
    check_expr("(struct foo *)$x", "(cast (ptr (struct foo)) $x)");
    check_expr("(foo*)arg0", "(cast (ptr foo) arg0)");
    check_expr("(uint8)-1", "(cast uint8 (- 1))");
    check_expr("(int8[4])$x", "(cast (array int8 4) $x)");
    check_expr("(int8[])$x", "(cast (array int8) $x)");
    check_expr("(enum e)1", "(cast (enum e) 1)");
    check_expr("(typeof($a))$b", "(cast (typeof $a) $b)");
    check_expr("(unsigned long int)$b", "(cast \"unsigned long\" $b)");
    check_expr("(int32*[4]*)$b", "(cast (ptr (array (ptr int32) 4)) $b)");
    check_expr("(pid) - 1", "(- pid 1)");
    check_expr("(foo) - 1", "(cast foo (- 1))");
    check_expr(
        "((struct foo *)$x)->y.z",
        "(. (-> (cast (ptr (struct foo)) $x) y) z)",
    );
    check_expr("(uint64)$a / 2", "(/ (cast uint64 $a) 2)");
}

#[test]
fn types_or_expressions() {
    check_expr("sizeof(struct foo)", "(sizeof (type (struct foo)))");
    check_expr("sizeof(foo)", "(sizeof foo)");
    check_expr("sizeof(foo[2])", "(sizeof (type (array foo 2)))");
    check_expr("sizeof((foo[2]))", "(sizeof (index foo 2))");
    check_expr("sizeof($x->y)", "(sizeof (-> $x y))");
    check_expr(
        "offsetof(struct foo, a.b)",
        "(offsetof (type (struct foo)) a b)",
    );
    check_expr("offsetof(*curtask, comm)", "(offsetof (* curtask) comm)");
    check_expr("typeinfo(uint8)", "(typeinfo (type uint8))");
    check_expr(
        "m(typeof(uint8*))",
        "(call m (type-arg (type (ptr uint8))))",
    );
}

#[test]
fn maps_and_fields() {
    check_expr("@", "@");
    check_expr("@m[1, \"a\"][2].3", "(. (index @m[1 \"a\"] 2) 3)");
    check_expr("$kv.1.0", "(. (. $kv 1) 0)");
    check_expr("args->filename", "(-> args filename)");
    check_expr("$x.struct", "(. $x struct)");
    check_expr("(@m)[1]", "@m[1]".replace("@m[1]", "(index @m 1)").as_str());
}

#[test]
fn statements() {
    check_body(
        "@x = count(); @[pid] = 1;",
        "(= @x (call count)) (= @[pid] 1)",
    );
    check_body(
        "$x += 1; @m[1] <<= 2; $x--",
        "(+= $x 1) (<<= @m[1] 2) (post-- $x)",
    );
    check_body(
        "let $x; let $y : uint8 = 1;",
        "(let $x) (let $y (type uint8) 1)",
    );
    check_body(
        "_ = f(1); delete(@x[1]); return",
        "(discard (call f 1)) (call delete @x[1]) (return)",
    );
    check_body("while ($x < 2) { break; }", "(while (< $x 2) (do (break)))");
    check_body("unroll(5) { continue }", "(unroll 5 (do (continue)))");
    check_body(
        "for ($kv : @m) { print($kv.0); }",
        "(for $kv @m (do (call print (. $kv 0))))",
    );
    check_body("for $i : 0..10 { }", "(for $i (range 0 10) (do))");
    check_body(
        "if ($x) { 1; } else if $y { 2; } else { 3; }",
        "(if $x (then 1) $y (then 2) (else 3))",
    );
    check_body("if $x { 1 } else { 2 }", "(if $x (then 1) (else 2))");
    check_expr(
        "if $x { 1 } else { $y = 2; $y }",
        "(if $x (then (value 1)) (else (= $y 2) (value $y)))",
    );
    check_expr("{ $y = 2; $y }", "(block (= $y 2) (value $y))");
    check_body(
        "import \"x.bpf.c\"; comptime 1;",
        "(import \"x.bpf.c\") (comptime 1)",
    );
}

#[test]
fn predicates_and_division() {
    check(
        "k:f /pid == 1 / 2/ { }",
        "(probe (kprobe (function \"f\")) (if (== pid (/ 1 2))) (block))",
    );
    check(
        "BEGIN /* c */ /1/{ 4/2; }",
        "(probe (begin) (if 1) (block (/ 4 2)))",
    );
    check(
        "k:f/@x[1]/{ }",
        "(probe (kprobe (function \"f\")) (if @x[1]) (block))",
    );
}

#[test]
fn attach_points() {
    check_point("BEGIN", "(begin)");
    check_point(
        "uprobe:/bin/a:f+0x10",
        "(uprobe (target \"/bin/a\") (function \"f\") (offset 16))",
    );
    check_point("u:/bin/a:0x40", "(uprobe (target \"/bin/a\") (address 64))");
    check_point(
        "ur:libc:\"a b\"",
        "(uretprobe (target \"libc\") (function \"a b\"))",
    );
    check_point(
        "uprobe:/bin/a:cpp:\"f(int, int)\"",
        "(uprobe (target \"/bin/a\") (lang \"cpp\") (function \"f(int, int)\"))",
    );
    check_point(
        "uprobe:/a\\:b:f",
        "(uprobe (target \"/a:b\") (function \"f\"))",
    );
    check_point(
        "uprobe:/a@b.c:3:4",
        "(uprobe (target \"/a\") (source \"b.c\") (line 3) (column 4))",
    );
    check_point(
        "usdt:__EXE__:nvmf_tgt_state",
        "(usdt (target \"__EXE__\") (name \"nvmf_tgt_state\"))",
    );
    check_point(
        "U:/a:p:n*",
        "(usdt (target \"/a\") (provider \"p\") (name~ \"n*\"))",
    );
    check_point(
        "t:sched:sched_*",
        "(tracepoint (category \"sched\") (name~ \"sched_*\"))",
    );
    check_point("rt:sys_enter", "(rawtracepoint (name \"sys_enter\"))");
    check_point(
        "kfunc:vmlinux:f",
        "(fentry (target \"vmlinux\") (function \"f\"))",
    );
    check_point("i:s:1", "(interval (unit \"s\") (count 1))");
    check_point("interval:10ms", "(interval (count 10000000))");
    check_point("p:hz:99", "(profile (unit \"hz\") (count 99))");
    check_point("s:faults:", "(software (event \"faults\"))");
    check_point(
        "w:f+arg0:8:rw",
        "(watchpoint (place \"f+arg0\") (mode \"rw\") (length 8))",
    );
    check_point("it:task", "(iter (object \"task\"))");
    check_point("mine=k:f", "(kprobe (as mine) (function \"f\"))");
    check_point(
        "self:signal:SIGUSR1",
        "(self (group \"signal\") (name \"SIGUSR1\"))",
    );
    check_point(
        "k:f,\nkr:g,",
        "(kprobe (function \"f\")) (kretprobe (function \"g\"))",
    );
}

#[test]
fn parameters_in_attach_points() {
    let params = ["/bin/a".to_owned(), "f:g".to_owned()];
    let text = "uprobe:$1:\"$2\" { } usdt:$1:$2 { } i:s:$3 { }";
    let parsed = parse_with(
        text,
        Options {
            params: Some(&params),
            ..Options::default()
        },
    );
    let got = dump(&parsed.program)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        got.starts_with("(probe (uprobe (target \"/bin/a\") (function \"$2\")) (block))"),
        "{got}"
    );
    assert!(
        got.contains("(usdt (target \"/bin/a\") (provider \"f\") (name \"g\"))"),
        "{got}"
    );
    // The third parameter is not given.
    assert_eq!(parsed.diagnostics.len(), 1);
    check(
        "i:s:$1 { }",
        "(probe (interval (part \"s\") (part \"$1\")) (block))",
    );
}

#[test]
fn c_definitions() {
    check(
        "struct a { int x; char *y[4]; };",
        "(struct a (x int) (y (array (ptr char) 4)))",
    );
    check(
        "struct a { unsigned x : 3, : 2; u8 d[]; }",
        "(struct a (x \"unsigned int\" (bits 3)) (_ \"unsigned int\" (bits 2)) (d (array u8)))",
    );
    check(
        "struct a { union { int b; }; struct { int c; } d; }",
        "(struct a (_ (union (b int))) (d (struct (c int))))",
    );
    check(
        "struct a { void (*f)(int, char); int (*g)[3]; }",
        "(struct a (f (ptr (function))) (g (ptr (array int 3))))",
    );
    check(
        "struct a { int m[2][3]; } __attribute__((packed, aligned(8)));",
        "(struct a packed (aligned 8) (m (array (array int 3) 2)))",
    );
    check("enum e { A, B = 1 << 2};", "(enum e A B=(<< 1 2))");
    check(
        "typedef struct { int a; } foo_t;",
        "(typedef foo_t (struct (a int)))",
    );
    check(
        "#include <a.h>\n#define N (1 + 2) // c\n#ifdef X\n",
        "(include <a.h>) (define N (+ 1 2)) (directive \"ifdef X\")",
    );
    check("#define F(x) \\\n  x + 1\n", "(define F \"(x) x + 1\")");
}

#[test]
fn other_items() {
    check(
        "#!/usr/bin/bpftrace\nBEGIN { }",
        "(header \"#!/usr/bin/bpftrace\") (probe (begin) (block))",
    );
    check(
        "config = { a = 1; b = perf, c = \"x\"; d = true }",
        "(config (a 1) (b perf) (c \"x\") (d true))",
    );
    check("let @a = lruhash(10);", "(map @a lruhash 10)");
    check("import \"std\";", "(import \"std\")");
    check(
        "macro m($a, @b, c) { $a += c; @b }",
        "(macro m ($a @b c) (block (+= $a c) (value @b)))",
    );
    check(
        "fn f($a : uint8, $b : struct x *) : void { return; }",
        "(fn f $a:uint8 $b:(ptr (struct x)) -> void (block (return)))",
    );
}

#[test]
fn statements_and_expressions_stand_without_a_probe() {
    let (block, diagnostics) =
        parse_statements("$h = g_list; for ($q : list($h, link)) { $q->id }; a.b");
    assert_eq!(diagnostics, []);
    assert_eq!(block.stmts.len(), 3);
    assert!(matches!(
        &block.stmts[1].kind,
        StmtKind::For {
            iter: ForIter::List(_),
            ..
        }
    ));
    for text in ["}", "a }", "for ($q : list(a)) { ", "a b", ""] {
        let wrong = parse_expression(text).unwrap_err();
        assert!(!wrong.is_empty(), "{text}");
    }
    assert_eq!(
        parse_expression(" *a->b[1] ")
            .unwrap()
            .span
            .text(" *a->b[1] "),
        "*a->b[1]"
    );
    // In a script, lists of processes are an error.
    assert!(!parse("begin { for ($q : list(a)) { } }").is_ok());
}
