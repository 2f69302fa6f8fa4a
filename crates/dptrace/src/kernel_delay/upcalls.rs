//! The program that counts the upcalls of the kernel's Open vSwitch, where that is loaded.

use std::path::Path;

use bpf_codegen::Module;
use bpf_codegen::delay::upcalls::{FUNCTION, TRACEPOINT, map, program};
use bpf_session::Session;

use super::facts::Facts;
use crate::failure::note;

/// What is there where the kernel's part of Open vSwitch is.
const LOADED: &str = "/sys/module/openvswitch";

/// The program, in a module.
pub(super) struct Prepared {
    program: usize,
    /// Whether it is at the function's return, which tells of errors.
    with_errors: bool,
}

/// Adds the program to a module, where it is wanted and there is something to count.
pub(super) fn add(skip: bool, facts: &Facts, module: &mut Module) -> anyhow::Result<Option<Prepared>> {
    if skip || !Path::new(LOADED).exists() {
        return Ok(None);
    }
    let with_errors = facts.has_kprobes;
    module.maps.push(map());
    module.programs.push(program(with_errors.then_some(facts.task.result))?);
    Ok(Some(Prepared { program: module.programs.len() - 1, with_errors }))
}

impl Prepared {
    /// Attaches it, and says whether errors are known. Where it can't be attached, that is told, and all else goes on.
    pub(super) fn attach(&self, session: &mut Session) -> Option<bool> {
        let attached = if self.with_errors {
            session.attach_kprobe(self.program, FUNCTION, 0)
        } else {
            session.attach_raw_tracepoint(self.program, TRACEPOINT)
        };
        if let Err(error) = &attached {
            let why = format!("{:#}", anyhow::anyhow!("{error}"));
            note(&format!("Open vSwitch's upcalls can't be counted (--skip-upcall-stats says no more): {why}"));
        }
        attached.ok().map(|()| self.with_errors)
    }
}
