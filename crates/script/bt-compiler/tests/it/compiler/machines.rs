//! Values that programs read from their contexts, from a process and from the kernel, on both
//! machines.

use bt_abi::{Attach, FailureKind};
use compiler_testkit::{FakeTarget, Session, compile, registers, sample};
use uapi::Arch;

use crate::compiler::MACHINES;

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
fn arguments_and_results_of_functions() {
    function(
        "print((arg0, arg1, arg2, arg3, arg4, arg5));",
        &[10, 11, 12, 13, 14, 15],
        &["(10, 11, 12, 13, 14, 15)"],
    );
    function(
        "for ($i : 0..2) { print(arg1 + $i); }",
        &[10, 11],
        &["11", "12"],
    );
    for arch in MACHINES {
        let context = registers(arch, &[(convention(arch).result, u64::MAX)]);
        let printed = hit(
            "uretprobe:/bin/a:f { print((int64)retval); }",
            &sample::on(arch),
            &context,
        );
        assert_eq!(printed, ["-1"], "{arch}");
        let (first, name) = if arch == Arch::X86_64 {
            (9, "ip")
        } else {
            (8, "pc")
        };
        let script = format!("uprobe:/bin/a:f {{ print((sarg0, sarg1, reg(\"{name}\"))); }}");
        let printed = hit(&script, &sample::on(arch), &called(arch, &[]));
        assert_eq!(
            printed,
            [format!("({first}, {}, 4198964)", first + 1)],
            "{arch}"
        );
    }
}

#[test]
fn arguments_of_static_probes() {
    for arch in MACHINES {
        let context = called(arch, &[u64::MAX - 6]);
        let script = "usdt:/bin/a:provider:two { print((arg0, arg1 != 0)); for ($i : 0..1) { print(arg0); } }";
        let mut session = Session::new(script, &sample::on(arch));
        let behind = if arch == Arch::X86_64 {
            STACK - 1200
        } else {
            STACK + 1200
        };
        session.machine.put(behind, &7_u64.to_le_bytes());
        assert_eq!(
            hit_in(&mut session, &context),
            ["(-7, true)", "-7"],
            "{arch}"
        );
        // Without that memory the argument is 0.
        assert_eq!(
            hit(script, &sample::on(arch), &context),
            ["(-7, false)", "-7"],
            "{arch}"
        );
    }
}

