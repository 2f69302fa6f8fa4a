//! `dptrace run --check` on short scripts that expand to far more: refused with a message, in
//! little memory.

use std::io::Write as _;
use std::process::Stdio;

/// Limit on the address space of a check, in KiB: it needs a tenth of it.
const ADDRESS_SPACE_KIB: u32 = 600 << 10;

/// Returns the messages of a check of a script, and its exit status.
fn check(script: &str) -> (String, Option<i32>) {
    let limited = format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$0\" run --check -");
    let mut child = testkit::command("sh")
        .args(["-c", &limited, env!("CARGO_BIN_EXE_dptrace")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

#[track_caller]
fn refused(script: &str, message: &str) {
    let (messages, status) = check(script);
    assert_eq!(status, Some(2), "{messages}");
    assert!(messages.contains(message), "{messages}");
}

const TOO_LARGE: &str = "loops and macros expand this script too far";

#[test]
fn loops_that_are_written_out_in_each_other() {
    refused(
        "begin { unroll(100) { unroll(100) { unroll(100) { unroll(100) { unroll(100) { @a = 1; } } } } } }",
        TOO_LARGE,
    );
    refused(
        "begin { unroll(100) { unroll(60) { @a[comm, nsecs, str(0)] = rand; } } }",
        "more than 262144 instructions",
    );
    refused(
        "begin { unroll(100) { unroll(9) { for ($i : 0..10) { @a[$i] = $i; } } } }",
        "more than 255 loops",
    );
}

#[test]
fn values_that_double() {
    let doubled = |from: usize| format!("$v{} = ($v{from}, $v{from});", from + 1);
    let pairs: String = (0..40).map(doubled).collect();
    refused(
        &format!("begin {{ $v0 = 1; {pairs} }}"),
        "has at most 512 parts",
    );
    // For strings the tree has the first value twice; for numbers it has not.
    let conditions = |first: &str, other: &str| {
        format!(
            "begin {{ print({}{first}{}); }}",
            "(".repeat(60),
            format!(" ?: {other})").repeat(60)
        )
    };
    refused(&conditions("comm", "\"x\""), TOO_LARGE);
    assert_eq!(check(&conditions("rand", "1")).1, Some(0));
}

#[test]
fn constants_that_double_or_name_themselves() {
    let define = |i: u32| format!("#define A{i} (A{0} + A{0})\n", i + 1);
    let defines: String = (0..90)
        .map(define)
        .chain(["#define A90 1\n".to_owned()])
        .collect();
    refused(&format!("{defines}begin {{ print(A0); }}"), TOO_LARGE);
    refused(
        &format!("{defines}struct s {{ int a[A0]; }}; begin {{ }}"),
        "made of too many others",
    );
    refused(
        "#define A A\nstruct s { int a[A]; }; begin { }",
        "made of too many others, or of itself",
    );
    refused("#define A A\nbegin { print(A); }", "nests too deep");
}

#[test]
fn types_that_are_large() {
    refused(
        "begin { print(sizeof(int[1000000][1000])); }",
        "268435456 bytes or more",
    );
    refused(
        "begin { let $a : uint64[1000000]; print($a); }",
        "at most 32000 are possible",
    );
    refused(
        "begin { let $a : uint64[1000000]; $b = $a; @x = $b; }",
        "bytes of memory at once",
    );
}

/// Each union contains fifty of the one before: two bytes, and more members than fit in memory.
#[test]
fn types_that_double() {
    let union = |number: u32| {
        let members = (0..50)
            .map(|i| format!("union u{} m{i}; ", number - 1))
            .collect::<Vec<_>>()
            .concat();
        format!("union u{number} {{ {members}}};\n")
    };
    let unions: String = (1..9).map(union).collect();
    let script = format!("union u0 {{ short a; }};\n{unions}begin {{ print(*(union u8 *)0); }}");
    let (messages, status) = check(&script);
    assert_eq!(status, Some(0), "{messages}");
}

#[test]
fn many_mistakes() {
    let script = (0..2000)
        .map(|i| format!("begin {{ print(nothing{i}); }}\n"))
        .collect::<Vec<_>>()
        .concat();
    let (messages, status) = check(&script);
    assert_eq!(
        (status, messages.matches("unknown identifier").count()),
        (Some(2), 100)
    );
}

/// Neither a mistake in the script nor one of ours: a limit of the kernel's verifier that shows
/// only when it is asked.
#[test]
fn more_ways_than_the_kernel_follows_are_reported() {
    let Some(_alone) = testkit::kernel::may_run("run") else {
        return;
    };
    let adds = |bit: u32| format!("if ((nsecs >> {bit}) & 1) {{ $x += {}; }}", 1 << bit);
    let asks = |bit: u32| format!("if ($x == {}) {{ @[{bit}] = 1; }}", (3 << bit) + 1);
    let branches: String = (0..26).map(adds).chain((0..26).map(asks)).collect();
    let script = format!("begin {{ $x = (uint64)0; {branches} exit(); }}");
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .args(["run", "-e", &script])
        .output()
        .unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{messages}");
    assert!(
        messages.contains("can't follow all paths through begin_1"),
        "{messages}"
    );
}
