//! What this kernel can do, asked by trying: a version number does not tell what a distribution took into its kernel.

use std::path::Path;

use bpf_insn::{Asm, Helper, Reg};
use sys::bpf::{AttachType, Link, Program, ProgramSpec, ProgramType, UprobeMulti};

use crate::error::SessionError;

/// `EINVAL`, which has no kind of its own that tells it from others.
const EINVAL: i32 = 22;

/// What programs and links may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Features {
    /// Attach cookies, and links for perf events. Since Linux 5.15.
    pub cookies: bool,
    /// One link for many places of a file. Since Linux 6.6.
    pub uprobe_multi: bool,
}

impl Features {
    /// Tries each.
    pub fn detect() -> Result<Self, SessionError> {
        let plain = program(&[], AttachType::None)?;
        drop(plain);
        let cookies = program(&[Helper::GET_ATTACH_COOKIE], AttachType::None).is_ok();
        let uprobe_multi =
            cookies && program(&[], AttachType::UprobeMulti).is_ok_and(|program| multi_is_sound(&program));
        Ok(Self { cookies, uprobe_multi })
    }

    /// Whether uprobes' programs may wait for a page of memory: since Linux 6.0, but only where many places share a link
    /// (6.6) is it certain without another trial.
    pub fn sleepable_uprobes(self) -> bool {
        self.uprobe_multi
    }

    /// The least that there can be, for tests of the ways of older kernels.
    pub fn none() -> Self {
        Self { cookies: false, uprobe_multi: false }
    }
}

/// Whether a link's process filter is one for the process. At first it was for its first thread only; the commit that
/// mended it, "bpf: fix multi-uprobe PID filtering logic" (Linux 6.10, and stable 6.6.33 and 6.9.4), also refuses
/// negative numbers before it looks at the path: that is how libbpf tells them apart, too.
fn multi_is_sound(program: &Program) -> bool {
    let nobody = u32::MAX;
    let to = UprobeMulti {
        path: Path::new("/"),
        offsets: &[0],
        semaphores: &[],
        cookies: &[0],
        on_return: false,
        pid: nobody,
    };
    Link::uprobe_multi(program, &to).is_err_and(|error| error.raw_os_error() == Some(EINVAL))
}

/// Loads a program that calls these helpers with its context and does nothing else.
fn program(helpers: &[Helper], attach: AttachType) -> Result<Program, SessionError> {
    let mut asm = Asm::new();
    for &helper in helpers {
        asm.call(helper);
    }
    asm.mov(Reg::R0, 0).exit();
    // SANITY: a few instructions without labels always assemble; were they not to, nothing would load, and that is told.
    let insns = asm.finish().map(|code| code.to_bytes()).unwrap_or_default();
    let spec = ProgramSpec {
        name: "try",
        kind: ProgramType::Kprobe,
        attach,
        attach_btf_id: 0,
        sleepable: false,
        insns: &insns,
        functions: None,
    };
    Program::load(&spec).map_err(|error| {
        SessionError::permission_or(error.source, |source| SessionError::Refused {
            program: "a trial".into(),
            log: error.log,
            source,
        })
    })
}
