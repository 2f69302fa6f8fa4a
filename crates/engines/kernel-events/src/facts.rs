//! Facts of this kernel that the programs need.

use sched_programs::{KernelTypes, SchedError};

use crate::programs;

/// Facts of this kernel.
#[derive(Clone, Debug)]
pub struct Facts(pub(crate) sched_programs::Facts);

impl Facts {
    /// Reads the kernel's types.
    ///
    /// # Errors
    ///
    /// The kernel has no types, or not those of its tasks.
    pub fn read() -> Result<Self, SchedError> {
        let types = KernelTypes::read()?;
        sched_programs::Facts::find(&types.parse()?.0, programs::tracepoints()).map(Self)
    }
}
