//! Parts of programs, run on the interpreter.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use bpf_insn::Reg::{R0, R1, R6, R9};
use bpf_insn::{Asm, Code, Label};
use bpf_interp::{Machine, Program};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Member, Place, argument};
use sched_programs::processes::{self, PROCESSES, Task};
use sched_programs::{
    Hook, OwnTaskCheck, ProcessStack, Processes, Reasons, SchedError, Switch, TaskFacts,
    Tracepoints, hooks,
};

/// Address of the task that programs are given.
const TASK: u64 = 0xffff_8880_0000_1000;
/// Address of the first thread of its process.
const LEADER: u64 = 0xffff_8880_0000_2000;

fn facts(passes_state: bool) -> TaskFacts {
    TaskFacts {
        tgid: Member::new(0),
        pid: Member::new(4),
        leader: Member::new(8),
        started: Member::new(16),
        state: Member::new(24),
        comm: Member::new(32),
        parent: Member::new(48),
        flags: Member::new(56),
        prio: Member::new(60),
        policy: Member::new(64),
        work_function: Member::new(72),
        cpu: None,
        on_cpu: None,
        frozen: None,
        passes_state,
    }
}

fn task(tgid: u32, started: u64, state: u32) -> Vec<u8> {
    let mut bytes = vec![0; 80];
    bytes[..4].copy_from_slice(&tgid.to_ne_bytes());
    bytes[8..16].copy_from_slice(&LEADER.to_ne_bytes());
    bytes[16..24].copy_from_slice(&started.to_ne_bytes());
    bytes[24..28].copy_from_slice(&state.to_ne_bytes());
    bytes
}

/// A machine with the task, the last thread of a process that began at this time.
fn machine(tgid: u32, started: u64) -> Machine {
    let mut machine = Machine::new(&[processes::map()]).unwrap();
    put(&mut machine, tgid, started);
    machine
}

fn put(machine: &mut Machine, tgid: u32, started: u64) {
    machine.put_object(TASK, &task(tgid, 0, 0));
    machine.put_object(LEADER, &task(tgid, started, 0));
}

fn run(machine: &mut Machine, code: &Code) -> u64 {
    machine
        .run(&Program::new("test", code), &TASK.to_ne_bytes())
        .unwrap()
}

/// A program that returns 1 unless the body goes to its label.
fn question(body: impl FnOnce(&mut Asm, Label)) -> Code {
    let ask = |asm: &mut Asm, no| {
        asm.get(R6, argument(R1, 0));
        body(asm, no);
        asm.mov(R0, 1).exit();
    };
    program(ask).unwrap()
}

fn ours(processes: Processes) -> OwnTaskCheck {
    OwnTaskCheck {
        processes,
        task: facts(true),
        stack: Place::<ProcessStack>::stack(),
    }
}

#[test]
fn one_process_is_found_by_its_number() {
    let ours = ours(Processes::One(77));
    let code = question(|asm, no| ours.unless(asm, R6, no));
    assert_eq!(run(&mut machine(77, 500), &code), 1);
    assert_eq!(run(&mut machine(78, 500), &code), 0);
}

/// By a task with its type, and by its address, as before Linux 5.11.
#[test]
fn a_process_of_several_is_the_one_that_began_then() {
    let ours = ours(Processes::Several { children: true });
    let typed = question(|asm, no| ours.unless(asm, R6, no));
    let by_address = question(|asm, no| {
        asm.get(R1, facts(true).tgid.at(R6));
        ours.unless_group(asm, Task::Address(R6), no);
    });
    // User space does not know when it began. The tasks that are put there have no begin of their own.
    let enter = question(|asm, _| ours.enter(asm, R6));
    for code in [typed, by_address] {
        let mut machine = machine(77, 500);
        assert_eq!(run(&mut machine, &code), 0, "it is not entered yet");
        run(&mut machine, &enter);
        assert_eq!(run(&mut machine, &code), 1);
        assert_eq!(
            machine.values(PROCESSES, &77_u32.to_ne_bytes()),
            [500_u64.to_ne_bytes()]
        );
        assert_eq!(run(&mut machine, &code), 1);
        put(&mut machine, 77, 900);
        assert_eq!(
            run(&mut machine, &code),
            0,
            "another process has its number"
        );
        put(&mut machine, 78, 500);
        assert_eq!(run(&mut machine, &code), 0);
    }
}

#[test]
fn a_process_that_one_of_ours_starts_is_ours() {
    const CHILD: u64 = 0xffff_8880_0000_3000;
    let ours = ours(Processes::Several { children: true });
    let no_room = |asm: &mut Asm| _ = asm.mov(R0, 7).exit();
    let fork = ours.follow_children(no_room).unwrap();
    let enter = question(|asm, _| ours.enter(asm, R6));
    let context: Vec<u8> = [TASK, CHILD]
        .iter()
        .flat_map(|argument| argument.to_ne_bytes())
        .collect();
    let child = 78_u32.to_ne_bytes();
    for (is_ours, child_group, entered) in [(true, 78, true), (true, 77, false), (false, 78, false)]
    {
        let mut machine = machine(77, 500);
        if is_ours {
            run(&mut machine, &enter);
        }
        machine.put_object(CHILD, &task(child_group, 900, 0));
        let program = Program::new("fork", &fork);
        assert_eq!(machine.run(&program, &context).unwrap(), 0);
        let begun: &[[u8; 8]] = if entered {
            &[900_u64.to_ne_bytes()]
        } else {
            &[]
        };
        assert_eq!(machine.values(PROCESSES, &child), begun);
    }
}

#[test]
fn a_switch_shows_why_a_task_leaves() {
    const REASONS: Reasons = Reasons {
        ready: 1,
        blocked: 2,
        stopped: 3,
        dead: 4,
    };
    for (preempted, state, reason) in [
        (0, 0, 1),
        (1, 2, 1),
        (0, 1, 2),
        (0, 2, 2),
        (0, 4, 3),
        (0, 8, 3),
        (0, 0x20, 4),
        (0, 0x80, 4),
    ] {
        for passes_state in [true, false] {
            let code = program(|asm, _| {
                let why = Place::<u64>::stack();
                asm.mov(R6, R1).get(R9, Switch(R6).prev());
                Switch(R6).reason(asm, &facts(passes_state), R9, why, REASONS);
                asm.get(R0, why).exit();
            });
            let mut machine = machine(77, 500);
            machine.put_object(TASK, &task(77, 500, state));
            let passed = if passes_state {
                u64::from(state)
            } else {
                0xdead
            };
            let context: Vec<u8> = [preempted, TASK, TASK, passed]
                .iter()
                .flat_map(|argument| argument.to_ne_bytes())
                .collect();
            let code = code.unwrap();
            let found = machine
                .run(&Program::new("switch", &code), &context)
                .unwrap();
            assert_eq!(found, reason, "preempted {preempted}, state {state:#x}");
        }
    }
}

#[test]
fn a_hook_that_is_needed_must_be_there() {
    let hooks = [
        Hook::typed("here", |()| program(|_, _| ())),
        Hook::raw("there", |()| program(|_, _| ())),
    ];
    let tracepoints = Tracepoints::from([("there".to_owned(), 7)]);
    let made = hooks::programs(&hooks, &["there"], &(), &tracepoints).unwrap();
    let names: Vec<_> = made
        .iter()
        .map(|program| (&*program.name, program.target.is_some()))
        .collect();
    assert_eq!(names, [("there", false)]);
    let missing = hooks::programs(&hooks, &["here"], &(), &tracepoints);
    assert!(matches!(
        missing,
        Err(SchedError::NoTracepoint { name: "here" })
    ));
}
