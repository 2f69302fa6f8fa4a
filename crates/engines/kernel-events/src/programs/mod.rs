//! Programs that send the events of the processes.
//!
//! In all of them r6 is the context, r8 the time and r9 the CPU. The event is made on the stack.
//!
//! | module | holds |
//! |---|---|
//! | `emit` | steps that all programs share: the event, sending it, counting losses |
//! | `queues` | waiting threads of the processes, and their CPUs |
//! | `sched` | switches, wake-ups, migrations, new processes |
//! | `signals` | signals that stop a process |
//! | `wakers` | causes of wake-ups: threads, and the interrupts that each CPU is in |
//! | `current` | interrupts and system calls, which belong to the CPU's thread |

mod current;
mod emit;
mod queues;
mod sched;
mod signals;
#[cfg(test)]
mod tests;
mod wakers;

use bpf_program::Module;
use sched_programs::{Hook, Processes, SchedError, TaskFacts, Tracepoints, hooks, processes};

use crate::layout::{self, kind};
use current::{Number, interrupt, send_current};

/// Setting that the programs are made for.
pub(crate) struct Setting {
    /// Members of tasks.
    pub(crate) task: TaskFacts,
    /// Processes whose threads' events are sent.
    pub(crate) processes: Processes,
    /// True if a helper returns the current task with its type; only several processes need it.
    pub(crate) types_current: bool,
    /// Size of the ring, in bytes.
    pub(crate) ring_bytes: u32,
}

/// Tracepoints that recording cannot do without; any other may be missing on another machine or
/// kernel.
const REQUIRED_TRACEPOINTS: [&str; 2] = ["sched_switch", "sched_wakeup"];

/// Makes the hook of a tracepoint whose event belongs to the current thread.
macro_rules! current {
    ($tracepoint:literal, $kind:expr, $number:ident) => {
        Hook::typed($tracepoint, |setting| {
            send_current(setting, $kind, Number::$number)
        })
    };
}

/// Makes the hook of a tracepoint of an interrupt.
macro_rules! interrupt {
    ($tracepoint:literal, $kind:expr, $number:ident) => {
        Hook::typed($tracepoint, |setting| {
            interrupt(setting, $kind, Number::$number)
        })
    };
}

/// Hooks to attach, in this order: the end of an interrupt before its begin, so that no CPU seems to
/// be in one that has ended.
const HOOKS: [Hook<Setting>; 19] = [
    // A child must be known when it is woken.
    Hook::typed(processes::FORK, sched::fork),
    Hook::typed("sched_switch", sched::switch),
    Hook::typed("sched_wakeup", |setting| sched::wake(setting, kind::WAKE)),
    Hook::typed("sched_wakeup_new", |setting| {
        sched::wake(setting, kind::START)
    }),
    Hook::typed("sched_waking", wakers::waking),
    Hook::typed("sched_migrate_task", sched::migrate),
    interrupt!("irq_handler_exit", kind::HARD + 1, First),
    interrupt!("irq_handler_entry", kind::HARD, First),
    interrupt!("softirq_exit", kind::SOFT + 1, First),
    interrupt!("softirq_entry", kind::SOFT, First),
    interrupt!("local_timer_exit", kind::TICK + 1, None),
    interrupt!("local_timer_entry", kind::TICK, None),
    interrupt!("call_function_exit", kind::CALL + 1, None),
    interrupt!("call_function_entry", kind::CALL, None),
    interrupt!("call_function_single_exit", kind::CALL + 1, None),
    interrupt!("call_function_single_entry", kind::CALL, None),
    current!("sys_enter", kind::CALL_ENTER, Second),
    current!("sys_exit", kind::CALL_EXIT, Second),
    Hook::typed("signal_generate", signals::stop),
];

/// Returns the tracepoints to which programs are attached.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|hook| hook.tracepoint)
}

/// Makes the maps, for this number of CPUs, and the programs of the tracepoints that this kernel
/// has.
pub(crate) fn module(
    setting: &Setting,
    tracepoints: &Tracepoints,
    cpus: u32,
) -> Result<Module, SchedError> {
    let follows = setting.processes.with_children();
    let mut required = REQUIRED_TRACEPOINTS.to_vec();
    required.extend(follows.then_some(processes::FORK));
    let hooks = HOOKS
        .iter()
        .filter(|hook| follows || hook.tracepoint != processes::FORK);
    let programs = hooks::programs(hooks, &required, setting, tracepoints)?;
    let mut maps = layout::maps(setting.ring_bytes, cpus);
    maps.extend(setting.processes.map());
    Ok(Module {
        maps,
        programs,
        ..Module::default()
    })
}
