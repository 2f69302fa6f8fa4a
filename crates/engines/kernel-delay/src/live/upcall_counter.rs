//! Counter of the upcalls of the kernel's Open vSwitch, if that is loaded.

use bpf_program::Module;
use bpf_session::{Session, SessionError};

use super::Facts;
use crate::error::DelayError;
use crate::programs::upcalls::{FUNCTION, TRACEPOINT, map, program};

/// Name of Open vSwitch's kernel module.
const MODULE: &str = "openvswitch";

/// Program for the counter, in a module.
pub(super) struct PreparedCounter {
    program: usize,
    /// True if it is at the function's return, which shows errors.
    with_errors: bool,
}

/// Adds the program to a module; `None` if Open vSwitch is not loaded.
pub(super) fn add(
    facts: &Facts,
    module: &mut Module,
) -> Result<Option<PreparedCounter>, DelayError> {
    if !host::system::has_module(MODULE) {
        return Ok(None);
    }
    let with_errors = facts.has_kprobes;
    module.maps.push(map());
    module
        .programs
        .push(program(with_errors.then_some(facts.registers.result))?);
    Ok(Some(PreparedCounter {
        program: module.programs.len() - 1,
        with_errors,
    }))
}

impl PreparedCounter {
    /// Attaches the program; returns whether it shows errors.
    pub(super) fn attach(&self, session: &mut Session) -> Result<bool, SessionError> {
        if self.with_errors {
            session.attach_kprobe(self.program, FUNCTION, 0)?;
        } else {
            session.attach_raw_tracepoint(self.program, TRACEPOINT)?;
        }
        Ok(self.with_errors)
    }
}
