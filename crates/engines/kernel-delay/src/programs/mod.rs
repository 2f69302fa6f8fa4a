//! The programs that account for the time of a process's threads.
//!
//! Each thread has one value, found by one lookup an event. It holds a mark (until when time is accounted for) and a
//! bucket (where time goes at present). Whatever happens to the thread, the time from the mark until now goes to the bucket,
//! cut to the window; then the mark is now, and the bucket is the new one. So all of a thread's time is somewhere, once.
//! Nothing is reset when a window starts: sums only grow, and user space takes the difference.
//!
//! What lies where in the maps is in [`layout`].
//!
//! All programs are typed tracepoints (`tp_btf`), which read the tasks that they are given without a helper, and leave at
//! the first comparison if the task is none of the process's.
//!
//! | module | holds |
//! |---|---|
//! | `emit` | what all programs do: find the thread, account, count |
//! | `marks` | until when time is accounted for |
//! | `calls` | system calls |
//! | `sched` | the scheduler: switches, wake-ups |
//! | `places` | who ran instead: given at each switch |
//! | `preemptors` | who ran instead: found in a log when the wait is over |
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

use bpf_insn::{AsmError, Code, MapDef};
use bpf_program::{Module, ProgramDef, ProgramKind};
use uapi::perf::{Counter, MAJOR_FAULTS, MINOR_FAULTS, PAGE_FAULTS};
use zerocopy::FromZeros as _;

use crate::layout::{self, Comm, Thread, ThreadValue, offset};
pub use trigger::{TriggerKind, TriggerUse, Turn, trigger};

/// Where things are in the kernel's structures: bytes from their beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskFacts {
    /// `task_struct.tgid`.
    pub tgid: i16,
    /// `task_struct.pid`.
    pub pid: i16,
    /// `task_struct.comm`.
    pub comm: i16,
    /// `task_struct.real_parent`.
    pub parent: i16,
    /// `task_struct.group_leader`.
    pub leader: i16,
    /// `task_struct.start_boottime`: of a leader, when its process began. Whoever else has a process's number has another one.
    pub started: i16,
    /// `task_struct.on_cpu`, which kernels for one CPU lack.
    pub on_cpu: Option<i16>,
    /// `task_struct.thread_info.cpu`, or `task_struct.cpu` before Linux 5.16: the CPU in whose queue it is; kernels for one CPU lack it.
    pub cpu: Option<i16>,
    /// `task_struct.frozen`: its byte, and its bit in that; it is set while a task is frozen with its control group.
    pub frozen: Option<(i16, i32)>,
    /// `task_struct.__state`, where `sched_switch` does not pass it (before Linux 5.18).
    pub state: Option<i16>,
    /// `work_struct.func`: what a worker of the kernel does.
    pub work_function: i16,
    /// Where, and in which bits, it is marked that a task makes a 32-bit system call.
    pub compat: Option<(i16, i32)>,
    /// The system call's number in `pt_regs`: `orig_ax`, or `syscallno` on aarch64.
    pub call_number: i16,
    /// What a function returns, in `pt_regs`: `ax`, or `regs[0]` on aarch64.
    pub result: i16,
    /// The registers in `pt_regs` that a stack is walked with: instruction pointer, stack pointer, frame pointer, and link
    /// register where there is one.
    pub user_registers: [i16; layout::REGISTER_COUNT],
}

/// What is wanted of the programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Whose threads are accounted for.
    pub processes: Processes,
    /// Where things are.
    pub task: TaskFacts,
    /// The numbers of `poll` and what stands for it.
    pub polls: Vec<u32>,
    /// How many threads there is room for.
    pub threads: u32,
    /// Maximum number of CPUs of the machine.
    pub cpus: u32,
    /// Whether and which calls are sent as events.
    pub events: Option<EventOptions>,
    /// Which absences are counted, if any.
    pub absences: Option<Absences>,
    /// Whether the kernel lets programs exchange a word in one step (Linux 5.12), and gives them the current task with its type
    /// (5.11).
    pub exchange: bool,
}

