//! Number of instructions of each program: a change must not make events costlier unnoticed.

use bpf_insn::Code;
use bpf_interp::check_counts;
use bpf_program::Member;
use sched_programs::TaskFacts;

use super::{
    Absences, EventOptions, Processes, RegisterFacts, Setting, TriggerKind, TriggerUse, Turn,
    module, page_faults, peek, tracepoints, trigger, upcalls,
};

fn task(old: bool) -> TaskFacts {
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
        frozen: (!old).then_some((Member::new(1480), 16)),
        state: Member::new(24),
        passes_state: !old,
        work_function: Member::new(24),
    }
}

fn settings() -> [(&'static str, Setting); 5] {
    let events = |copied| EventOptions {
        at_least: 1000,
        skip_polls: true,
        stacks: true,
        copied,
        ring_bytes: 1 << 20,
    };
    let plain = Setting {
        processes: Processes::One(77),
        task: task(false),
        registers: RegisterFacts {
            compat: Some((Member::new(16), 2)),
            call_number: Member::new(120),
            result: Member::new(80),
            user: [128, 152, 32, 128].map(Member::new),
        },
        polls: vec![7, 271],
        threads: 1024,
        cpus: 8,
        events: None,
        absences: None,
        exchange: true,
    };
    let several = Setting {
        processes: Processes::Several { children: true },
        ..plain.clone()
    };
    let old = Setting {
        exchange: false,
        task: task(true),
        ..plain.clone()
    };
    let old_several = Setting {
        events: Some(events(0)),
        processes: several.processes,
        ..old.clone()
    };
    let absences = Some(Absences {
        at_least: 5000,
        calls: vec![1, 7],
    });
    let full = Setting {
        events: Some(events(4096)),
        absences,
        ..plain.clone()
    };
    [
        ("plain", plain),
        ("several", several),
        ("old", old),
        ("old_several", old_several),
        ("full", full),
    ]
}

/// Returns all programs, each with its setting and its name.
fn programs() -> Vec<(&'static str, String, Code)> {
    let mut programs = Vec::new();
    let tracepoints = tracepoints().map(|name| (name.to_owned(), 1)).collect();
    for (name, setting) in settings() {
        let mut all = module(&setting, &tracepoints).unwrap().programs;
        all.push(peek(&setting).unwrap());
        all.extend(
            page_faults(&setting, None)
                .unwrap()
                .map(|(program, _)| program),
        );
        programs.extend(
            all.into_iter()
                .map(|program| (name, program.name, program.code)),
        );
    }
    for (name, result) in [("function", Some(Member::new(80))), ("tracepoint", None)] {
        programs.push((
            name,
            "upcalls".to_owned(),
            upcalls::program(result).unwrap().code,
        ));
    }
    for (name, turn) in [("exchange", Turn::Exchange), ("key", Turn::Key)] {
        for to in [TriggerUse::Start, TriggerUse::Stop, TriggerUse::Both] {
            let kind = TriggerKind::Call {
                tgid: 77,
                number: 3,
                in_registers: Some(Member::new(120)),
            };
            programs.push((
                name,
                format!("trigger {to:?}"),
                trigger(kind, to, turn).unwrap(),
            ));
        }
    }
    programs
}

#[test]
fn programs_have_as_many_instructions_as_before() {
    check_counts("kernel-delay", programs(), include_str!("instructions.txt"));
}
