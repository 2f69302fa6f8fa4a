//! Tests of the number of instructions of each program: a change must not make events dearer
//! unnoticed.

use bpf_insn::Code;
use bpf_interp::check_counts;
use bpf_program::Member;
use sched_programs::{Processes, TaskFacts, Tracepoints};

use super::{Setting, module, tracepoints};

fn task(passes_state: bool) -> TaskFacts {
    TaskFacts {
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
        passes_state,
        work_function: Member::new(24),
    }
}

/// Returns all programs, each with its setting and name.
fn programs() -> impl Iterator<Item = (&'static str, String, Code)> {
    let (one, several) = (Processes::One(77), Processes::Several { children: true });
    let tracepoints: Tracepoints = tracepoints().map(|name| (name.to_owned(), 1)).collect();
    [
        ("plain", true, one),
        ("old", false, one),
        ("several", true, several),
        ("old_several", false, several),
    ]
    .into_iter()
    .flat_map(move |(name, is_new, processes)| {
        let setting = Setting {
            task: task(is_new),
            processes,
            types_current: is_new,
            ring_bytes: 1 << 20,
        };
        let programs = module(&setting, &tracepoints, 8).unwrap().programs;
        programs
            .into_iter()
            .map(move |program| (name, program.name, program.code))
    })
}

#[test]
fn programs_have_as_many_instructions_as_before() {
    check_counts(
        "kernel-events",
        programs(),
        include_str!("instructions.txt"),
    );
}
