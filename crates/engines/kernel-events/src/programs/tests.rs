//! Tests of the number of instructions of each program: a change must not make events dearer
//! unnoticed.

use bpf_insn::Code;
use bpf_interp::check_counts;
use bpf_program::Member;
use sched_programs::{Facts, TaskFacts};

use super::{module, tracepoints};

fn facts(passes_state: bool) -> Facts {
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
        passes_state,
        work_function: Member::new(24),
    };
    Facts {
        task,
        tracepoints: tracepoints().map(|name| (name.to_owned(), 1)).collect(),
    }
}

/// Returns all programs, each with its setting and name.
fn programs() -> impl Iterator<Item = (&'static str, String, Code)> {
    [("plain", true), ("old", false)]
        .into_iter()
        .flat_map(|(setting, passes_state)| {
            let programs = module(&facts(passes_state), 77, 1 << 20, 8)
                .unwrap()
                .programs;
            programs
                .into_iter()
                .map(move |program| (setting, program.name, program.code))
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
