//! The programs: each looks whether the event is of the process, and sends it.
//!
//! In all of them r6 is the context, r8 the time and r9 the CPU. The event is made on the stack.
//!
//! | module | holds |
//! |---|---|
//! | `emit` | what all programs do: the event, sending it, counting what was lost |
//! | `queues` | which threads of the process wait, and for which CPU |
//! | `sched` | switches, wake-ups, migrations |
//! | `current` | interrupts and system calls, which are of the CPU's thread |

mod current;
mod emit;
mod queues;
mod sched;
#[cfg(test)]
mod tests;

use bpf_insn::{AsmError, Code};
use bpf_program::{Module, ProgramDef};

use crate::error::EventsError;
use crate::facts::Facts;
use crate::layout::{self, kind};
use current::Number;

/// What is wanted of the programs.
pub(crate) struct Setting<'a> {
    /// Where things are.
    pub(crate) facts: &'a Facts,
    /// The process: its thread group.
    pub(crate) tgid: u32,
    /// The bytes of the ring.
    pub(crate) ring_bytes: u32,
}

/// A tracepoint and its program.
struct Hook {
    tracepoint: &'static str,
    code: fn(&Setting<'_>) -> Result<Code, AsmError>,
}

/// The only ones without which nothing is known; each other one may be missing, on another machine or kernel.
const NEEDED: [&str; 2] = ["sched_switch", "sched_wakeup"];

/// What is attached.
const HOOKS: [Hook; 16] = [
    Hook { tracepoint: "sched_switch", code: sched::switch },
    Hook { tracepoint: "sched_wakeup", code: sched::wake },
    Hook { tracepoint: "sched_wakeup_new", code: sched::wake },
    Hook { tracepoint: "sched_migrate_task", code: sched::migrate },
    Hook { tracepoint: "irq_handler_entry", code: |setting| current::program(setting, kind::HARD, Number::First) },
    Hook { tracepoint: "irq_handler_exit", code: |setting| current::program(setting, kind::HARD + 1, Number::First) },
    Hook { tracepoint: "softirq_entry", code: |setting| current::program(setting, kind::SOFT, Number::First) },
    Hook { tracepoint: "softirq_exit", code: |setting| current::program(setting, kind::SOFT + 1, Number::First) },
    Hook { tracepoint: "local_timer_entry", code: |setting| current::program(setting, kind::TICK, Number::None) },
    Hook { tracepoint: "local_timer_exit", code: |setting| current::program(setting, kind::TICK + 1, Number::None) },
    Hook { tracepoint: "call_function_entry", code: |setting| current::program(setting, kind::CALL, Number::None) },
    Hook { tracepoint: "call_function_exit", code: |setting| current::program(setting, kind::CALL + 1, Number::None) },
    Hook {
        tracepoint: "call_function_single_entry",
        code: |setting| current::program(setting, kind::CALL, Number::None),
    },
    Hook {
        tracepoint: "call_function_single_exit",
        code: |setting| current::program(setting, kind::CALL + 1, Number::None),
    },
    Hook { tracepoint: "sys_enter", code: |setting| current::program(setting, kind::CALL_ENTER, Number::Second) },
    Hook { tracepoint: "sys_exit", code: |setting| current::program(setting, kind::CALL_EXIT, Number::Second) },
];

/// The tracepoints that programs are attached to.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|hook| hook.tracepoint)
}

/// The maps for that many CPUs, and the programs of the tracepoints that this kernel has.
pub(crate) fn module(setting: &Setting<'_>, cpus: u32) -> Result<Module, EventsError> {
    let mut module = Module { maps: layout::maps(setting.ring_bytes, cpus), ..Module::default() };
    for Hook { tracepoint, code } in &HOOKS {
        let Some(&btf_id) = setting.facts.tracepoints.get(tracepoint) else {
            if NEEDED.contains(tracepoint) {
                return Err(EventsError::NoTracepoint { name: tracepoint });
            }
            continue;
        };
        module.programs.push(ProgramDef::of_tracepoint(tracepoint, btf_id, code(setting)?));
    }
    Ok(module)
}
