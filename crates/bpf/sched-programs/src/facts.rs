//! Facts of this kernel, from its BTF: offsets in its structures, and ids of its tracepoints.

use std::collections::HashMap;

use bpf_program::Member;
use host::{KERNEL_BTF, kernel_btf};
use typeinfo::{Btf, Field, NameKind, SourceId, TypeError, TypeStore};
use uapi::Arch;

use crate::SchedError;

/// Name of a task, which ends with its first 0.
pub type Comm = [u8; 16];

/// Ids of tracepoints in the kernel's BTF, by name; those that this kernel lacks are not there.
pub type Tracepoints = HashMap<String, u32>;

/// The kernel's types, as bytes.
pub struct KernelTypes(Vec<u8>);

impl KernelTypes {
    /// Reads them.
    ///
    /// # Errors
    /// The kernel does not describe its types.
    pub fn read() -> Result<Self, SchedError> {
        kernel_btf()
            .map(Self)
            .map_err(|source| SchedError::NoTypes {
                path: KERNEL_BTF,
                source,
            })
    }

    /// Parses them.
    ///
    /// # Errors
    /// They are damaged.
    pub fn parse(&self) -> Result<(TypeStore<'_>, SourceId), SchedError> {
        let mut types = TypeStore::new(Arch::HOST);
        let kernel = types.add_btf(Btf::parse(&self.0)?)?;
        Ok((types, kernel))
    }
}

/// Facts that the programs of all engines need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Members of tasks.
    pub task: TaskFacts,
    /// Tracepoints.
    pub tracepoints: Tracepoints,
}

impl Facts {
    /// Reads the kernel's types and finds the same as [`Facts::find`].
    ///
    /// # Errors
    /// The kernel does not describe its types, or they are not as expected.
    pub fn read<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, SchedError> {
        Self::find(&KernelTypes::read()?.parse()?.0, names)
    }

    /// Finds the members, and the tracepoints with these names.
    ///
    /// # Errors
    /// The kernel's types are not as expected.
    pub fn find<'n>(
        types: &TypeStore<'_>,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, SchedError> {
        let mut tracepoints = Tracepoints::new();
        for name in names {
            tracepoints.extend(tracepoint_id(types, name)?.map(|id| (name.to_owned(), id)));
        }
        Ok(Self {
            task: TaskFacts::find(types)?,
            tracepoints,
        })
    }
}

/// Members of `task_struct`, and of the work that workers of the kernel do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskFacts {
    /// Thread group: the process.
    pub tgid: Member<u32>,
    /// Number of the thread.
    pub pid: Member<u32>,
    /// Name.
    pub comm: Member<Comm>,
    /// Address of the parent (`real_parent`).
    pub parent: Member<u64>,
    /// Address of the first thread of the group.
    pub leader: Member<u64>,
    /// Time of the boot clock at which it began (`start_boottime`). That of a leader distinguishes
    /// processes that have the same number one after the other.
    pub started: Member<u64>,
    /// Flags (`PF_*`).
    pub flags: Member<u32>,
    /// Priority.
    pub prio: Member<u32>,
    /// Scheduling policy.
    pub policy: Member<u32>,
    /// CPU in whose queue it is; kernels for one CPU lack it.
    pub cpu: Option<Member<u32>>,
    /// Nonzero while it is on a CPU; kernels for one CPU lack it.
    pub on_cpu: Option<Member<u32>>,
    /// Byte and bit that are set while it is frozen with its control group, if there is such a bit.
    pub frozen: Option<(Member<u8>, u32)>,
    /// State.
    pub state: Member<u32>,
    /// True if `sched_switch` passes the state: since Linux 5.18.
    pub passes_state: bool,
    /// Address of the function of a worker's work (`work_struct.func`).
    pub work_function: Member<u64>,
}

impl TaskFacts {
    fn find(types: &TypeStore<'_>) -> Result<Self, TypeError> {
        let task = types.require(NameKind::Struct, "task_struct")?;
        let frozen = types.find_member(task, "frozen").ok().flatten();
        Ok(Self {
            tgid: member(types, "task_struct", "tgid")?,
            pid: member(types, "task_struct", "pid")?,
            comm: member(types, "task_struct", "comm")?,
            parent: member(types, "task_struct", "real_parent")?,
            leader: member(types, "task_struct", "group_leader")?,
            // Linux 5.5 and later have it by this name.
            started: member(types, "task_struct", "start_boottime")?,
            flags: member(types, "task_struct", "flags")?,
            prio: member(types, "task_struct", "prio")?,
            policy: member(types, "task_struct", "policy")?,
            // Before 5.16 it is the task's own on most machines, and the first member's since.
            cpu: member(types, "task_struct", "thread_info.cpu")
                .or_else(|_| member(types, "task_struct", "cpu"))
                .ok(),
            on_cpu: member(types, "task_struct", "on_cpu").ok(),
            frozen: frozen.and_then(bit),
            // `__state` was called `state` before 5.14.
            state: member(types, "task_struct", "__state")
                .or_else(|_| member(types, "task_struct", "state"))?,
            passes_state: passes_state(types)?,
            work_function: member(types, "work_struct", "func")?,
        })
    }
}

/// Finds a member of one of the kernel's structures.
///
/// # Errors
/// There is no such member, or it is too far from the structure's beginning.
pub fn member<T>(types: &TypeStore<'_>, of: &str, path: &str) -> Result<Member<T>, TypeError> {
    types
        .short_offset(types.require(NameKind::Struct, of)?, path)
        .map(Member::new)
}

/// Returns the byte and the bit of a member of one bit.
fn bit(field: Field) -> Option<(Member<u8>, u32)> {
    let byte = Member::new(i16::try_from(field.bit_offset / 8).ok()?);
    (field.bit_size == Some(1)).then(|| (byte, 1 << (field.bit_offset % 8)))
}

/// Returns true if `sched_switch` passes the state of the task that leaves, as its fourth argument.
fn passes_state(types: &TypeStore<'_>) -> Result<bool, TypeError> {
    let switch = types.raw_tracepoint("sched_switch")?;
    Ok(switch.is_some_and(|switch| switch.params.len() >= 4))
}

/// Returns the id of a tracepoint for programs that are attached to it with its types; `None` if
/// the kernel has no such tracepoint.
///
/// # Errors
/// The kernel's types are damaged.
pub fn tracepoint_id(types: &TypeStore<'_>, name: &str) -> Result<Option<u32>, TypeError> {
    let found = types
        .raw_tracepoint(name)?
        .and_then(|tracepoint| types.btf_id(tracepoint.ty));
    Ok(found.map(|id| id.id))
}
