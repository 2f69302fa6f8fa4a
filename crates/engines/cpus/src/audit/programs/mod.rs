//! The programs: they sum up, for each audited CPU, what it was at.
//!
//! A CPU is at a *level*: level 0 is the thread that it runs, and what interrupts that is a level above. Each event gives the time
//! since the last one to the level that the CPU was at. When a level ends, its time goes to the sums of its kind and to the tally
//! of its key. So all time of the CPU is somewhere, once.
//!
//! | module | holds |
//! |---|---|
//! | `emit` | what all programs do: find the CPU's state, account, go a level up |
//! | `tally` | adds what is over to the sums |
//! | `sched` | switches, wake-ups, migrations |
//! | `interrupts` | device, soft and other interrupts, timers' functions, who caused them; begin and end of an audit |
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

use bpf_insn::{AsmError, Code};
use bpf_program::{Module, ProgramDef, ProgramKind};

use crate::audit::error::AuditError;
use crate::audit::facts::Facts;
use crate::audit::layout::{self, kind};
use interrupts::{Id, entry, exit};

/// What is wanted of the programs.
pub(crate) struct Setting<'a> {
    /// Where things are.
    pub(crate) facts: &'a Facts,
    /// Whether a word may be exchanged in one step. Since Linux 5.12.
    pub(crate) exchange: bool,
    /// Each one that took at least this many nanoseconds is sent.
    pub(crate) each: Option<u64>,
    /// The bytes of the ring; 0 for no ring.
    pub(crate) ring_bytes: u32,
}

/// A tracepoint and its program.
struct Hook {
    tracepoint: &'static str,
    /// Without types, since one of its arguments is a function, which programs with types do not get.
    is_raw: bool,
    code: fn(&Setting<'_>) -> Result<Code, AsmError>,
}

const fn typed(tracepoint: &'static str, code: fn(&Setting<'_>) -> Result<Code, AsmError>) -> Hook {
    Hook { tracepoint, is_raw: false, code }
}

const fn raw(tracepoint: &'static str, code: fn(&Setting<'_>) -> Result<Code, AsmError>) -> Hook {
    Hook { tracepoint, is_raw: true, code }
}

/// The only one without which nothing is known.
const NEEDED: &str = "sched_switch";

/// What is attached. Ends come before begins, so that no level is entered whose end is not seen.
const HOOKS: [Hook; 33] = [
    typed("softirq_exit", |setting| exit(setting, kind::SOFT)),
    typed("softirq_entry", |setting| entry(setting, kind::SOFT, Id::Vector)),
    typed("softirq_raise", interrupts::raise),
    typed("irq_handler_exit", |setting| exit(setting, kind::HARD)),
    typed("irq_handler_entry", |setting| entry(setting, kind::HARD, Id::Device)),
    typed("local_timer_exit", |setting| exit(setting, kind::TIMER_INTERRUPT)),
    typed("local_timer_entry", |setting| entry(setting, kind::TIMER_INTERRUPT, Id::None)),
    typed("call_function_exit", |setting| exit(setting, kind::CALLS)),
    typed("call_function_entry", |setting| entry(setting, kind::CALLS, Id::None)),
    typed("call_function_single_exit", |setting| exit(setting, kind::CALL)),
    typed("call_function_single_entry", |setting| entry(setting, kind::CALL, Id::None)),
    typed("reschedule_exit", |setting| exit(setting, kind::RESCHEDULE)),
    typed("reschedule_entry", |setting| entry(setting, kind::RESCHEDULE, Id::Reschedule)),
    typed("irq_work_exit", |setting| exit(setting, kind::IRQ_WORK)),
    typed("irq_work_entry", |setting| entry(setting, kind::IRQ_WORK, Id::None)),
    typed("hrtimer_expire_exit", |setting| exit(setting, kind::HRTIMER)),
    typed("hrtimer_expire_entry", |setting| {
        entry(setting, kind::HRTIMER, Id::TimerFunction(setting.facts.hrtimer_function))
    }),
    typed("timer_expire_exit", |setting| exit(setting, kind::TIMER)),
    typed("timer_expire_entry", |setting| entry(setting, kind::TIMER, Id::TimerFunction(setting.facts.timer_function))),
    typed("ipi_exit", |setting| exit(setting, kind::IPI)),
    typed("ipi_entry", |setting| entry(setting, kind::IPI, Id::Reason)),
    raw("csd_function_exit", |setting| exit(setting, kind::FUNCTION)),
    raw("csd_function_entry", |setting| entry(setting, kind::FUNCTION, Id::Function)),
    raw("csd_queue_cpu", interrupts::queue_call),
    typed("ipi_send_cpu", interrupts::send_ipi),
    typed("nmi_handler", interrupts::nmi),
    typed("workqueue_execute_end", work::executed),
    typed("workqueue_execute_start", work::execute),
    typed("workqueue_queue_work", work::queue),
    typed("sched_migrate_task", sched::migrate),
    typed("sched_wakeup", sched::wake),
    typed("sched_wakeup_new", sched::wake),
    typed(NEEDED, sched::switch),
];

/// Tracepoints that kernels may lack: what is not known without them, and who has them.
pub(crate) const MISSED: [(&str, &str); 3] = [
    (
        "csd_function_entry",
        "which functions other CPUs call with their interrupts, and who asked for them: Linux 6.5 and later",
    ),
    ("ipi_send_cpu", "who sends interrupts for the scheduler: Linux 6.4 and later"),
    ("workqueue_queue_work", "which work functions kworkers run, and who queued them"),
];

/// The tracepoints that programs are attached to.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|hook| hook.tracepoint)
}

/// The programs that are attached to nothing: run on a CPU, they begin and end its audit.
pub(crate) const START: &str = "start";
pub(crate) const STOP: &str = "stop";
/// The same for the program that does both: its window ends, and the next one begins.
pub(crate) const TURN: &str = "turn";

/// The maps for that many CPUs, and the programs of the tracepoints that this kernel has; [`START`], [`STOP`] and [`TURN`] are the last
/// three.
pub(crate) fn module(setting: &Setting<'_>, cpus: u32) -> Result<Module, AuditError> {
    let mut module = Module { maps: layout::maps(cpus, setting.ring_bytes), ..Module::default() };
    for Hook { tracepoint, is_raw, code } in &HOOKS {
        let Some(&btf_id) = setting.facts.tracepoints.get(tracepoint) else {
            if *tracepoint == NEEDED {
                return Err(AuditError::NoTracepoint { name: tracepoint });
            }
            continue;
        };
        let code = code(setting)?;
        let program =
            if *is_raw { unattached(tracepoint, code) } else { ProgramDef::of_tracepoint(tracepoint, btf_id, code) };
        module.programs.push(program);
    }
    module.programs.push(unattached(START, interrupts::start(setting)?));
    module.programs.push(unattached(STOP, interrupts::stop(setting)?));
    module.programs.push(unattached(TURN, turn::turn(setting)?));
    Ok(module)
}

fn unattached(name: &str, code: Code) -> ProgramDef {
    ProgramDef {
        name: name.to_owned(),
        kind: ProgramKind::RawTracepoint,
        target: None,
        sleepable: false,
        code,
        subprograms: Vec::new(),
    }
}
