//! Tables of tracepoints with their programs.

use bpf_insn::{AsmError, Code};
use bpf_program::{Module, ProgramDef, ProgramKind};
use bpf_session::{Session, SessionError};

use crate::SchedError;
use crate::facts::Tracepoints;

/// A tracepoint and its program, which is made for a setting.
pub struct Hook<S> {
    /// Name of the tracepoint.
    pub tracepoint: &'static str,
    /// True for a program without types: those with types do not get arguments that are functions.
    is_raw: bool,
    code: fn(&S) -> Result<Code, AsmError>,
}

impl<S> Hook<S> {
    /// Makes a hook with types.
    pub const fn typed(tracepoint: &'static str, code: fn(&S) -> Result<Code, AsmError>) -> Self {
        Self {
            tracepoint,
            is_raw: false,
            code,
        }
    }

    /// Makes a hook without types.
    pub const fn raw(tracepoint: &'static str, code: fn(&S) -> Result<Code, AsmError>) -> Self {
        Self {
            tracepoint,
            is_raw: true,
            code,
        }
    }
}

/// Makes the programs of the tracepoints that this kernel has, in the order of the hooks.
///
/// # Errors
/// A tracepoint that is needed is missing, or a program cannot be made.
pub fn programs<'h, S: 'h>(
    hooks: impl IntoIterator<Item = &'h Hook<S>>,
    needed: &[&'static str],
    setting: &S,
    tracepoints: &Tracepoints,
) -> Result<Vec<ProgramDef>, SchedError> {
    if let Some(name) = needed.iter().find(|name| !tracepoints.contains_key(**name)) {
        return Err(SchedError::NoTracepoint { name });
    }
    let mut programs = Vec::new();
    for Hook {
        tracepoint,
        is_raw,
        code,
    } in hooks
    {
        let Some(&btf_id) = tracepoints.get(*tracepoint) else {
            continue;
        };
        let code = code(setting)?;
        programs.push(if *is_raw {
            ProgramDef::new(tracepoint, ProgramKind::RawTracepoint, code)
        } else {
            ProgramDef::for_tracepoint(tracepoint, btf_id, code)
        });
    }
    Ok(programs)
}

/// Attaches the first `count` programs of a loaded module, which are those of hooks, in their
/// order.
///
/// # Errors
/// The kernel does not attach one.
pub fn attach(session: &mut Session, module: &Module, count: usize) -> Result<(), SessionError> {
    for (index, program) in module.programs.iter().enumerate().take(count) {
        match program.target {
            Some(_) => {
                session.attach_loaded_target(index, &format!("the tracepoint {}", program.name))?;
            }
            None => session.attach_raw_tracepoint(index, &program.name)?,
        }
    }
    Ok(())
}
