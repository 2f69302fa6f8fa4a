//! Tests of the number of instructions of each program: a change must not make events dearer
//! unnoticed.

use bpf_insn::Code;
use bpf_interp::check_counts;
use bpf_program::Member;
use sched_programs::TaskFacts;

use super::{module, tracepoints};
use crate::audit::facts::{Facts, Members, PoolMembers};

fn facts(old: bool) -> Facts {
    let task = TaskFacts {
        tgid: Member::new(2000),
        pid: Member::new(1996),
        comm: Member::new(2400),
        parent: Member::new(2008),
        leader: Member::new(2064),
        started: Member::new(2200),
        flags: Member::new(44),
        prio: Member::new(100),
        policy: Member::new(800),
        cpu: Some(Member::new(20)),
        on_cpu: Some(Member::new(52)),
        frozen: None,
        state: Member::new(24),
        passes_state: !old,
        work_function: Member::new(24),
    };
    let pool = PoolMembers {
        pool: Member::new(0),
        queue: Member::new(8),
        cpu: Member::new(4),
        name: Member::new(176),
    };
    let members = Members {
        action_name: Member::new(88),
        hrtimer_function: Member::new(40),
        timer_function: Member::new(24),
        pool: (!old).then_some(pool),
    };
    let tracepoints = tracepoints().map(|name| (name.to_owned(), 1)).collect();
    Facts {
        programs: sched_programs::Facts { task, tracepoints },
        members,
    }
}

/// Returns all programs, each with its setting and name.
fn programs() -> impl Iterator<Item = (&'static str, String, Code)> {
    let settings = [
        ("plain", false, None),
        ("each", false, Some(1000)),
        ("old", true, None),
    ];
    settings.into_iter().flat_map(|(setting, old, each)| {
        let programs = module(&facts(old), !old, each, (8, 1 << 20))
            .unwrap()
            .programs;
        programs
            .into_iter()
            .map(move |program| (setting, program.name, program.code))
    })
}

#[test]
fn programs_have_as_many_instructions_as_before() {
    check_counts("cpus", programs(), include_str!("instructions.txt"));
}
