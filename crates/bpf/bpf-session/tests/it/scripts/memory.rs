//! Addresses and layouts.

use bt_compiler::ConfigFact;
use compiler_testkit::{FakeTarget, compile};

use super::facts::live;
use super::prints;

#[test]
fn addresses_of_variables_and_maps() {
    prints(
        "begin { $a = 7; $b = &$a; print(*$b); $a = 8; print(*$b); print($b == &$a); }",
        &["7", "8", "true"],
    );
    prints(
        r#"begin { $a = (1, "hello", 2); $b = &$a; print(*$b); print(*(&$a)); }"#,
        &["(1, hello, 2)"; 2],
    );
    prints(
        r#"begin { $a = "hello"; $b = (int8 *)&$a; printf("%c %c", *$b, *++$b); }"#,
        &["104 101"],
    );
    prints(
        "begin { @a[1] = 5; @b = 6; print(&@a != &@b); print((uint64)&@a >> 63); }",
        &["true", "1"],
    );
    prints(
        "begin { $a = 3; for ($i : 0..2) { $b = &$a; print(*$b + $i); } }",
        &["3", "4"],
    );
}

#[test]
fn structs_over_values() {
    prints(
        "struct bits { unsigned long long a:1; unsigned long long b:1; long long c:2; } \
         begin { $v = (uint64)0x1e; $s = *(struct bits *)(&$v); print(($s.a, $s.b, $s.c)); }",
        &["(0, 1, -1)"],
    );
    prints(
        "struct pair { int m; int n; } begin { $v = (uint64)0x300000002; $n = (int32 *)&$v + 1; \
         $p = container_of($n, typeof(struct pair), n); print(($p.m, $p.n, $p == (struct pair *)&$v)); }",
        &["(2, 3, true)"],
    );
    prints(
        r#"struct F { char s[5]; } begin { $v = (uint64)0x6f6c6c6568; $f = (struct F *)&$v; $s = $f.s; print($s); printf("%s", $f.s); print($s == "hello"); }"#,
        &["hello", "hello", "true"],
    );
    // A text that fills its field has no end there, but ends with the field.
    prints(
        "struct F { char s[4]; } begin { $v = (uint64)0x64636261; $f = (struct F *)&$v; $s = \"abcde\"; $t = \"abcd\"; \
         print(($f->s == $s, $f->s == $t)); }",
        &["(false, true)"],
    );
    prints(
        "struct S { int x[4]; } begin { $t = ((int32)1, ((struct S *)0).x); print(sizeof($t)); }",
        &["20"],
    );
}

/// A program fills a field again and again: after the end of a text are remains of longer ones.
#[test]
fn bytes_after_the_nul_of_a_field_are_no_part_of_it() {
    let values = "$v = (uint64)0x7878787878006261; if ($i == 1) { $v = (uint64)0x7900797979006261; } \
                  if ($i == 2) { $v = (uint64)0x6867666564636261; } $f = (struct F *)&$v; $own = *$f; $x = $f->s;";
    for text in ["$f->s", "$own.s", "$x", "($f->s)"] {
        let script = format!(
            "struct F {{ char s[8]; }} begin {{ for ($i : 0..3) {{ {values} @[{text}, 1] = count(); \
             print(($own.s == $f->s, $x == $own.s, strncmp($own.s, $x, 8), {text})); }} print(len(@)); }}"
        );
        prints(
            &script,
            &[
                "(true, true, 0, ab)",
                "(true, true, 0, ab)",
                "(true, true, 0, abcdefgh)",
                "2",
            ],
        );
    }
    prints(
        "struct F { char s[8]; } begin { $v = (uint64)0x6867666564636261; @[((struct F *)&$v)->s] = 1; \
         $v = (uint64)0x6800666564636261; @[((struct F *)&$v)->s] = 2; print((len(@), @[\"abcdefg\"])); }",
        &["(2, 0)"],
    );
}

#[test]
fn numbers_that_are_written_down_are_as_wide_as_arrays_want() {
    prints(
        "begin { $a = (uint8[8])12345; print(($a[0], $a[1], (uint64)$a)); }",
        &["(57, 48, 12345)"],
    );
    prints(
        "begin { $a = (uint8[2])1; print(($a[0], $a[1])); }",
        &["(1, 0)"],
    );
    assert!(
        compile("begin { $a = (uint8[2])70000; }", &live())
            .unwrap_err()
            .contains("cannot cast")
    );
}