/// Absences to count: times off the CPU, each from the switch that takes a thread off it, or the event after which it waits for one, to
/// the next such event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absences {
    /// Length of the shortest, in nanoseconds: less than 2^31.
    pub at_least: u32,
    /// Numbers of the system calls that are none, though the thread blocks in them.
    pub calls: Vec<u32>,
}

/// Whose threads are accounted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processes {
    /// One process, by its thread group: a comparison finds it.
    One(u32),
    /// Those of the map [`PROCESSES`](layout::PROCESSES): a look-up at each event of any process finds them.
    Several {
        /// Whether the processes that they start are accounted for, too.
        children: bool,
    },
}

impl Setting {
    /// Whether events come with stacks.
    fn has_stacks(&self) -> bool {
        self.events.as_ref().is_some_and(|events| events.stacks)
    }
}

/// Which system calls are sent as events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventOptions {
    /// Those that took at least this many nanoseconds.
    pub at_least: u64,
    /// Whether `poll` and what stands for it are left out.
    pub skip_polls: bool,
    /// Whether stacks come with them.
    pub stacks: bool,
    /// How many bytes of the user's stack are copied, a multiple of [`layout::STACK_PIECE`]; 0 to walk it by frame pointers
    /// in the kernel.
    pub copied: u32,
    /// The bytes of the ring.
    pub ring_bytes: u32,
}

/// A tracepoint and its program.
struct Hook {
    tracepoint: &'static str,
    code: fn(&Setting) -> Result<Code, AsmError>,
}

/// What is attached. Order matters: programs that set a thread's state are attached before programs that read it.
const HOOKS: [Hook; 24] = [
    Hook { tracepoint: "sched_process_fork", code: sched::fork },
    Hook { tracepoint: "sched_switch", code: sched::switch },
    Hook { tracepoint: "sched_wakeup", code: |setting| sched::wakeup(setting, false) },
    Hook { tracepoint: "sched_wakeup_new", code: |setting| sched::wakeup(setting, true) },
    Hook { tracepoint: "sched_migrate_task", code: sched::migrate },
    Hook { tracepoint: "sched_process_exec", code: sched::exec },
    Hook { tracepoint: "workqueue_execute_start", code: preemptors::work_begins },
    Hook { tracepoint: "workqueue_execute_end", code: preemptors::work_ends },
    Hook { tracepoint: "irq_handler_entry", code: |setting| interrupts::entry(setting, &interrupts::HARD) },
    Hook { tracepoint: "irq_handler_exit", code: |setting| interrupts::exit(setting, &interrupts::HARD) },
    Hook { tracepoint: "softirq_entry", code: |setting| interrupts::entry(setting, &interrupts::SOFT) },
    Hook { tracepoint: "softirq_exit", code: |setting| interrupts::exit(setting, &interrupts::SOFT) },
    Hook { tracepoint: "local_timer_entry", code: |setting| interrupts::entry(setting, &interrupts::VECTOR) },
    Hook { tracepoint: "local_timer_exit", code: |setting| interrupts::exit(setting, &interrupts::VECTOR) },
    Hook { tracepoint: "call_function_entry", code: |setting| interrupts::entry(setting, &interrupts::VECTOR) },
    Hook { tracepoint: "call_function_exit", code: |setting| interrupts::exit(setting, &interrupts::VECTOR) },
    Hook { tracepoint: "call_function_single_entry", code: |setting| interrupts::entry(setting, &interrupts::VECTOR) },
    Hook { tracepoint: "call_function_single_exit", code: |setting| interrupts::exit(setting, &interrupts::VECTOR) },
    Hook { tracepoint: "mm_vmscan_direct_reclaim_begin", code: memory::reclaim_begins },
    Hook { tracepoint: "mm_vmscan_direct_reclaim_end", code: memory::reclaim_ends },
    Hook { tracepoint: "mm_vmscan_memcg_reclaim_begin", code: memory::reclaim_begins },
    Hook { tracepoint: "mm_vmscan_memcg_reclaim_end", code: memory::reclaim_ends },
    Hook { tracepoint: "sys_enter", code: calls::enter },
    Hook { tracepoint: "sys_exit", code: calls::exit },
];