#[test]
fn whether_a_sample_is_of_a_process() {
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
fn records_of_tracepoints() {
    let mut record = vec![0; 64];
    record[8..16].copy_from_slice(b"swapper\0");
    // An earlier record left bytes behind the name's NUL.
    record[16..24].copy_from_slice(b"leftover");
    record[24..28].copy_from_slice(&(-3_i32).to_le_bytes());
    record[32..40].copy_from_slice(&2_u64.to_le_bytes());
    for arch in MACHINES {
        let target = sample::on(arch);
        let script = "tracepoint:sched:sched_switch { print((args.prev_comm, args.prev_pid, args.prev_state)); \
                      @[args.prev_comm] = 1; if (args.prev_comm == \"swapper\") { print(1); } }";
        let mut session = Session::new(script, &target);
        assert_eq!(
            hit_in(&mut session, &record),
            ["(swapper, -3, 2)", "1"],
            "{arch}"
        );
        record[16..24].copy_from_slice(b"anything");
        hit_in(&mut session, &record);
        assert_eq!(session.map("@"), ["[swapper]: 1"], "{arch}");
        // A text whose offset is in the record, one with an offset relative to that word's end, and
        // small fields.
        let mut odd = vec![0; 64];
        odd[8..12].copy_from_slice(&(0x6_0028_u32).to_le_bytes());
        odd[12..16].copy_from_slice(&(0x2_0020_u32).to_le_bytes());
        (odd[16], odd[20]) = (1, 7);
        odd[40..46].copy_from_slice(b"place\0");
        odd[48..50].copy_from_slice(b"xy");
        let script =
            "tracepoint:net:odd { print(str(args.name)); print(args.flag); print(args.state); }";
        assert_eq!(
            hit(script, &target, &odd)[1..],
            ["true", "STATE_BUSY"],
            "{arch}"
        );
    }
}

#[test]
fn typed_arguments_of_kernel_functions() {
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<_>>()
    };
    for arch in MACHINES {
        let script = "fexit:vfs_read { print((args.count, retval, args.task.pid, args.task.group_leader.comm)); }";
        let mut session = Session::new(script, &sample::on(arch));
        let task = session.machine.task.address;
        let printed = hit_in(&mut session, &words(&[task, TEXT, 100, 0, 55]));
        assert_eq!(printed, ["(100, 55, 4711, program)"], "{arch}");
        let printed = hit(
            "rawtracepoint:sched_switch { print(arg1); }",
            &sample::on(arch),
            &words(&[1, 2, 3]),
        );
        assert_eq!(printed, ["2"], "{arch}");
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

/// Returns the kinds of failures, each with its count.
fn failures(session: &Session) -> Vec<(FailureKind, u64)> {
    let value = session.machine.values("failures", &0_u32.to_le_bytes());
    let Some(value) = value.first() else {
        return Vec::new();
    };
    let counts = value
        .chunks_exact(16)
        .map(|pair| u64::from_le_bytes(pair[..8].try_into().unwrap()));
    let all = session
        .script
        .failures
        .iter()
        .map(|failure| failure.kind)
        .zip(counts);
    all.filter(|(_, count)| *count != 0).collect()
}

#[test]
fn what_fails_is_counted() {
    let failed = |script: &str, target: &FakeTarget| {
        let mut session = Session::new(script, target);
        session.begin_and_end();
        failures(&session)
    };
    for arch in MACHINES {
        let target = sample::on(arch);
        let reporting = FakeTarget {
            reports_reads: true,
            ..target.clone()
        };
        assert_eq!(
            failed("begin { @z = 0; print(5 / @z); print(5 % @z); }", &target),
            [(FailureKind::DivisionByZero, 1); 2]
        );
        let long = "config = { max_strlen = 5 } uprobe:/bin/a:f { print(str(arg0)); }";
        let mut session = Session::new(long, &target);
        prepare(&mut session);
        hit_in(&mut session, &called(arch, &[TEXT]));
        assert_eq!(failures(&session), [(FailureKind::TextCut, 1)]);
        assert_eq!(
            failed("begin { @a[1] = 1; print(@a[2] + 1); }", &target),
            []
        );
        let missing = [(FailureKind::Helper("map_lookup_elem"), 1)];
        assert_eq!(
            failed("begin { @a[1] = 1; print(@a[2] + 1); }", &reporting),
            missing
        );
        let missing = [(FailureKind::Helper("map_lookup_percpu_elem"), 1)];
        let aggregations = [
            "let @a = lruhash(9); begin { @a[1] = sum(5); $x = @a[1] + @a[2]; }",
            "begin { @a[1] = avg(5); $x = @a[1] + @a[2]; }",
        ];
        for script in aggregations {
            assert_eq!(failed(script, &target), []);
            assert_eq!(failed(script, &reporting), missing, "{script}");
        }
        assert_eq!(
            failed(
                "begin { @a[1] = sum(5); for ($kv : @a) { print($kv.1); } }",
                &reporting
            ),
            []
        );
        let unread = [(FailureKind::Helper("probe_read_user"), 1)];
        assert_eq!(
            failed("begin { print(*(int32 *)uptr(8)); }", &reporting),
            unread
        );
        let full = "let @a = hash(1); begin { @a[1] = 1; @a[2] = 2; }";
        assert_eq!(failed(full, &target), [(FailureKind::MapFull, 1)]);
        let outside = "struct s { int x[4]; } begin { $v = (int32[4])cpu; print($v[cpu + 9]); }";
        let outside = outside.replace("(int32[4])cpu", "((struct s *)curtask)->x");
        assert_eq!(failed(&outside, &target), [(FailureKind::OutOfBounds, 1)]);
    }
}

/// If the kernel has no memory for the values of all CPUs, the CPUs share one, and nothing is lost.
#[test]
fn a_key_without_memory_is_kept() {
    let script = "let @full = count(); let @n = hash(3);
        begin {
            for ($i : 0..4) { for ($j : 0..3) { @n[$i, 1] = sum($i); @m[$i] = min($i - $j); @h[$i] = hist($i); } }
            delete(@m, 2);
            print((len(@n), has_key(@n, (2, 1)), has_key(@m, 2), @n[2, 1], @m[1]));
            for ($kv : @m) { print($kv); }
        }";
    let script = script.replace("let @full = count(); ", "");
    for arch in MACHINES {
        for starved in [false, true] {
            let mut session = Session::new(&script, &sample::on(arch));
            if starved {
                session.machine.starve();
            }
            let said = session.begin_and_end();
            assert_eq!(
                said,
                ["(3, true, false, 6, -1)", "(0, -2)", "(1, -1)", "(3, 1)"],
                "{starved}"
            );
            assert_eq!(
                session.map("@n"),
                ["[(0, 1)]: 0", "[(1, 1)]: 3", "[(2, 1)]: 6"]
            );
            assert_eq!(session.map("@m"), ["[0]: -2", "[1]: -1", "[3]: 1"]);
            assert_eq!(session.map("@h")[3], "[3]: 3x3");
            assert_eq!(failures(&session), [(FailureKind::MapFull, 3)]);
        }
    }
}

#[test]
fn scratch_memory_is_given_back() {
    for arch in MACHINES {
        let script = "uprobe:/bin/a:f { if (arg0) { return; } $s = str(arg1, 200); print($s); }";
        let mut session = Session::new(script, &sample::on(arch));
        prepare(&mut session);
        for number in 0..20 {
            let printed = hit_in(&mut session, &called(arch, &[number % 2, TEXT]));
            assert_eq!(printed.len() as u64, 1 - number % 2, "{arch}: hit {number}");
        }
    }
}

#[test]
fn a_full_ring_is_counted() {
    for arch in MACHINES {
        let mut session = Session::new(
            "begin { for ($i : 0..100000) { print(($i, \"some text\")); } }",
            &sample::on(arch),
        );
        let events = session.begin_and_end().len() as u64;
        let lost = session.machine.values("lost", &0_u32.to_le_bytes())[0][..8].to_vec();
        assert_eq!(
            events + u64::from_le_bytes(lost.try_into().unwrap()),
            100_000
        );
        assert!(events < 100_000, "{events}");
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
