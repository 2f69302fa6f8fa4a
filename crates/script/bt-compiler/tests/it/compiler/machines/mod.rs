//! Values that programs read from their contexts, from a process and from the kernel, on both
//! machines.

mod arguments;
mod failures;
mod hits;

use bt_abi::{Attach, FailureKind};
use compiler_testkit::{FakeTarget, Session, compile, registers, sample};
use uapi::Arch;

use crate::compiler::MACHINES;

use failures::failures;

/// Address of a text in the process.
const TEXT: u64 = 0x7f00_1000;
/// Address of an array in the process.
const LIST: u64 = 0x7f00_2000;
/// Value of the stack pointer.
const STACK: u64 = 0x7fff_0000;

/// Offsets of arguments, result, stack pointer and instruction pointer in a machine's calling
/// convention: `struct pt_regs` (`arch/x86/include/asm/ptrace.h`) and `struct user_pt_regs`
/// (`arch/arm64/include/uapi/asm/ptrace.h`).
struct Convention {
    args: &'static [u32],
    result: u32,
    stack: u32,
    instruction: u32,
}

fn convention(arch: Arch) -> Convention {
    match arch {
        Arch::X86_64 => Convention {
            args: &[112, 104, 96, 88, 72, 64],
            result: 80,
            stack: 152,
            instruction: 128,
        },
        Arch::Aarch64 => Convention {
            args: &[0, 8, 16, 24, 32, 40, 48, 56],
            result: 0,
            stack: 248,
            instruction: 256,
        },
    }
}

/// Builds a context with these arguments.
fn called(arch: Arch, args: &[u64]) -> Vec<u8> {
    let known = convention(arch);
    let mut all: Vec<(u32, u64)> = known
        .args
        .iter()
        .copied()
        .zip(args.iter().copied())
        .collect();
    all.extend([(known.stack, STACK), (known.instruction, 0x40_1234)]);
    registers(arch, &all)
}

/// Returns the output of a script when `begin` has run and its other probe is hit.
#[track_caller]
fn hit(script: &str, target: &FakeTarget, context: &[u8]) -> Vec<String> {
    let mut session = Session::new(script, target);
    prepare(&mut session);
    hit_in(&mut session, context)
}

