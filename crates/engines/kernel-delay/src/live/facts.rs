//! Facts about this kernel that the programs need, from its BTF.

use std::collections::HashMap;

use bpf_program::Member;
use host::{KernelSymbols, PerfSource};
use sched_programs::facts::tracepoint_id;
use sched_programs::{KernelTypes, member};
use text::patterns::nearest;
use typeinfo::{NameKind, SourceId, TypeError, TypeStore};
use uapi::Arch;

use crate::error::DelayError;
use crate::names::MAX_NEAR_NAMES;
use crate::programs::{self, RegisterFacts};
use crate::trigger::Trigger;

/// Member of `task_struct`, and its bits, by which the kernel marks a 32-bit system call:
/// `TS_COMPAT` of `arch/x86/include/asm/thread_info.h`; `TIF_32BIT` of arm64's, whose 32-bit
/// processes make no other calls.
const COMPAT: (&str, i32) = if matches!(Arch::HOST, Arch::Aarch64) {
    ("thread_info.flags", 1 << 22)
} else {
    ("thread_info.status", 2)
};

/// Prefix of the function that calls a tracepoint's programs, which every tracepoint has
/// (`DEFINE_TRACE_FN` of `include/linux/tracepoint.h`, since Linux 5.10).
const ITERATOR: &str = "__traceiter_";

/// Facts about this kernel.
#[derive(Debug)]
pub struct Facts {
    /// Members of tasks, and tracepoints: ours and the triggers'.
    pub(super) programs: sched_programs::Facts,
    pub(super) registers: RegisterFacts,
    /// True if programs attach to functions by kprobes, and not by their types (fentry).
    pub(super) has_kprobes: bool,
    /// Ids of the functions that triggers name, if they attach by types.
    pub(super) functions: HashMap<String, u32>,
}

impl Facts {
    /// Reads the kernel's types.
    pub fn read(triggers: &[&Trigger]) -> Result<Self, DelayError> {
        let bytes = KernelTypes::read()?;
        let (types, kernel) = bytes.parse()?;
        let programs = sched_programs::Facts::find(&types, programs::tracepoints())?;
        let has_kprobes = PerfSource::find("kprobe").is_some();
        let mut facts = Self {
            programs,
            registers: registers(&types)?,
            has_kprobes,
            functions: HashMap::new(),
        };
        for trigger in triggers {
            facts.add(trigger, &types, kernel)?;
        }
        Ok(facts)
    }

    /// Finds the ids of the tracepoint or function that a trigger names.
    fn add(
        &mut self,
        trigger: &Trigger,
        types: &TypeStore<'_>,
        kernel: SourceId,
    ) -> Result<(), DelayError> {
        match trigger {
            // These are made of the two that all calls have.
            Trigger::Tracepoint { system, .. } if system == "syscalls" => {}
            Trigger::Tracepoint { event, .. } => {
                let found = tracepoint_id(types, event)?;
                // A module's tracepoint has its types in the module; without its types its name is
                // enough.
                let near = || names_near(types, NameKind::Typedef, "btf_trace_", event);
                match found {
                    Some(id) => _ = self.programs.tracepoints.insert(event.clone(), id),
                    None if has_function(&format!("{ITERATOR}{event}"))? => {}
                    None => {
                        return Err(DelayError::NoTracepoint {
                            name: event.clone(),
                            near: near(),
                        });
                    }
                }
            }
            // Kprobes need only a symbol: modules' functions, and those that the types leave out,
            // have one, too.
            Trigger::Kernel { function, .. } if self.has_kprobes => {
                let symbols = symbols()?;
                if !symbols.functions().any(|(name, _)| name == function) {
                    let near = nearest(
                        function,
                        symbols.functions().map(|(name, _)| name),
                        MAX_NEAR_NAMES,
                    );
                    let near = near.into_iter().map(str::to_owned).collect();
                    return Err(DelayError::NoFunction {
                        name: function.clone(),
                        near,
                    });
                }
            }
            Trigger::Kernel { function, .. } => {
                let found = types
                    .function(kernel, function)?
                    .and_then(|found| types.btf_id(found.ty));
                let id = found.ok_or_else(|| match KernelSymbols::read() {
                    Ok(symbols) if symbols.functions().any(|(name, _)| name == function) => {
                        DelayError::Untyped {
                            function: function.clone(),
                        }
                    }
                    _ => {
                        let near = names_near(types, NameKind::Func, "", function);
                        DelayError::NoFunction {
                            name: function.clone(),
                            near,
                        }
                    }
                })?;
                self.functions.insert(function.clone(), id.id);
            }
            Trigger::Usdt { .. } | Trigger::User { .. } => {}
        }
        Ok(())
    }
}

/// Returns existing names that are near to a missing one.
fn names_near(types: &TypeStore<'_>, kind: NameKind, prefix: &str, name: &str) -> Vec<String> {
    let near = types.nearest(kind, &format!("{prefix}{name}"));
    near.iter()
        .filter_map(|near| near.strip_prefix(prefix))
        .map(str::to_owned)
        .collect()
}

fn symbols() -> Result<KernelSymbols, DelayError> {
    KernelSymbols::read().map_err(|source| DelayError::Symbols { source })
}

fn has_function(wanted: &str) -> Result<bool, DelayError> {
    Ok(symbols()?.functions().any(|(name, _)| name == wanted))
}

fn registers(types: &TypeStore<'_>) -> Result<RegisterFacts, TypeError> {
    let is_arm = Arch::HOST == Arch::Aarch64;
    let (number, result) = if is_arm {
        ("syscallno", "regs[0]")
    } else {
        ("orig_ax", "ax")
    };
    // The stack is walked with these (x86-64 has no link register: the first one again).
    let walked = if is_arm {
        ["pc", "sp", "regs[29]", "regs[30]"]
    } else {
        ["ip", "sp", "bp", "ip"]
    };
    let mut user = [Member::new(0); 4];
    for (at, name) in user.iter_mut().zip(walked) {
        *at = member(types, "pt_regs", name)?;
    }
    Ok(RegisterFacts {
        compat: member(types, "task_struct", COMPAT.0)
            .ok()
            .map(|flags| (flags, COMPAT.1)),
        call_number: member(types, "pt_regs", number)?,
        result: member(types, "pt_regs", result)?,
        user,
    })
}
