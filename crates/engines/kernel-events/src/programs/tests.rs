//! Tests of the programs: the number of instructions of each, so that a change does not make events
//! dearer unnoticed, and those of several processes on the interpreter.

use bpf_insn::Reg::{R0, R1, R6, R7};
use bpf_insn::{Asm, Code, MapDef};
use bpf_interp::{Machine, Program, check_counts};
use bpf_program::emit::program;
use bpf_program::wire::read_value;
use bpf_program::{Emit as _, Member, argument};
use scene::{Cpu, EventKind, Tid};
use sched_programs::{Processes, TaskFacts, Tracepoints};

use super::current::unless_ours;
use super::{Setting, module, sched, tracepoints};
use crate::layout::{self, LOST, LossRecord, RING, kind};
use crate::messages::{Message, RecordedEvent, recorded};

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

/// Addresses of the tasks of a process: that of a thread, and that of its first thread.
const TASK: u64 = 0xffff_8880_0000_0000;
const LEADER: u64 = 0xffff_8880_0001_0000;
/// Address of the first thread of a process that it starts.
const CHILD: u64 = 0xffff_8880_0002_0000;

/// Makes a task of a group, which began at `started`.
fn task_bytes(group: u32, tid: u32, started: u64) -> Vec<u8> {
    let facts = task(true);
    let mut bytes = vec![0; 3000];
    for (at, value) in [(facts.tgid.offset(), group), (facts.pid.offset(), tid)] {
        let at = usize::try_from(at).unwrap();
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    for (at, value) in [
        (facts.leader.offset(), LEADER),
        (facts.started.offset(), started),
    ] {
        let at = usize::try_from(at).unwrap();
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// A machine whose current thread is number 79 of the process 77.
fn machine(maps: &[MapDef]) -> Machine {
    let mut machine = Machine::new(maps).unwrap();
    (machine.task.tgid, machine.task.pid, machine.task.address) = (77, 79, TASK);
    machine.put_object(TASK, &task_bytes(77, 79, 900));
    machine.put_object(LEADER, &task_bytes(77, 77, 500));
    machine.put_object(CHILD, &task_bytes(80, 80, 950));
    machine
}

fn run<const WORDS: usize>(machine: &mut Machine, code: &Code, context: [u64; WORDS]) -> u64 {
    let context: Vec<u8> = context.iter().flat_map(|word| word.to_ne_bytes()).collect();
    machine.run(&Program::new("test", code), &context).unwrap()
}

/// Makes the program that enters the process of the task that it is given.
fn enter(setting: &Setting) -> Code {
    let body = |asm: &mut Asm, _| {
        asm.get(R6, argument(R1, 0));
        setting.ours().enter(asm, R6);
    };
    program(body).unwrap()
}

fn several(types_current: bool) -> Setting {
    Setting {
        task: task(types_current),
        processes: Processes::Several { children: true },
        types_current,
        ring_bytes: 1 << 20,
    }
}

/// By the task with its type, and by its address, as before Linux 5.11.
#[test]
fn the_current_thread_is_ours_if_its_process_is() {
    for types_current in [true, false] {
        let setting = several(types_current);
        let ask = |asm: &mut Asm, others| {
            unless_ours(asm, &setting, others);
            asm.mov(R0, R7).exit();
        };
        let ask = program(ask).unwrap();
        let maps: Vec<MapDef> = setting.processes.map().into_iter().collect();
        let mut machine = machine(&maps);
        assert_eq!(run(&mut machine, &ask, [0, 0]), 0);
        run(&mut machine, &enter(&setting), [LEADER, 0]);
        assert_eq!(run(&mut machine, &ask, [0, 0]), 79);
        // Another process has its number.
        machine.put_object(LEADER, &task_bytes(77, 77, 600));
        assert_eq!(run(&mut machine, &ask, [0, 0]), 0);
    }
}

#[test]
fn a_process_without_room_is_a_loss() {
    let setting = several(true);
    let mut maps = layout::maps(1 << 20, 1);
    maps.extend(setting.processes.map().map(|mut map| {
        map.max_entries = 1;
        map
    }));
    let fork = sched::fork(&setting).unwrap();
    let lost = |machine: &Machine| -> LossRecord {
        read_value(LOST, machine.values(LOST, &0_u32.to_ne_bytes())[0]).unwrap()
    };
    let mut machine = machine(&maps);
    run(&mut machine, &enter(&setting), [LEADER, 0]);
    // A thread has its process's room.
    run(&mut machine, &fork, [LEADER, TASK]);
    assert_eq!(lost(&machine).count, 0);
    run(&mut machine, &fork, [LEADER, CHILD]);
    let first = lost(&machine);
    assert!(first.count == 1 && first.since > 0);
    run(&mut machine, &fork, [LEADER, CHILD]);
    assert_eq!(
        (lost(&machine).count, lost(&machine).since),
        (2, first.since)
    );
}

/// No switch need have been seen: the CPU has had its task since before the thread waited for it.
#[test]
fn a_thread_that_is_migrated_has_waited_for_who_has_its_cpu() {
    let setting = several(true);
    let mut maps = layout::maps(1 << 20, 2);
    maps.extend(setting.processes.map());
    let [switch, wake, migrate] = [
        sched::switch(&setting).unwrap(),
        sched::wake(&setting, kind::WAKE).unwrap(),
        sched::migrate(&setting).unwrap(),
    ];
    let mut machine = machine(&maps);
    run(&mut machine, &enter(&setting), [LEADER, 0]);
    run(&mut machine, &wake, [TASK, 0]);
    // Neither task is ours, and nobody waits for CPU 1: no event shows this switch.
    machine.cpu = 1;
    run(&mut machine, &switch, [0, CHILD, CHILD]);
    machine.cpu = 0;
    let mut migrated = |to: u32| {
        machine.records(RING);
        run(&mut machine, &migrate, [TASK, to.into()]);
        let records = machine.records(RING);
        assert_eq!(records.len(), 1);
        let message = Message::read(&records[0]).unwrap();
        let RecordedEvent { event, name, .. } = recorded(&message).unwrap();
        let EventKind::Migrate {
            tid: Tid(79),
            to: Cpu(now),
            from_behind,
        } = event.kind
        else {
            panic!("{event:?}");
        };
        assert_eq!(now, to);
        (from_behind, name.map(|(tid, _)| tid))
    };
    assert_eq!(migrated(1), (None, None));
    assert_eq!(migrated(0), (Some(Tid(80)), Some(Tid(80))));
}
