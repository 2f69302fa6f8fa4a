//! What the programs must know of this kernel, from its BTF.

use std::collections::HashMap;

use bpf_session::tasks::{switched_state, tracepoint_id};
use host::{KERNEL_BTF, kernel_btf};
use typeinfo::{Btf, NameKind, TypeStore};
use uapi::Arch;

use crate::error::EventsError;
use crate::programs;

/// The facts.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `task_struct.tgid`, in bytes from its beginning.
    pub(crate) tgid: i16,
    /// `task_struct.pid`.
    pub(crate) pid: i16,
    /// `task_struct.comm`.
    pub(crate) comm: i16,
    /// `task_struct.on_cpu`, which kernels for one CPU lack.
    pub(crate) on_cpu: Option<i16>,
    /// The number of the task's CPU.
    pub(crate) cpu: i16,
    /// `task_struct.__state`, where `sched_switch` does not pass it (before Linux 5.18).
    pub(crate) state: Option<i16>,
    /// The tracepoints' ids.
    pub(crate) tracepoints: HashMap<&'static str, u32>,
}

impl Facts {
    /// Reads the kernel's types.
    ///
    /// # Errors
    ///
    /// The kernel has no types, or not those of its tasks.
    pub fn read() -> Result<Self, EventsError> {
        let bytes = kernel_btf().map_err(|source| EventsError::NoTypes { path: KERNEL_BTF, source })?;
        let mut types = TypeStore::new(Arch::HOST);
        types.add_btf(Btf::parse(&bytes)?)?;
        let mut tracepoints = HashMap::new();
        for name in programs::tracepoints() {
            tracepoints.extend(tracepoint_id(&types, name)?.map(|id| (name, id)));
        }
        let task = types.require(NameKind::Struct, "task_struct")?;
        let at = |path: &str| types.short_offset(task, path);
        let has = |path: &str| types.find_member(task, path).is_ok_and(|found| found.is_some());
        // The task's own member before 5.16, then the first member's, where that is in the task (CONFIG_THREAD_INFO_IN_TASK).
        let cpu = at("thread_info.cpu").or_else(|_| at("cpu"))?;
        let on_cpu = if has("on_cpu") { Some(at("on_cpu")?) } else { None };
        Ok(Self {
            tgid: at("tgid")?,
            pid: at("pid")?,
            comm: at("comm")?,
            on_cpu,
            cpu,
            state: switched_state(&types)?,
            tracepoints,
        })
    }
}
