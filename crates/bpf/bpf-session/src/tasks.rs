//! Facts about this kernel's tasks for programs on the scheduler's tracepoints.

use typeinfo::{NameKind, TypeError, TypeStore};

/// Returns the offset of a task's state in `task_struct`, in bytes; `None` if `sched_switch` passes
/// it (since Linux 5.18).
///
/// # Errors
/// Returns an error if the kernel's types are not as expected.
pub fn switched_state(types: &TypeStore<'_>) -> Result<Option<i16>, TypeError> {
    // The state is the fourth argument; `__state` was called `state` before 5.14.
    let arguments = types.raw_tracepoint("sched_switch")?.map_or(0, |tracepoint| tracepoint.params.len());
    if arguments >= 4 {
        return Ok(None);
    }
    let task = types.require(NameKind::Struct, "task_struct")?;
    types.short_offset(task, "__state").or_else(|_| types.short_offset(task, "state")).map(Some)
}

/// Returns the id of a tracepoint for programs that are attached to it with its types; `None` if
/// the kernel has no such tracepoint.
///
/// # Errors
/// Returns an error if the kernel's types are not as expected.
pub fn tracepoint_id(types: &TypeStore<'_>, name: &str) -> Result<Option<u32>, TypeError> {
    let found = types.raw_tracepoint(name)?.and_then(|tracepoint| types.btf_id(tracepoint.ty));
    Ok(found.map(|id| id.id))
}