/// The tracepoints that programs are attached to.
pub fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|hook| hook.tracepoint).chain([FAULT_TRACEPOINT])
}

/// The tracepoint at which x86-64 begins a page fault of user code (`arch/x86/include/asm/trace/exceptions.h`).
pub const FAULT_TRACEPOINT: &str = "page_fault_user";

/// A program that is attached to what the kernel counts, or to nothing else than the tracepoint that it has as a target.
pub type CountedProgram = (ProgramDef, &'static [Counter]);

/// Returns the programs of page faults: that of their ends, and that of their begins, which is at the tracepoint with this id in the
/// kernel's BTF, if there is one. It is cheaper than an event of perf, and comes earlier.
pub fn page_faults(setting: &Setting, tracepoint: Option<u32>) -> Result<[CountedProgram; 2], AsmError> {
    let code = memory::fault_begins(setting)?;
    let begin = match tracepoint {
        Some(btf_id) => (ProgramDef::of_tracepoint(FAULT_TRACEPOINT, btf_id, code), &[][..]),
        None => (counted("page_fault_begins", code), &[PAGE_FAULTS][..]),
    };
    Ok([(counted("page_fault_ends", memory::fault_ends(setting)?), &[MINOR_FAULTS, MAJOR_FAULTS]), begin])
}

fn counted(name: &str, code: Code) -> ProgramDef {
    ProgramDef {
        name: name.to_owned(),
        kind: ProgramKind::PerfEvent,
        target: None,
        sleepable: false,
        code,
        subprograms: Vec::new(),
    }
}

/// The name of [`peek`].
pub const PEEK: &str = "peek";

/// The program that is attached to nothing: run on a CPU, it looks at who runs there.
pub fn peek(setting: &Setting) -> Result<ProgramDef, AsmError> {
    Ok(ProgramDef {
        name: PEEK.to_owned(),
        kind: ProgramKind::RawTracepoint,
        target: None,
        sleepable: false,
        code: sched::peek(setting)?,
        subprograms: Vec::new(),
    })
}

/// Makes the programs. `btf_id` gives a tracepoint's id in the kernel's BTF; a program whose tracepoint has none is left out.
pub fn module(setting: &Setting, btf_id: impl Fn(&str) -> Option<u32>) -> Result<Module, AsmError> {
    let mut module = Module { maps: layout::maps(setting.threads, setting.cpus), ..Module::default() };
    if let Some(events) = &setting.events {
        module.maps.push(MapDef::ring_buffer(bpf_program::event::RING, events.ring_bytes));
    }
    if let Processes::Several { .. } = setting.processes {
        module.maps.push(layout::processes());
    }
    let follows = setting.processes == Processes::Several { children: true };
    for Hook { tracepoint, code } in HOOKS.iter().filter(|hook| follows || hook.tracepoint != "sched_process_fork") {
        let Some(btf_id) = btf_id(tracepoint) else { continue };
        module.programs.push(ProgramDef::of_tracepoint(tracepoint, btf_id, code(setting)?));
    }
    Ok(module)
}

/// The value of a thread that was found in a process's list: its first event shows what it was doing. Its name is cut
/// where it is longer than the kernel's are.
pub fn found_thread(tgid: u32, name: &[u8]) -> ThreadValue {
    let mut value = thread(layout::state::UNSURE, offset!(Thread, unsure));
    value.thread.tgid = tgid;
    // The last byte stays 0, the name's end.
    let room = value.thread.comm.iter_mut().take(size_of::<Comm>() - 1);
    room.zip(name).for_each(|(to, from)| *to = *from);
    value
}

/// The value that a new thread starts with.
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
