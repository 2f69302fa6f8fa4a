//! Tests of the number of instructions of each program: a change must not make events dearer
//! unnoticed.

use bpf_interp::check_counts;
use bpf_program::Member;
use sched_programs::{Facts, Processes, TaskFacts};

use super::{module, tracepoints};
use crate::facts::{CallFacts, SockFacts, SocketFacts};

fn facts() -> SocketFacts {
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
        passes_state: true,
        work_function: Member::new(24),
    };
    SocketFacts {
        kernel: Facts {
            task,
            tracepoints: tracepoints().map(|name| (name.to_owned(), 1)).collect(),
        },
        sock: SockFacts {
            kind: Member::new(532),
            family: Member::new(16),
            state: Member::new(18),
            peer4: Member::new(0),
            own4: Member::new(4),
            peer_port: Member::new(12),
            own_port: Member::new(14),
            peer6: Member::new(56),
            own6: Member::new(72),
            shutdown: Member::new(531),
            unix_address: Some(Member::new(768)),
        },
        call: CallFacts {
            number: Member::new(120),
            second: Member::new(104),
        },
    }
}

#[test]
fn programs_have_as_many_instructions_as_before() {
    let settings = [
        ("one process", Processes::One(77)),
        ("several", Processes::Several { children: true }),
    ];
    let programs = settings.into_iter().flat_map(|(setting, processes)| {
        let programs = module(facts(), processes, 1 << 20).unwrap().programs;
        programs
            .into_iter()
            .map(move |program| (setting, program.name, program.code))
    });
    check_counts(
        "socket-requests",
        programs,
        include_str!("instructions.txt"),
    );
}
