//! Listings of small programs, instruction by instruction, after the peephole pass. Each change of
//! these files must be reviewed. With `UPDATE_EXPECT=1` the test rewrites them.
//!
//! The programs are small so that a difference shows the change. Other tests run programs and check
//! what they do.

use std::fmt::Write as _;
use std::path::Path;

use bpf_insn::Listing;
use compiler_testkit::{FakeTarget, compile, sample};
use uapi::Arch;

use crate::compiler::expect;

/// Programs, each with its file name and its script.
const PROGRAMS: [(&str, &str); 22] = [
    ("print_number", "begin { print(1); }"),
    (
        "printf_string",
        r#"begin { printf("%d %s\n", pid, comm); }"#,
    ),
    ("exit", "begin { exit(3); }"),
    (
        "variable_steps",
        "begin { $a = 1; $a++; $b = $a++ + --$a; print($b); }",
    ),
    (
        "signed_division",
        "begin { $a = (int64)cpu; print($a / 3); }",
    ),
    ("unknown_divisor", "begin { print((uint64)7 / cpu); }"),
    (
        "condition",
        "begin { if (cpu > 3 && pid != 7) { print(1); } else { print(2); } }",
    ),
    ("predicate", "begin / pid == 7 / { @ = 1; }"),
    ("map_number", "begin { @a[pid] = 5; }"),
    ("map_add", "begin { @a[pid]++; }"),
    ("map_string_key", r#"begin { @a[comm, "x"] = 1; }"#),
    ("map_delete", "begin { @a[1] = 1; delete(@a, 1); }"),
    ("count", "uprobe:/bin/a:main { @[pid] = count(); }"),
    ("hist", "begin { @ = hist(cpu); }"),
    ("range_loop", "begin { for ($i : 0..5) { print($i); } }"),
    ("while_loop", "begin { $i = 0; while ($i < 5) { $i++; } }"),
    (
        "map_loop",
        "begin { @a[1] = 2; for ($kv : @a) { print($kv.1); } }",
    ),
    (
        "string_equal",
        r#"begin { if (comm == "bash") { print(1); } }"#,
    ),
    (
        "string_read",
        "uprobe:/bin/a:main { print(str(arg0, 16)); }",
    ),
    ("field", "begin { print(curtask.pid); }"),
    (
        "usdt_arguments",
        "usdt:/bin/a:provider:two { print((arg0, arg1)); }",
    ),
    ("kernel_stack", "kprobe:vfs_read { @[kstack(3)] = 1; }"),
];

/// Lists a script's programs and their callbacks for a machine.
fn listing(script: &str, arch: Arch) -> String {
    let target = FakeTarget {
        params: Vec::new(),
        cpus: (2, 2),
        ..sample::on(arch)
    };
    let compiled = compile(script, &target).unwrap_or_else(|wrong| panic!("{script}\n{wrong}"));
    let mut text = String::new();
    for program in &compiled.module.programs {
        write!(
            text,
            "\n{arch}, {}:\n{}",
            program.name,
            Listing::new(&program.code)
        )
        .unwrap();
        for sub in &program.subprograms {
            write!(text, "\n{arch}, {}:\n{}", sub.name, Listing::new(&sub.code)).unwrap();
        }
    }
    text
}

#[test]
fn small_programs_are_made_as_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compiler/listings");
    for (name, script) in PROGRAMS {
        let (x86, arm) = (
            listing(script, Arch::X86_64),
            listing(script, Arch::Aarch64),
        );
        let both = x86.replace("x86-64, ", "") == arm.replace("aarch64, ", "");
        let text = if both {
            x86.replace("x86-64, ", "")
        } else {
            x86 + &arm
        };
        expect::file(
            &folder.join(format!("{name}.txt")),
            &format!("{script}\n{text}"),
        );
    }
}

#[test]
fn every_file_is_of_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compiler/listings");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            PROGRAMS.iter().any(|(known, _)| *known == name),
            "{}",
            path.display()
        );
    }
}
