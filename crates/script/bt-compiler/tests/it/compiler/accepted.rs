//! Scripts that bpftrace accepts, and their meaning here: maps and variables whose types are found
//! late, and forms of C.

use bt_abi::{ActionKind, FormatPiece};
use compiler_testkit::{FakeTarget, Session, compile, diagnostics, sample};

/// Returns the output of a script without targets.
fn printed(script: &str) -> Vec<String> {
    Session::new(
        script,
        &FakeTarget {
            params: Vec::new(),
            ..sample::target()
        },
    )
    .begin_and_end()
}

#[test]
fn a_map_that_only_counts_on_from_itself_holds_numbers() {
    assert_eq!(
        printed("begin { @a = @a + 1; @a = @a * 5; print(@a + 0); }"),
        ["5"]
    );
    assert_eq!(
        printed("begin { @a[1, \"x\"] = 3 - @a[1, \"x\"]; print(@a[1, \"x\"] + 0); }"),
        ["3"]
    );
}

#[test]
fn numbers_take_the_width_that_a_variable_was_declared_with() {
    assert_eq!(
        printed("begin { let $a : uint8 = 250; $a = $a + 10; print($a); $a += 300; print($a); }"),
        ["4", "48"]
    );
    assert_eq!(
        printed("begin { let $n = (int64)-1; let $a : uint16 = $n; print($a == 65535); }"),
        ["true"]
    );
    assert_eq!(
        printed("begin { let $n = (int8)-1; let $a : uint16 = $n; print($a); }"),
        ["65535"]
    );
    let said = diagnostics(
        "begin { let $a : int32 = 1; $a = (int32)2; $a = 7; }",
        &sample::target(),
    );
    assert_eq!(said, "", "nothing is lost");
}

#[test]
fn a_map_of_a_probe_that_is_not_there_is_empty() {
    let head = "config = { missing_probes = ignore } tracepoint:no:such { @at[tid] = nsecs; @of[args.x] = args.y; @n = count(); } ";
    let body = "begin { print(@at[1]); if (@at[2]) { print(1); } delete(@at, 3); for ($kv : @of) { print(2); } print(len(@at)); }";
    assert_eq!(printed(&format!("{head}{body}")), ["@at[1]: 0", "0"]);
    assert_eq!(
        printed(&format!(
            "{head} begin {{ clear(@at); @other = @at[4] + @n; print(@other + 0); }}"
        )),
        ["clear @at", "0"]
    );
    // The type that other statements give a map counts.
    assert_eq!(
        printed(&format!(
            "{head} begin {{ @at[\"a\"] = \"b\"; printf(\"%s\", @at[\"a\"]); }}"
        )),
        ["b"]
    );
}

#[test]
fn the_address_of_a_map_leads_to_its_value() {
    assert_eq!(
        printed("begin { @a = 5; print(*&@a); @b[1] = 6; $x = 7; print(*&$x); }"),
        ["5", "7"]
    );
}

#[test]
fn a_block_may_end_in_a_function_of_maps() {
    let script = "macro half(x) { let $h = x / 2; sum($h) } begin { @a = { let $n = 3; avg($n) }; @b = half(10); @b = half(4); \
                  print((int64)@a); print((int64)@b); }";
    assert_eq!(printed(script), ["3", "7"]);
}

#[test]
fn definitions_between_fields_and_texts_with_escapes() {
    assert_eq!(
        printed(
            "struct a {\n int x[N];\n#define N 4\n short y; };\nbegin { print(sizeof(struct a)); print(N); }"
        ),
        ["20", "4"]
    );
    let script = compile(
        "#define RED \"\\033[31m\"\nbegin { printf(\"<%s|%5s|%s>\", RED, RED, comm); }",
        &sample::target(),
    )
    .unwrap();
    let ActionKind::Printf { format, .. } = &script.actions[0].kind else {
        panic!("{:?}", script.actions)
    };
    let texts: Vec<_> = format
        .iter()
        .map(|piece| matches!(piece, FormatPiece::Text(_)))
        .collect();
    assert_eq!(texts, [true, true, true, false, true, false, true]);
    assert_eq!(format[1], FormatPiece::Text(b"\x1b[31m".to_vec()));
}

#[test]
fn constants_of_headers() {
    let script = "#include <sys/mman.h>\nbegin { print(PROT_READ | PROT_EXEC); print(MAP_ANONYMOUS); print(ETH_P_IPV6); print(AT_REMOVEDIR); }";
    assert_eq!(printed(script), ["5", "32", "34525", "512"]);
}