fn prepare(session: &mut Session) {
    session.machine.put(TEXT, b"a text of the process\0");
    session
        .machine
        .put(LIST, &[TEXT, TEXT + 2, 0].map(u64::to_le_bytes).concat());
    // Words behind the return address, on both machines.
    session.machine.put(
        STACK - 64,
        &(0..32_u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>(),
    );
}

#[track_caller]
fn hit_in(session: &mut Session, context: &[u8]) -> Vec<String> {
    session.run_all(&[], |attach| *attach == Attach::Begin);
    session.run_all(context, |attach| {
        !matches!(attach, Attach::Begin | Attach::End)
    });
    session.events()
}

/// Checks the output of a probe at a function on both machines.
#[track_caller]
fn function(body: &str, args: &[u64], expected: &[&str]) {
    for arch in MACHINES {
        let script = format!("uprobe:/bin/a:f {{ {body} }}");
        assert_eq!(
            hit(&script, &sample::on(arch), &called(arch, args)),
            expected,
            "{arch}: {script}"
        );
    }
}

#[test]
fn samples_distinguish_user_and_kernel_mode() {
    for arch in MACHINES {
        let (offset, user, kernel) = if arch == Arch::X86_64 {
            (136, 0x33, 0x10)
        } else {
            (264, 0, 5)
        };
        for (state, expected) in [(user, "1"), (kernel, "0")] {
            let printed = hit(
                "profile:hz:99 { print(usermode); }",
                &sample::on(arch),
                &registers(arch, &[(offset, state)]),
            );
            assert_eq!(printed, [expected], "{arch}");
        }
    }
}

#[test]
fn strings_and_buffers_of_a_process() {
    function(
        "print((str(arg0), str(arg0, 7), buf(arg0, 4)));",
        &[TEXT],
        &["(a text of the process, a text, a te)"],
    );
    function(
        "$s = str(arg0); @[$s] = 1; print(@[str(arg0)]); print($s == str(arg0));",
        &[TEXT],
        &["@[a text of the process]: 1", "true"],
    );
    // Bytes behind a string's NUL are no part of it: each hit finds other bytes there.
    for arch in MACHINES {
        let keys = "@a[str(arg0)] = 1; $s = str(arg0, 40); @b[$s, comm] = 1; @c[(comm, str(arg0, 30))] = 1;";
        let mut session = Session::new(&format!("uprobe:/bin/a:f {{ {keys} }}"), &sample::on(arch));
        prepare(&mut session);
        for _ in 0..3 {
            hit_in(&mut session, &called(arch, &[TEXT]));
            session.machine.spoil("scratch", 8);
        }
        for map in ["@a", "@b", "@c"] {
            assert_eq!(
                session.map(map).len(),
                1,
                "{arch}: {map} {:?}",
                session.map(map)
            );
        }
    }
    function("$n = arg1; print(str(arg0, $n));", &[TEXT, 4], &["a t"]);
    function(
        "print(*(uint16 *)arg0); print(((uint8 *)arg0)[2]);",
        &[TEXT],
        &["8289", "116"],
    );
    function("print(str(0)); print(str(5));", &[], &["", ""]);
    function(
        "print(strcontains(str(arg0), \"of\")); print(strlen(str(arg0)));",
        &[TEXT],
        &["true", "21"],
    );
}

#[test]
fn memory_that_is_not_there_is_waited_for_where_that_is_allowed() {
    for arch in MACHINES {
        let script = "uprobe:/bin/a:f { print(str(arg0)); }";
        let away = |target: &FakeTarget| {
            let mut session = Session::new(script, target);
            session.machine.put_away(TEXT, b"far away\0");
            (
                hit_in(&mut session, &called(arch, &[TEXT])),
                failures(&session),
            )
        };
        let able = sample::on(arch);
        assert_eq!(away(&able), (vec!["far away".to_owned()], vec![]), "{arch}");
        let mut unable = able;
        unable.kernel.sleepable = false;
        assert_eq!(
            away(&unable),
            (vec![String::new()], vec![(FailureKind::TextUnreadable, 1)]),
            "{arch}"
        );
    }
}

#[test]
fn ids_are_those_of_the_namespace() {
    for arch in MACHINES {
        let target = FakeTarget {
            pid_namespace: Some((4, 5)),
            ..sample::on(arch)
        };
        assert_eq!(
            hit(
                "uprobe:/bin/a:f { print((pid, tid)); }",
                &target,
                &called(arch, &[])
            ),
            ["(11, 12)"]
        );
    }
}

#[test]
fn values_of_all_cpus_become_one() {
    let script = "uprobe:/bin/a:f { @c = count(); @s = sum((int64)arg0); @l = min((int64)arg0); @m = max((int64)arg0); \
                  @a = avg((int64)arg0); } \
                  uretprobe:/bin/a:f { print(((int64)@c, (int64)@s, (int64)@l, (int64)@m, (int64)@a)); }";
    for arch in MACHINES {
        let mut session = Session::new(
            script,
            &FakeTarget {
                cpus: (4, 4),
                ..sample::on(arch)
            },
        );
        for (cpu, value) in [(0, 5_i64), (3, -7), (1, 20), (0, 6)] {
            session.machine.cpu = cpu;
            session
                .run(0, &called(arch, &[value.cast_unsigned()]))
                .unwrap();
        }
        session.run(1, &called(arch, &[])).unwrap();
        assert_eq!(session.events(), ["(4, 24, -7, 20, 6)"], "{arch}");
    }
}

#[test]
fn stacks_are_what_the_kernel_has() {
    for arch in MACHINES {
        let mut session = Session::new(
            "kprobe:vfs_read { print(kstack(5)); @[ustack(2)] = 1; }",
            &sample::on(arch),
        );
        (session.machine.kernel_stack, session.machine.user_stack) = (vec![1, 2, 3], vec![7; 9]);
        assert_eq!(
            hit_in(&mut session, &called(arch, &[])),
            ["3 frames"],
            "{arch}"
        );
        hit_in(&mut session, &called(arch, &[]));
        assert_eq!(session.map("@"), ["[2 frames]: 1"], "{arch}");
    }
}

#[test]
fn lists_of_strings() {
    for arch in MACHINES {
        let printed = hit(
            "uprobe:/bin/a:f { join(arg0); }",
            &sample::on(arch),
            &called(arch, &[LIST]),
        );
        assert_eq!(printed.len(), 1, "{printed:?}");
        assert!(
            printed[0].contains("[a text of the process,text of the process,"),
            "{printed:?}"
        );
    }
}

#[test]
fn programs_have_the_license_that_the_script_says() {
    let license = |script: &str| {
        compile(script, &sample::target())
            .unwrap()
            .module
            .license
            .to_string()
    };
    assert_eq!(license("begin { }"), "GPL");
    assert_eq!(
        license("config = { license = \"Dual BSD/GPL\" } begin { }"),
        "Dual BSD/GPL"
    );
}
