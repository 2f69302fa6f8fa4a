//! What the programs must know of this kernel, from its BTF.

use std::collections::HashMap;

use bpf_session::tasks::{switched_state, tracepoint_id};
use host::{KERNEL_BTF, KernelSymbols, PerfSource};
use text::patterns::nearest;
use typeinfo::{Btf, Field, NameKind, SourceId, TypeStore};
use uapi::Arch;

use crate::error::DelayError;
use crate::names::NEAR;
use crate::programs::{self, TaskFacts};
use crate::trigger::Trigger;

/// How the kernel knows that a task makes a 32-bit system call, a member of `task_struct` and its bits: `TS_COMPAT` of
/// `arch/x86/include/asm/thread_info.h`; `TIF_32BIT` of arm64's, whose 32-bit processes make no others.
const COMPAT: (&str, i32) =
    if matches!(Arch::HOST, Arch::Aarch64) { ("thread_info.flags", 1 << 22) } else { ("thread_info.status", 2) };

/// How the function of a tracepoint's programs begins, which every tracepoint has (`DEFINE_TRACE_FN` of
/// `include/linux/tracepoint.h`, since Linux 5.10).
const ITERATOR: &str = "__traceiter_";

/// The facts.
#[derive(Debug)]
pub struct Facts {
    pub(super) task: TaskFacts,
    /// The tracepoints' ids, of ours and of the triggers'.
    pub(super) tracepoints: HashMap<String, u32>,
    /// Whether functions are attached to by kprobes, and not by what the kernel has for its own types (fentry).
    pub(super) has_kprobes: bool,
    /// The ids of the functions that triggers name, where that is how.
    pub(super) functions: HashMap<String, u32>,
}

impl Facts {
    /// Reads the kernel's types.
    pub fn read(triggers: &[&Trigger]) -> Result<Self, DelayError> {
        let bytes = host::kernel_btf().map_err(|source| DelayError::NoTypes { path: KERNEL_BTF, source })?;
        let mut types = TypeStore::new(Arch::HOST);
        let kernel = types.add_btf(Btf::parse(&bytes)?)?;
        let mut tracepoints = HashMap::new();
        for name in programs::tracepoints() {
            tracepoints.extend(tracepoint_id(&types, name)?.map(|id| (name.to_owned(), id)));
        }
        let has_kprobes = PerfSource::find("kprobe").is_some();
        let mut facts = Self { task: task(&types)?, tracepoints, has_kprobes, functions: HashMap::new() };
        for trigger in triggers {
            facts.add(trigger, &types, kernel)?;
        }
        Ok(facts)
    }

    /// The ids of what a trigger names.
    fn add(&mut self, trigger: &Trigger, types: &TypeStore<'_>, kernel: SourceId) -> Result<(), DelayError> {
        match trigger {
            // These are made of the two that all calls have.
            Trigger::Tracepoint { system, .. } if system == "syscalls" => {}
            Trigger::Tracepoint { event, .. } => {
                let found = tracepoint_id(types, event)?;
                // A module's tracepoint has its types in the module; its name is enough where they are not wanted.
                let near = || names_near(types, NameKind::Typedef, "btf_trace_", event);
                match found {
                    Some(id) => _ = self.tracepoints.insert(event.clone(), id),
                    None if has_function(&format!("{ITERATOR}{event}"))? => {}
                    None => return Err(DelayError::NoTracepoint { name: event.clone(), near: near() }),
                }
            }
            // Kprobes want a symbol only: modules' functions, and those that the types leave out, have one, too.
            Trigger::Kernel { function, .. } if self.has_kprobes => {
                let symbols = symbols()?;
                if !symbols.functions().any(|(name, _)| name == function) {
                    let near = nearest(function, symbols.functions().map(|(name, _)| name), NEAR);
                    let near = near.into_iter().map(str::to_owned).collect();
                    return Err(DelayError::NoFunction { name: function.clone(), near });
                }
            }
            Trigger::Kernel { function, .. } => {
                let found = types.function(kernel, function)?.and_then(|found| types.btf_id(found.ty));
                let id = found.ok_or_else(|| match KernelSymbols::read() {
                    Ok(symbols) if symbols.functions().any(|(name, _)| name == function) => {
                        DelayError::Untyped { function: function.clone() }
                    }
                    _ => {
                        let near = names_near(types, NameKind::Func, "", function);
                        DelayError::NoFunction { name: function.clone(), near }
                    }
                })?;
                self.functions.insert(function.clone(), id.id);
            }
            Trigger::Usdt { .. } | Trigger::User { .. } => {}
        }
        Ok(())
    }
}

/// What is near to a name that is not there.
fn names_near(types: &TypeStore<'_>, kind: NameKind, prefix: &str, name: &str) -> Vec<String> {
    let near = types.nearest(kind, &format!("{prefix}{name}"));
    near.iter().filter_map(|near| near.strip_prefix(prefix)).map(str::to_owned).collect()
}

fn symbols() -> Result<KernelSymbols, DelayError> {
    KernelSymbols::read().map_err(|source| DelayError::Symbols { source })
}

fn has_function(wanted: &str) -> Result<bool, DelayError> {
    Ok(symbols()?.functions().any(|(name, _)| name == wanted))
}

/// Returns the byte and the bit of a member of one bit.
fn bit(member: Field) -> Option<(i16, i32)> {
    let at = i16::try_from(member.bit_offset / 8).ok()?;
    (member.bit_size == Some(1)).then(|| (at, 1 << (member.bit_offset % 8)))
}

fn task(types: &TypeStore<'_>) -> Result<TaskFacts, DelayError> {
    let task = types.require(NameKind::Struct, "task_struct")?;
    let at = |path: &str| types.short_offset(task, path);
    let optional = |path: &str| types.find_member(task, path).ok().flatten().and_then(|_| at(path).ok());
    let registers = types.require(NameKind::Struct, "pt_regs")?;
    let is_arm = Arch::HOST == Arch::Aarch64;
    let (number, result) = if is_arm { ("syscallno", "regs[0]") } else { ("orig_ax", "ax") };
    let compat = at(COMPAT.0).ok().map(|at| (at, COMPAT.1));
    // The stack is walked with these (x86-64 has no link register: the first one again).
    let walked = if is_arm { ["pc", "sp", "regs[29]", "regs[30]"] } else { ["ip", "sp", "bp", "ip"] };
    let mut user_registers = [0; 4];
    for (at, name) in user_registers.iter_mut().zip(walked) {
        *at = types.short_offset(registers, name)?;
    }
    let work = types.require(NameKind::Struct, "work_struct")?;
    Ok(TaskFacts {
        work_function: types.short_offset(work, "func")?,
        user_registers,
        tgid: at("tgid")?,
        pid: at("pid")?,
        comm: at("comm")?,
        parent: at("real_parent")?,
        leader: at("group_leader")?,
        // Linux 5.5 and later have it by this name.
        started: at("start_boottime")?,
        on_cpu: optional("on_cpu"),
        frozen: types.find_member(task, "frozen").ok().flatten().and_then(bit),
        cpu: at("thread_info.cpu").or_else(|_| at("cpu")).ok(),
        state: switched_state(types)?,
        compat,
        call_number: types.short_offset(registers, number)?,
        result: types.short_offset(registers, result)?,
    })
}
