//! Loading of the programs that are tried.

use crate::features::answer::Answer;
use crate::features::trials::kernel_type;
use bpf_insn::{Asm, Helper, Reg};
use bpf_program::License;
use std::io;
use sys::bpf::{AttachType, Link, LoadError, Program, ProgramSpec, ProgramType};
use typeinfo::NameKind;

/// Runs a trial with a program that does nothing.
pub(super) fn with_program(
    kind: ProgramType,
    attach: AttachType,
    mut trial: impl FnMut(&Program) -> io::Result<Link>,
) -> Answer {
    load(kind, attach, &[])
        .map(|program| trial(&program).into())
        .into()
}

/// Attaches a program to a target named in the kernel's BTF.
pub(super) fn with_target(attach: AttachType, kind: NameKind, name: &str) -> Answer {
    let id = match kernel_type(kind, name) {
        Ok(Some(id)) => id,
        Ok(None) => {
            return Answer::Unknown(format!("this kernel has no type {name} to try it with"));
        }
        Err(error) => return Answer::no(format!("the kernel's types cannot be read: {error}")),
    };
    let mut asm = Asm::new();
    asm.mov(Reg::R0, 0).exit();
    let program = load_spec(ProgramType::Tracing, attach, id, false, &bytes_of(asm));
    program
        .map(|program| Link::raw_tracepoint(&program, None).into())
        .into()
}

/// Loads a program that calls these helpers with its context and does nothing else.
pub(in crate::features) fn load(
    kind: ProgramType,
    attach: AttachType,
    helpers: &[Helper],
) -> Result<Program, LoadError> {
    load_code(kind, attach, |asm| {
        for &helper in helpers {
            asm.call(helper);
        }
    })
}

pub(super) fn load_code(
    kind: ProgramType,
    attach: AttachType,
    code: impl FnOnce(&mut Asm),
) -> Result<Program, LoadError> {
    let mut asm = Asm::new();
    code(&mut asm);
    asm.mov(Reg::R0, 0).exit();
    load_spec(kind, attach, 0, false, &bytes_of(asm))
}

pub(super) fn load_spec(
    kind: ProgramType,
    attach: AttachType,
    attach_btf_id: u32,
    sleepable: bool,
    insns: &[u8],
) -> Result<Program, LoadError> {
    let license = License::default().name();
    Program::load(&ProgramSpec {
        name: "try",
        kind,
        attach,
        attach_btf_id,
        sleepable,
        license,
        insns,
        functions: None,
    })
}

pub(super) fn bytes_of(asm: Asm) -> Vec<u8> {
    // SANITY: a few instructions without labels always assemble; if they did not, loading would
    // fail and be reported.
    asm.finish().map(|code| code.to_bytes()).unwrap_or_default()
}
