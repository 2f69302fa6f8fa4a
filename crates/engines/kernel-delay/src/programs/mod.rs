//! Programs that account for the time of a process's threads.
//!
//! Each thread has one value, found by one lookup an event. It holds a mark (the time until which
//! the thread is accounted for) and a bucket (the current destination of its time). At each event
//! of the thread, the time from the mark until now goes to the bucket, cut to the window; then the
//! mark is now, and the bucket is the new one. So all of a thread's time is counted somewhere,
//! once. Nothing is reset when a window starts: sums only grow, and user space takes the
//! difference.
//!
//! The [`layout`] module describes the contents of the maps.
//!
//! All programs are made of the parts of [`sched_programs`], and return at the first comparison if
//! the task does not belong to the process.
//!
//! | module | holds |
//! |---|---|
//! | `emit` | common parts of all programs: find the thread, account, count |
//! | `marks` | times until which threads are accounted for |
//! | `calls` | system calls |
//! | `sched` | the scheduler: switches, wake-ups |
//! | `places` | tasks that ran instead, attributed at each switch |
//! | `preemptors` | tasks that ran instead, found in a log when the wait is over |
//! | `memory` | page faults, reclaim |
//! | `interrupts` | hard and soft interrupts |
//! | `trigger` | programs that start or stop a window |
//! | [`upcalls`] | packets that Open vSwitch's kernel module sends to user space |

mod calls;
mod emit;
mod interrupts;
mod marks;
mod memory;
mod places;
mod preemptors;
mod sched;
#[cfg(test)]
mod tests;
mod trigger;
pub mod upcalls;

use bpf_insn::{AsmError, MapDef};
use bpf_program::{Member, Module, ProgramDef, ProgramKind, offset};
use sched_programs::{Hook, SchedError, TaskFacts, Tracepoints, hooks, processes};
use uapi::perf::{Counter, MAJOR_FAULTS, MINOR_FAULTS, PAGE_FAULTS};
use zerocopy::FromZeros as _;

use crate::layout::{self, Comm, Thread, ThreadValue};
pub use sched_programs::Processes;
pub use trigger::{TriggerKind, TriggerUse, Turn, trigger};

/// Members of `pt_regs`, and of the kernel's record of a task's system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegisterFacts {
    /// Member of a task, and its bits, that mark a 32-bit system call.
    pub compat: Option<(Member<u32>, i32)>,
    /// Number of the system call: `orig_ax`, or `syscallno` on aarch64.
    pub call_number: Member<u32>,
    /// Result of a function: `ax`, or `regs[0]` on aarch64.
    pub result: Member<u32>,
    /// Registers for walking a stack: instruction pointer, stack pointer, frame pointer, and link
    /// register if there is one.
    pub user: [Member<u64>; layout::REGISTER_COUNT],
}

/// Settings from which the programs are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Processes whose threads are accounted for.
    pub processes: Processes,
    /// Members of tasks.
    pub task: TaskFacts,
    /// Members of their registers.
    pub registers: RegisterFacts,
    /// Numbers of `poll` and its variants.
    pub polls: Vec<u32>,
    /// Maximum number of threads.
    pub threads: u32,
    /// Maximum number of CPUs of the machine.
    pub cpus: u32,
    /// Calls that are sent as events, if any.
    pub events: Option<EventOptions>,
    /// Absences that are counted, if any.
    pub absences: Option<Absences>,
    /// True if the kernel lets programs exchange a word in one step (Linux 5.12), and returns the
    /// current task with its type (5.11).
    pub exchange: bool,
}

/// Absences to count: times off the CPU. Each lasts from the switch that takes a thread off it, or
/// from the event after which it waits for one, to the next such event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absences {
    /// Minimum length in nanoseconds: less than 2^31.
    pub at_least: u32,
    /// Numbers of the system calls in which blocking does not count as absence.
    pub calls: Vec<u32>,
}

impl Setting {
    /// Returns true if events come with stacks.
    fn has_stacks(&self) -> bool {
        self.events.as_ref().is_some_and(|events| events.stacks)
    }
}

/// System calls that are sent as events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventOptions {
    /// Minimum duration in nanoseconds.
    pub at_least: u64,
    /// True to leave out `poll` and its variants.
    pub skip_polls: bool,
    /// True to send stacks with the events.
    pub stacks: bool,
    /// Bytes of the user's stack to copy, a multiple of [`layout::STACK_CHUNK_BYTES`]; 0 to walk it
    /// by frame pointers in the kernel.
    pub copied: u32,
    /// Size of the ring in bytes.
    pub ring_bytes: u32,
}

