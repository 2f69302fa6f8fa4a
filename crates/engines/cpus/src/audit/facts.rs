//! What the programs must know of this kernel, from its BTF.

use std::collections::HashMap;

use bpf_session::tasks::{switched_state, tracepoint_id};
use host::{KERNEL_BTF, kernel_btf};
use typeinfo::{Btf, NameKind, TypeStore};
use uapi::Arch;

use crate::audit::error::AuditError;
use crate::audit::programs;

/// Where things are in the kernel's structures: bytes from their beginning.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `task_struct.pid`.
    pub(crate) pid: i16,
    /// `task_struct.tgid`.
    pub(crate) tgid: i16,
    /// `task_struct.comm`.
    pub(crate) comm: i16,
    /// `task_struct.flags`.
    pub(crate) flags: i16,
    /// `task_struct.prio`.
    pub(crate) prio: i16,
    /// `task_struct.policy`.
    pub(crate) policy: i16,
    /// The number of the task's CPU.
    pub(crate) cpu: i16,
    /// `task_struct.on_cpu`, which kernels for one CPU lack.
    pub(crate) on_cpu: Option<i16>,
    /// `task_struct.__state`.
    pub(crate) state: i16,
    /// The same, if `sched_switch` does not pass it (before Linux 5.18).
    pub(crate) switched_state: Option<i16>,
    /// `irqaction.name`.
    pub(crate) action_name: i16,
    /// `work_struct.func`.
    pub(crate) work_function: i16,
    /// `pool_workqueue.pool` and `.wq`, `worker_pool.cpu`, `workqueue_struct.name`: private to `kernel/workqueue.c`, and in its
    /// types all the same.
    pub(crate) pool: Option<[i16; 4]>,
    /// `hrtimer.function`.
    pub(crate) hrtimer_function: i16,
    /// `timer_list.function`.
    pub(crate) timer_function: i16,
    /// The tracepoints' ids.
    pub(crate) tracepoints: HashMap<&'static str, u32>,
}

impl Facts {
    /// Reads the kernel's types.
    ///
    /// # Errors
    ///
    /// The kernel has no types, or not those of its tasks.
    pub fn read() -> Result<Self, AuditError> {
        let bytes = kernel_btf().map_err(|source| AuditError::NoTypes { path: KERNEL_BTF, source })?;
        let mut types = TypeStore::new(Arch::HOST);
        types.add_btf(Btf::parse(&bytes)?)?;
        let mut tracepoints = HashMap::new();
        for name in programs::tracepoints() {
            tracepoints.extend(tracepoint_id(&types, name)?.map(|id| (name, id)));
        }
        let task = types.require(NameKind::Struct, "task_struct")?;
        let at = |path: &str| types.short_offset(task, path);
        let has = |path: &str| types.find_member(task, path).is_ok_and(|found| found.is_some());
        let of = |name: &str, path: &str| types.short_offset(types.require(NameKind::Struct, name)?, path);
        Ok(Self {
            pid: at("pid")?,
            tgid: at("tgid")?,
            comm: at("comm")?,
            flags: at("flags")?,
            prio: at("prio")?,
            policy: at("policy")?,
            // The task's own member before 5.16, then the first member's, where that is in the task.
            cpu: at("thread_info.cpu").or_else(|_| at("cpu"))?,
            on_cpu: if has("on_cpu") { Some(at("on_cpu")?) } else { None },
            // `__state` was called `state` before 5.14.
            state: at("__state").or_else(|_| at("state"))?,
            switched_state: switched_state(&types)?,
            action_name: of("irqaction", "name")?,
            work_function: of("work_struct", "func")?,
            pool: pool(&types),
            hrtimer_function: of("hrtimer", "function")?,
            timer_function: of("timer_list", "function")?,
            tracepoints,
        })
    }

    /// The tracepoints that this kernel lacks, with what is not known without them and the release that has them.
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        programs::MISSED.iter().filter(|(name, _)| !self.tracepoints.contains_key(name)).copied().collect()
    }
}

/// Where a workqueue's pool and name are.
fn pool(types: &TypeStore<'_>) -> Option<[i16; 4]> {
    let of = |name: &str, path: &str| -> Option<i16> {
        let ty = types.require(NameKind::Struct, name).ok()?;
        types.short_offset(ty, path).ok()
    };
    Some([
        of("pool_workqueue", "pool")?,
        of("pool_workqueue", "wq")?,
        of("worker_pool", "cpu")?,
        of("workqueue_struct", "name")?,
    ])
}
