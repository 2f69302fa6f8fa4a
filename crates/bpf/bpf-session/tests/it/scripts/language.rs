//! The language, feature by feature.

use super::{holds, prints};

#[test]
fn printing() {
    prints(r#"BEGIN { printf("hello %d\n", 42); }"#, &["hello 42\n"]);
    prints(
        r#"begin { print("text"); print(1); print((1, "a", -3)); }"#,
        &["text", "1", "(1, a, -3)"],
    );
    prints(
        r#"begin { printf("%s %s\n", "a", "bcd"); exit(); printf("not this"); }"#,
        &["a bcd\n", "exit 0"],
    );
    prints("begin { exit(7); }", &["exit 7"]);
    prints(r#"begin { print((x=1, y="s")); }"#, &["(x=1, y=s)"]);
}

#[test]
fn variables_and_arithmetic() {
    prints(
        "begin { $a = 1; $b = $a + 2; $b *= 5; print($b); }",
        &["15"],
    );
    prints(
        "begin { $a = -7; print($a / 2); print($a % 4); print($a >> 1); }",
        &["-3", "-3", "-4"],
    );
    prints(
        "begin { $a = 10; print($a++); print(++$a); print($a--); print(--$a); }",
        &["10", "12", "12", "10"],
    );
    prints(
        "begin { $a = 0xff; print((int8)$a); print((uint8)$a); print(~$a); }",
        &["-1", "255", "18446744073709551360"],
    );
    prints(
        "begin { $a = 5; print($a > 3 && $a < 6); print($a == 4 || !($a == 5)); }",
        &["true", "false"],
    );
    prints(
        "begin { $a = 5; print($a > 3 ? 1 : 2); print($a > 30 ? \"yes\" : \"no\"); }",
        &["1", "no"],
    );
    prints(
        "begin { let $x; $x = 3; { let $y = 4; $x += $y; } print($x); }",
        &["7"],
    );
    prints(
        "begin { $a = 3; $b = (($a + 1) * ($a + 2)) - (($a * 2) / ($a - 1)) + ($a << ($a + 1)); print($b); }",
        &["65"],
    );
}

#[test]
fn signs_are_those_of_the_manual() {
    prints(
        "begin { $a = (uint64)1; $b = (uint64)2; print($a - $b); print((uint64)($a - $b)); }",
        &["-1", "18446744073709551615"],
    );
    prints(
        "begin { $a = (uint64)5; $b = (int64)-1; print($a > $b); print($a * $b); print($a + 1); }",
        &["true", "-5", "6"],
    );
}

#[test]
fn side_effects_happen_once_and_in_order() {
    prints(
        "begin { let $i: uint64 = 5; print($i++ ?: 9); print($i); print(0 ?: $i); }",
        &["5", "6", "6"],
    );
    prints(
        r#"begin { let $i: uint64 = 1; printf("%d %d %d\n", $i, { $i = 5; $i }, $i); }"#,
        &["1 5 5\n"],
    );
    prints(
        "begin { print({ print(1); 2 }); print((3, { for ($i : 4..6) { print($i); } 6 })); }",
        &["1", "2", "4", "5", "(3, 6)"],
    );
    prints(
        r#"begin { $s = "a"; print($s == { $s = "b"; $s }); print({ $s = "c"; $s } == $s); }"#,
        &["false", "true"],
    );
}

#[test]
fn flow() {
    prints(
        "begin { $a = 2; if ($a == 1) { print(1); } else if ($a == 2) { print(2); } else { print(3); } }",
        &["2"],
    );
    prints(
        "begin { $i = 0; while ($i < 5) { if ($i == 3) { break; } $i++; if ($i == 1) { continue; } print($i); } }",
        &["2", "3"],
    );
    prints(
        "begin { unroll(3) { $x = 1; print($x); } }",
        &["1", "1", "1"],
    );
    prints("begin { for ($i : 2..5) { print($i); } }", &["2", "3", "4"]);
    prints(
        "begin { for ($i : 0..5) { for ($j : 0..5) { if ($j == 2) { break; } if ($i == 2) { return; } print(($i, $j)); } } print(9); }",
        &["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"],
    );
    prints(
        "begin / 1 == 2 / { print(1); } begin / 1 == 1 / { print(2); }",
        &["2"],
    );
    prints(
        "begin { $s = 0; for ($i : 0..100000) { $s += $i; } print($s); }",
        &["4999950000"],
    );
    prints(
        "begin { $i = 0; while ($i < 100000) { $i++ } print($i); }",
        &["100000"],
    );
}

#[test]
fn scalar_maps() {
    holds("begin { @a = 1; @a += 4; @a++; }", "@a", &["[]: 6"]);
    holds(
        r#"begin { @a[1, "x"] = 2; @a[2, "yy"] = 3; }"#,
        "@a",
        &["[(1, x)]: 2", "[(2, yy)]: 3"],
    );
    holds(
        r#"begin { @s["a"] = "text"; @s["b"] = comm; @s["b"] = "longer than a comm is"; }"#,
        "@s",
        &["[a]: text", "[b]: longer than a comm is"],
    );
    prints(
        "begin { @a[1] = 5; @a[2] = 6; print(@a[1] + @a[2] + @a[3]); delete(@a, 1); print(has_key(@a, 1)); print(has_key(@a, 2)); print(len(@a)); }",
        &["11", "false", "true", "1"],
    );
    prints(
        "begin { @a[3] = 9; print(@a[3]); print(@a); clear(@a); }",
        &["@a[3]: 9", "print @a 0,0", "clear @a"],
    );
    prints(
        "begin { @t = (1, \"abc\", 3); print(@t.1); print(@t.2); $t = @t; print($t.0); }",
        &["abc", "3", "1"],
    );
    prints(
        "begin { @m[1] = 10; @m[2] = 20; $sum = 0; for ($kv : @m) { $sum += $kv.0 * $kv.1; } print($sum); }",
        &["50"],
    );
    prints(
        "begin { @x++; @x++; print(@x++); print(++@x); }",
        &["2", "4"],
    );
    prints(
        "begin { @a[1] = @b[1]; } end { @b[1] = (uint64)7; @a[1] = @b[1]; print(@a[1]); }",
        &["@a[1]: 7"],
    );
}

#[test]
fn aggregates() {
    holds("begin { @ = count(); @ = count(); }", "@", &["[]: 2"]);
    holds(
        "begin { @[1] = sum(5); @[1] = sum(6); @[2] = sum(1); }",
        "@",
        &["[1]: 11", "[2]: 1"],
    );
    holds(
        "begin { @ = min(5); @ = min(-6); @ = min(1); }",
        "@",
        &["[]: -6"],
    );
    holds(
        "begin { @ = max(5); @ = max(60); @ = max(1); }",
        "@",
        &["[]: 60"],
    );
    holds(
        "begin { @ = avg(5); @ = avg(6); @ = avg(10); }",
        "@",
        &["[]: 7"],
    );
    holds(
        "begin { @ = stats(5); @ = stats(6); @ = stats(10); }",
        "@",
        &["[]: 3 7 21"],
    );
    holds(
        "begin { @ = hist(0); @ = hist(1); @ = hist(2); @ = hist(3); @ = hist(1024); @ = hist(-1); }",
        "@",
        &["[]: 0x1 1x1 2x1 3x2 12x1"],
    );
    holds(
        "begin { for ($i : 0..10) { @ = lhist($i * 10, 20, 60, 10); } }",
        "@",
        &["[]: 0x2 1x1 2x1 3x1 4x1 5x4"],
    );
    holds(
        "begin { @ = tseries(4, 10s, 5, \"sum\"); @ = tseries(5, 10s, 5, \"sum\"); }",
        "@",
        &["[]: 9"],
    );
    prints(
        "begin { @c = count(); @c = count(); @a = avg(10); @a = avg(20); @m = max(7); print((int64)@c + 1); print(@a); if (@m > 5) { print(1); } }",
        &["3", "print @a 0,0", "1"],
    );
    prints(
        "begin { @c[1] = count(); @c[2] = count(); @c[2] = count(); $s = 0; for ($kv : @c) { $s += (int64)$kv.1; } print($s); }",
        &["3"],
    );
}

#[test]
fn strings() {
    prints(
        r#"begin { $s = "abc"; print($s == "abc"); print($s == "abd"); print($s != "ab"); }"#,
        &["true", "false", "true"],
    );
    prints(
        r#"begin { $a = "abc"; $b = "abcd"; print(strncmp($a, $b, 3)); print(strncmp($a, $b, 4)); }"#,
        &["0", "1"],
    );
    prints(
        r#"begin { $a = comm; print(strcontains($a, "zzz")); print(strcontains("hello", "ell")); $h = "hello"; print(strcontains($h, "llo")); print(strcontains($h, "lo!")); }"#,
        &["false", "true", "true", "false"],
    );
    prints(
        r#"begin { $a = "hello"; $n = "ell"; print(strcontains($a, $n)); print(strlen($a)); }"#,
        &["true", "5"],
    );
    // Both are in memory and equally long: no byte after them is examined.
    prints(
        r#"begin { $a = "a longer text"; $b = "a longer text"; $n = "text!"; print(strcontains($a, $b)); print(strcontains($a, $n)); $b = ""; print(strcontains($a, $b)); }"#,
        &["true", "false", "true"],
    );
    prints(r"begin { $x = str($1); print($x); print($#); }", &["", "0"]);
    prints(
        r#"begin { @["a"] = 1; print(@["a"]); print(@["b"]); }"#,
        &["@[a]: 1", "@[b]: 0"],
    );
    prints(
        r#"begin { $s = "x"; $s = "a longer one, which does not fit the stack any more, for it has many bytes"; print($s); }"#,
        &["a longer one, which does not fit the stack any more, for it has many bytes"],
    );
}

#[test]
fn c_types() {
    prints(
        "struct Foo { int a; char b; short c : 4; short d : 3; } begin { print(sizeof(struct Foo)); print(offsetof(struct Foo, b)); }",
        &["8", "4"],
    );
    prints(
        "enum E { A, B = 7, C } begin { print(C); print((enum E)7); }",
        &["C", "B"],
    );
    prints(
        "begin { print(curtask->pid == tid); print(curtask.comm == comm); }",
        &["true", "true"],
    );
    prints(
        "begin { $t = (struct task_struct *)curtask; print($t->group_leader->pid == pid); }",
        &["true"],
    );
    prints("#define N 5\nbegin { print(N + 1); }", &["6"]);
}

#[test]
fn builtins() {
    prints(
        "begin { print(nsecs > 0); print(cpu < 1000); print(ncpus > 0); print(uid); print(gid); print(rand != rand || 1); }",
        &["true", "true", "true", "0", "0", "true"],
    );
    prints(
        "begin { print(probe); print(elapsed > 0); print(numaid < 64); print(jiffies > 0); }",
        &["begin", "true", "true", "true"],
    );
    prints(
        "begin { print(ppid > 0); print(pcomm != \"\"); print(cgroup > 0); print(bswap((uint32)1)); print(ntop(0x0100007f)); }",
        &["true", "true", "true", "16777216", "127.0.0.1"],
    );
}

#[test]
fn divisions_by_zero_give_one() {
    prints(
        "begin { @z = 0; print(7 / @z); print(7 % @z); print((uint64)7 / (uint64)@z); }",
        &["1", "1", "1"],
    );
    prints(
        "begin { $a = 7; $a /= @z; @z = 0; print($a); print(7 / 0); print(-7 % 0); }",
        &["1", "1", "1"],
    );
    prints(
        "begin { @z = 3; print(-7 / @z); print((uint64)7 % (uint64)@z); }",
        &["-2", "1"],
    );
}

#[test]
fn pointers_step_over_what_they_point_to() {
    prints(
        "begin { $p = (uint32 *)100; $p++; print((uint64)$p); $q = --$p; print((uint64)$q); $p += 2; print((uint64)$p); }",
        &["104", "100", "108"],
    );
    prints(
        "struct wide { int a[5]; } begin { @p = (struct wide *)100; @p++; print((uint64)@p); $q = @p--; \
         print(((uint64)$q, (uint64)@p)); }",
        &["120", "(120, 100)"],
    );
}

#[test]
fn lengths_count_the_end_of_a_string() {
    let lengths = |text: &str, expected: &[&str]| {
        for (length, expected) in [0, 1, 5, 11, 12, 70].into_iter().zip(expected) {
            prints(
                &format!("begin {{ $n = {length}; print(({length}, str({text}, $n))); }}"),
                &[&format!("({length}, {expected})")],
            );
        }
    };
    lengths(
        "\"hello world\"",
        &["", "", "hell", "hello worl", "hello world", "hello world"],
    );
    prints(
        r#"begin { @s = "hello world"; $n = 5; print(str(@s, $n)); print(str(@s, 5)); }"#,
        &["hell", "hell"],
    );
    let long = "x".repeat(100);
    prints(
        &format!("begin {{ @s = \"{long}\"; $n = 81; print(str(@s, $n)); }}"),
        &[&long[..80]],
    );
}