/// Hooks to attach. Order matters: programs that set a thread's state are attached before programs
/// that read it.
const HOOKS: [Hook<Setting>; 24] = [
    Hook::typed(processes::FORK, sched::fork),
    Hook::typed("sched_switch", sched::switch),
    Hook::typed("sched_wakeup", |setting| sched::wakeup(setting, false)),
    Hook::typed("sched_wakeup_new", |setting| sched::wakeup(setting, true)),
    Hook::typed("sched_migrate_task", sched::migrate),
    Hook::typed("sched_process_exec", sched::exec),
    Hook::typed("workqueue_execute_start", preemptors::work_begins),
    Hook::typed("workqueue_execute_end", preemptors::work_ends),
    Hook::typed("irq_handler_entry", |setting| {
        interrupts::entry(setting, &interrupts::HARD)
    }),
    Hook::typed("irq_handler_exit", |setting| {
        interrupts::exit(setting, &interrupts::HARD)
    }),
    Hook::typed("softirq_entry", |setting| {
        interrupts::entry(setting, &interrupts::SOFT)
    }),
    Hook::typed("softirq_exit", |setting| {
        interrupts::exit(setting, &interrupts::SOFT)
    }),
    Hook::typed("local_timer_entry", |setting| {
        interrupts::entry(setting, &interrupts::VECTOR)
    }),
    Hook::typed("local_timer_exit", |setting| {
        interrupts::exit(setting, &interrupts::VECTOR)
    }),
    Hook::typed("call_function_entry", |setting| {
        interrupts::entry(setting, &interrupts::VECTOR)
    }),
    Hook::typed("call_function_exit", |setting| {
        interrupts::exit(setting, &interrupts::VECTOR)
    }),
    Hook::typed("call_function_single_entry", |setting| {
        interrupts::entry(setting, &interrupts::VECTOR)
    }),
    Hook::typed("call_function_single_exit", |setting| {
        interrupts::exit(setting, &interrupts::VECTOR)
    }),
    Hook::typed("mm_vmscan_direct_reclaim_begin", memory::reclaim_begins),
    Hook::typed("mm_vmscan_direct_reclaim_end", memory::reclaim_ends),
    Hook::typed("mm_vmscan_memcg_reclaim_begin", memory::reclaim_begins),
    Hook::typed("mm_vmscan_memcg_reclaim_end", memory::reclaim_ends),
    Hook::typed("sys_enter", calls::enter),
    Hook::typed("sys_exit", calls::exit),
];

/// Returns the tracepoints to which programs are attached.
pub fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS
        .iter()
        .map(|hook| hook.tracepoint)
        .chain([FAULT_TRACEPOINT])
}

/// Tracepoint at which x86-64 begins a page fault of user code
/// (`arch/x86/include/asm/trace/exceptions.h`).
pub const FAULT_TRACEPOINT: &str = "page_fault_user";

/// Program for counters of the kernel; without counters, the program attaches only to its target
/// tracepoint.
pub type CountedProgram = (ProgramDef, &'static [Counter]);

/// Returns the programs for the ends and for the starts of page faults. The latter attaches to the
/// tracepoint with this id in the kernel's BTF, if there is one: it is cheaper than an event of
/// perf, and comes earlier.
pub fn page_faults(
    setting: &Setting,
    tracepoint: Option<u32>,
) -> Result<[CountedProgram; 2], AsmError> {
    let counted = |name, code| ProgramDef::new(name, ProgramKind::PerfEvent, code);
    let code = memory::fault_begins(setting)?;
    let begin = match tracepoint {
        Some(btf_id) => (
            ProgramDef::for_tracepoint(FAULT_TRACEPOINT, btf_id, code),
            &[][..],
        ),
        None => (counted("page_fault_begins", code), &[PAGE_FAULTS][..]),
    };
    Ok([
        (
            counted("page_fault_ends", memory::fault_ends(setting)?),
            &[MINOR_FAULTS, MAJOR_FAULTS],
        ),
        begin,
    ])
}

/// Name of [`peek`].
pub const PEEK: &str = "peek";

/// Makes the program that is attached to nothing: run on a CPU, it looks at the thread that runs
/// there.
pub fn peek(setting: &Setting) -> Result<ProgramDef, AsmError> {
    Ok(ProgramDef::new(
        PEEK,
        ProgramKind::RawTracepoint,
        sched::peek(setting)?,
    ))
}

/// Makes the programs of the tracepoints that this kernel has.
pub fn module(setting: &Setting, tracepoints: &Tracepoints) -> Result<Module, SchedError> {
    let mut maps = layout::maps(setting.threads, setting.cpus);
    if let Some(events) = &setting.events {
        maps.push(MapDef::ring_buffer(
            bpf_program::event::RING,
            events.ring_bytes,
        ));
    }
    maps.extend(setting.processes.map());
    let follows = setting.processes.with_children();
    let hooks = HOOKS
        .iter()
        .filter(|hook| follows || hook.tracepoint != processes::FORK);
    let programs = hooks::programs(hooks, &[], setting, tracepoints)?;
    Ok(Module {
        maps,
        programs,
        ..Module::default()
    })
}

/// Returns the value of a thread found in a process's list: its first event will show its state.
/// Its name is truncated to the length of the kernel's names.
pub fn found_thread(tgid: u32, name: &[u8]) -> ThreadValue {
    let mut value = thread(layout::state::UNSURE, offset!(Thread, unsure));
    value.thread.tgid = tgid;
    // The last byte stays 0, to end the name.
    let room = value.thread.comm.iter_mut().take(size_of::<Comm>() - 1);
    room.zip(name).for_each(|(to, from)| *to = *from);
    value
}

/// Returns the initial value of a new thread.
pub fn new_thread() -> ThreadValue {
    thread(layout::state::READY, offset!(Thread, ready))
}

fn thread(state: u32, bucket: i16) -> ThreadValue {
    let mut value = ThreadValue::new_zeroed();
    value.thread.state = state;
    value.thread.bucket = bucket.cast_unsigned().into();
    value.thread.call = layout::entry_of(layout::SLOT_UNKNOWN);
    value.thread.next_histogram = layout::histogram_at(0);
    value
}
