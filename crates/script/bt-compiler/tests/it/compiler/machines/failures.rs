//! Failures of programs, which are counted.

use bt_abi::FailureKind;
use compiler_testkit::{FakeTarget, Session, sample};

use super::{TEXT, called, hit_in, prepare};
use crate::compiler::MACHINES;

/// Returns the kinds of failures, each with its count.
pub(super) fn failures(session: &Session) -> Vec<(FailureKind, u64)> {
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
fn failures_are_counted() {
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