#[test]
fn the_kernels_own_types_come_before_those_for_kernels_without() {
    let own = "#ifndef BPFTRACE_HAVE_BTF\nstruct task_struct { long nothing; };\n#endif\n";
    prints(
        &format!("{own}begin {{ print(curtask.tgid == pid); }}"),
        &["true"],
    );
}

#[test]
fn oversized_values_are_reported() {
    let wrong = |source: &str| compile(source, &live()).unwrap_err();
    assert!(wrong(r#"begin { fail("%s: not %d, %x", "a", -3, 255); }"#).contains("a: not -3, ff"));
    assert!(wrong("begin { $a = &1; }").contains("needs a variable"));
    assert!(wrong("begin { print(container_of(1, 2, x)); }").contains("expects a type"));
    assert!(wrong("begin { $a = (1, 2); print($a[2]); }").contains("invalid tuple index"));
    assert!(
        wrong("begin { print(ustack(build_id)); print(kstack(build_id)); }")
            .contains("build_id is only for ustack")
    );
    assert!(wrong("begin { print(EPERM); }").contains("unknown identifier"));
    assert!(wrong("config = { no_such = 1 } begin {}").contains("no_such: not a known"));
    assert!(wrong("watchpoint:0x1000:3:w {}").contains("invalid watchpoint length: 3"));
    assert!(wrong("watchpoint:0x1000:4:wx {}").contains("invalid watchpoint mode: wx"));
}

#[test]
fn numbers_by_name() {
    prints(
        "#include <errno.h>\nbegin { print((EPERM, EAGAIN, SIGKILL, AF_INET6, AT_FDCWD)); }",
        &["(1, 11, 9, 10, -100)"],
    );
    prints(
        "enum E { A = 3 } begin { print((sizeof(A), sizeof(enum E))); }",
        &["(8, 4)"],
    );
    prints(
        "begin { $a = (1, 20, 300); print($a[1 + 1]); print($a[0]); }",
        &["300", "1"],
    );
    prints(
        "begin { print(signal_name(9)); print(ppid(curtask) == ppid); }",
        &["9", "true"],
    );
    prints(
        "begin { print((probetype, usermode)); print((uint8 *)-1); }",
        &["(special, 1)", "0xff"],
    );
}

#[test]
fn settings_can_be_read() {
    prints(
        "config = { max_strlen = 77; stack_mode = perf } begin { print((config.max_strlen, config.stack_mode)); }",
        &["(77, perf)"],
    );
    prints(
        "begin { if (config.max_map_keys > 1) { print(config.missing_probes); } }",
        &["error"],
    );
}

#[test]
fn parts_of_strings_and_buffers() {
    prints(
        r#"begin { $a = nsecs ? buf("hi", 2) : buf("bye", 3); print($a); }"#,
        &["hi"],
    );
    let facts = FakeTarget {
        params: vec!["hello".into()],
        ..live()
    };
    let Some(_alone) = super::allowed() else {
        return;
    };
    if let Some(outcome) = super::run_with("begin { print(str($1 + 1)); }", &facts) {
        assert_eq!(outcome.events, ["ello"]);
    }
}

#[test]
fn the_environment_has_the_last_word() {
    let setting = |name: &str, value: &str| ConfigFact {
        name: name.into(),
        value: value.into(),
    };
    let with = |settings: Vec<ConfigFact>, source: &str| {
        compile(source, &FakeTarget { settings, ..live() }).map(|script| script.config)
    };
    let config = with(
        vec![setting("max_strlen", "100")],
        "config = { max_strlen = 50 } begin {}",
    )
    .unwrap();
    assert_eq!(config.max_strlen, 100);
    assert!(with(vec![setting("of_another_version", "1")], "begin {}").is_ok());
    assert!(
        with(vec![setting("max_strlen", "x")], "begin {}")
            .unwrap_err()
            .contains("invalid value")
    );
    let clock = || vec![setting("dummy_ts_map", "@t")];
    assert_eq!(
        with(clock(), "begin { @t = (uint64)1; }")
            .unwrap()
            .series_clock
            .as_deref(),
        Some("t")
    );
    assert!(
        with(clock(), "begin { @u = 1; }")
            .unwrap_err()
            .contains("@t is not a map of one number")
    );
}

#[test]
fn macros_beside_the_languages_own_words() {
    prints(
        r#"macro cpu(x) { x } begin { print(cpu("hi")); print(cpu() < 1000); }"#,
        &["hi", "true"],
    );
}
