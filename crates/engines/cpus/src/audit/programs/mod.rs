//! Programs that sum up the time of each audited CPU.
//!
//! A CPU is at a *level*: level 0 is the thread that it runs, and what interrupts that is a level
//! above. Each event adds the time since the last one to the current level. When a level ends, its
//! time goes to the sums of its kind and to the tally of its key. So all time of the CPU is counted
//! exactly once.
//!
//! | module | holds |
//! |---|---|
//! | `emit` | steps that all programs share: find the CPU's state, account, go a level up |
//! | `tally` | adds finished episodes to the sums |
//! | `sched` | switches, wake-ups, migrations |
//! | `interrupts` | interrupts, timers' functions, their causes; start and end of an audit |
//! | `work` | work items of kworkers |
//! | `turn` | ends a window and begins the next one |

mod emit;
mod interrupts;
mod sched;
mod tally;
#[cfg(test)]
mod tests;
mod turn;
mod work;

use bpf_program::{Module, ProgramDef, ProgramKind};
use sched_programs::{Hook, SchedError, TaskFacts, hooks};

use crate::audit::facts::{Facts, Members};
use crate::audit::layout::{self, kind};
use interrupts::{Id, entry, exit};

/// Setting that the programs are made for.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// Members of tasks.
    task: TaskFacts,
    /// Members of other structures.
    members: Members,
    /// True if the kernel can exchange a word atomically. Since Linux 5.12.
    exchange: bool,
    /// Nanoseconds of the shortest episode to send; `None` to send none.
    each: Option<u64>,
}

/// Tracepoint that the audit cannot do without.
const REQUIRED_TRACEPOINT: &str = "sched_switch";

/// Hooks to attach. Ends come before begins, so that no level is entered whose end is not seen.
const HOOKS: [Hook<Setting>; 33] = [
    Hook::typed("softirq_exit", |setting| exit(setting, kind::SOFT)),
    Hook::typed("softirq_entry", |setting| {
        entry(setting, kind::SOFT, Id::Vector)
    }),
    Hook::typed("softirq_raise", interrupts::raise),
    Hook::typed("irq_handler_exit", |setting| exit(setting, kind::HARD)),
    Hook::typed("irq_handler_entry", |setting| {
        entry(setting, kind::HARD, Id::Device)
    }),
    Hook::typed("local_timer_exit", |setting| {
        exit(setting, kind::TIMER_INTERRUPT)
    }),
    Hook::typed("local_timer_entry", |setting| {
        entry(setting, kind::TIMER_INTERRUPT, Id::None)
    }),
    Hook::typed("call_function_exit", |setting| exit(setting, kind::CALLS)),
    Hook::typed("call_function_entry", |setting| {
        entry(setting, kind::CALLS, Id::None)
    }),
    Hook::typed("call_function_single_exit", |setting| {
        exit(setting, kind::CALL)
    }),
    Hook::typed("call_function_single_entry", |setting| {
        entry(setting, kind::CALL, Id::None)
    }),
    Hook::typed("reschedule_exit", |setting| exit(setting, kind::RESCHEDULE)),
    Hook::typed("reschedule_entry", |setting| {
        entry(setting, kind::RESCHEDULE, Id::Reschedule)
    }),
    Hook::typed("irq_work_exit", |setting| exit(setting, kind::IRQ_WORK)),
    Hook::typed("irq_work_entry", |setting| {
        entry(setting, kind::IRQ_WORK, Id::None)
    }),
    Hook::typed("hrtimer_expire_exit", |setting| {
        exit(setting, kind::HRTIMER)
    }),
    Hook::typed("hrtimer_expire_entry", |setting| {
        entry(
            setting,
            kind::HRTIMER,
            Id::TimerFunction(setting.members.hrtimer_function),
        )
    }),
    Hook::typed("timer_expire_exit", |setting| exit(setting, kind::TIMER)),
    Hook::typed("timer_expire_entry", |setting| {
        entry(
            setting,
            kind::TIMER,
            Id::TimerFunction(setting.members.timer_function),
        )
    }),
    Hook::typed("ipi_exit", |setting| exit(setting, kind::IPI)),
    Hook::typed("ipi_entry", |setting| entry(setting, kind::IPI, Id::Reason)),
    Hook::raw("csd_function_exit", |setting| exit(setting, kind::FUNCTION)),
    Hook::raw("csd_function_entry", |setting| {
        entry(setting, kind::FUNCTION, Id::Function)
    }),
    Hook::raw("csd_queue_cpu", interrupts::queue_call),
    Hook::typed("ipi_send_cpu", interrupts::send_ipi),
    Hook::typed("nmi_handler", interrupts::nmi),
    Hook::typed("workqueue_execute_end", work::executed),
    Hook::typed("workqueue_execute_start", work::execute),
    Hook::typed("workqueue_queue_work", work::queue),
    Hook::typed("sched_migrate_task", sched::migrate),
    Hook::typed("sched_wakeup", sched::wake),
    Hook::typed("sched_wakeup_new", sched::wake),
    Hook::typed(REQUIRED_TRACEPOINT, sched::switch),
];

/// Tracepoints that kernels may lack, each with what is unknown without it and the release that
/// introduced it.
pub(crate) const MISSED: [(&str, &str); 3] = [
    (
        "csd_function_entry",
        "which functions other CPUs call by interrupt, and who requested them (Linux 6.5 and \
         later does)",
    ),
    (
        "ipi_send_cpu",
        "who sends interrupts for the scheduler (Linux 6.4 and later does)",
    ),
    (
        "workqueue_queue_work",
        "which work functions kworkers run, and who queued them",
    ),
];

/// Returns the tracepoints to which programs are attached.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|hook| hook.tracepoint)
}

/// Name of the unattached program that begins the audit of the CPU on which it runs.
pub(crate) const START: &str = "start";
/// Name of the unattached program that ends the audit of the CPU on which it runs.
pub(crate) const STOP: &str = "stop";
/// Name of the unattached program that ends a window and begins the next one.
pub(crate) const TURN: &str = "turn";

/// Makes the maps for `cpus` CPUs and a ring of `ring_bytes` bytes (0 for no ring), and the
/// programs of this kernel's tracepoints; [`START`], [`STOP`] and [`TURN`] are the last three.
pub(crate) fn module(
    facts: &Facts,
    exchange: bool,
    each: Option<u64>,
    (cpus, ring_bytes): (u32, u32),
) -> Result<Module, SchedError> {
    let setting = Setting {
        task: facts.programs.task,
        members: facts.members,
        exchange,
        each,
    };
    let mut programs = hooks::programs(
        &HOOKS,
        &[REQUIRED_TRACEPOINT],
        &setting,
        &facts.programs.tracepoints,
    )?;
    let unattached = |name, code| ProgramDef::new(name, ProgramKind::RawTracepoint, code);
    programs.push(unattached(START, interrupts::start(&setting)?));
    programs.push(unattached(STOP, interrupts::stop(&setting)?));
    programs.push(unattached(TURN, turn::turn(&setting)?));
    Ok(Module {
        maps: layout::maps(cpus, ring_bytes),
        programs,
        ..Module::default()
    })
}
