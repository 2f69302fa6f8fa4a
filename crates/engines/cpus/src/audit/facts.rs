//! Facts of this kernel that the programs need.

use bpf_program::Member;
use sched_programs::{KernelTypes, SchedError, member};
use typeinfo::{TypeError, TypeStore};

use crate::audit::programs;

/// Facts of this kernel that the programs need.
#[derive(Clone, Debug)]
pub struct Facts {
    pub(crate) programs: sched_programs::Facts,
    pub(crate) members: Members,
}

/// Members of the structures of interrupts, timers and work queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members {
    /// `irqaction.name`.
    pub(crate) action_name: Member<u64>,
    /// `hrtimer.function`.
    pub(crate) hrtimer_function: Member<u64>,
    /// `timer_list.function`.
    pub(crate) timer_function: Member<u64>,
    /// Members that lead from a pool to its CPU and name, if the kernel's types have them.
    pub(crate) pool: Option<PoolMembers>,
}

/// Members of the types that are private to `kernel/workqueue.c`; kernel type information has them
/// nevertheless.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolMembers {
    /// `pool_workqueue.pool`.
    pub(crate) pool: Member<u64>,
    /// `pool_workqueue.wq`.
    pub(crate) queue: Member<u64>,
    /// `worker_pool.cpu`.
    pub(crate) cpu: Member<i32>,
    /// `workqueue_struct.name`.
    pub(crate) name: Member<[u8; 24]>,
}

impl Facts {
    /// Reads the kernel's types.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has no type information, or none of its tasks.
    pub fn read() -> Result<Self, SchedError> {
        let bytes = KernelTypes::read()?;
        let (types, _) = bytes.parse()?;
        let members = Members {
            action_name: member(&types, "irqaction", "name")?,
            hrtimer_function: member(&types, "hrtimer", "function")?,
            timer_function: member(&types, "timer_list", "function")?,
            pool: PoolMembers::find(&types).ok(),
        };
        Ok(Self {
            programs: sched_programs::Facts::find(&types, programs::tracepoints())?,
            members,
        })
    }

    /// Returns the tracepoints that this kernel lacks, each with what is unknown without it and the
    /// release that introduced it.
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let is_missing = |name: &str| !self.programs.tracepoints.contains_key(name);
        programs::MISSED
            .iter()
            .filter(|(name, _)| is_missing(name))
            .copied()
            .collect()
    }
}

impl PoolMembers {
    fn find(types: &TypeStore<'_>) -> Result<Self, TypeError> {
        Ok(Self {
            pool: member(types, "pool_workqueue", "pool")?,
            queue: member(types, "pool_workqueue", "wq")?,
            cpu: member(types, "worker_pool", "cpu")?,
            name: member(types, "workqueue_struct", "name")?,
        })
    }
}
