//! Arguments and results of the probed functions.

use compiler_testkit::{Session, registers, sample};
use uapi::Arch;

use super::{STACK, TEXT, called, convention, function, hit, hit_in};
use crate::compiler::MACHINES;

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
