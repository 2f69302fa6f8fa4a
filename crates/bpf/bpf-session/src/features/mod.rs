//! Detects the features of this kernel by trying: a version number does not show what a
//! distribution backported.
//!
//! | module | holds |
//! |---|---|
//! | [`trials`] | a trial for each feature: for `dptrace doctor` |
//! | `answer` | the result of a trial |
//! | `place` | places of our own program to try on |

mod answer;
mod place;
pub mod trials;

use std::path::Path;

use bpf_insn::Helper;
use sys::bpf::{AttachType, Link, LoadError, Program, ProgramType, UprobeMulti};

pub use answer::Answer;

use crate::error::SessionError;

/// `EINVAL`, which shares its `ErrorKind` with other errors.
const EINVAL: i32 = 22;
/// `EBADF`: the error for a link to places of a directory.
const EBADF: i32 = 9;

/// Features that programs and links may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing of its own, which the kernel has or lacks"
)]
pub struct Features {
    /// Attach cookies, and links for perf events. Since Linux 5.15.
    pub cookies: bool,
    /// Links for many places of a file. Since Linux 6.6.
    pub uprobe_multi: bool,
    /// Programs of uprobes that may wait for a page of memory. Since Linux 6.0.
    pub sleepable: bool,
    /// Atomic exchange of a word of memory in programs. Since Linux 5.12.
    pub exchange: bool,
    /// Map keys of more than 512 bytes. Since Linux 5.11.
    pub large_keys: bool,
    /// Maps that allocate their entries on demand, in programs of all kinds. Since Linux 6.1.
    pub allocation: bool,
}

impl Features {
    /// All features.
    pub const ALL: Self = Self {
        cookies: true,
        uprobe_multi: true,
        sleepable: true,
        exchange: true,
        large_keys: true,
        allocation: true,
    };

    /// Tries each feature.
    pub fn detect() -> Result<Self, SessionError> {
        Ok(Self {
            exchange: trials::exchange().is_yes(),
            large_keys: trials::large_keys().is_yes(),
            allocation: trials::safe_allocation(),
            ..Self::for_probes()?
        })
    }

    /// Tries only the features for probes of a process; the others count as missing.
    pub fn for_probes() -> Result<Self, SessionError> {
        trials::load(ProgramType::Kprobe, AttachType::None, &[]).map_err(refused)?;
        let cookies = trials::load(
            ProgramType::Kprobe,
            AttachType::None,
            &[Helper::GET_ATTACH_COOKIE],
        )
        .is_ok();
        let uprobe_multi = cookies
            && trials::load(ProgramType::Kprobe, AttachType::UprobeMulti, &[])
                .is_ok_and(|program| multi_is_sound(&program));
        let sleepable = trials::sleepable_program(AttachType::None).is_ok();
        Ok(Self {
            cookies,
            uprobe_multi,
            sleepable,
            ..Self::none()
        })
    }

    /// Returns the features that can be used for probes of this process. A link for many places
    /// finds the process's memory through its first thread (`uprobe_multi_link_filter` in
    /// `kernel/trace/bpf_trace.c`), which has none once it has ended before the others; an event
    /// takes any thread.
    #[must_use]
    pub fn for_process(self, pid: Option<u32>) -> Self {
        let first_has_ended = pid.is_some_and(|pid| host::proc::stand_in(host::Pid(pid)).is_some());
        Self {
            uprobe_multi: self.uprobe_multi && !first_has_ended,
            ..self
        }
    }

    /// Returns true if uprobes' programs may wait for a page of memory, with any kind of link.
    pub fn sleepable_uprobes(self) -> bool {
        self.sleepable
    }

    /// Returns no feature, for tests of the fallbacks for older kernels.
    pub fn none() -> Self {
        Self {
            cookies: false,
            uprobe_multi: false,
            sleepable: false,
            exchange: false,
            large_keys: false,
            allocation: false,
        }
    }
}

/// Returns true if the kernel has such links, and their process filter matches the whole process.
/// At first it matched the first thread only. The commit that fixed it, "bpf: fix multi-uprobe PID
/// filtering logic" (Linux 6.10, and stable 6.6.33 and 6.9.4), also refuses negative numbers before
/// it looks at the path: libbpf distinguishes them in the same way.
///
/// A kernel without such links still loads a program for them, and then also returns `EINVAL` for a
/// bad pid. So we first try a directory: only a kernel that reads the path answers `EBADF`.
fn multi_is_sound(program: &Program) -> bool {
    let nobody = u32::MAX;
    multi_refusal(program, 0) == Some(EBADF) && multi_refusal(program, nobody) == Some(EINVAL)
}

/// Returns the error number for a link to a place of a directory.
fn multi_refusal(program: &Program, pid: u32) -> Option<i32> {
    let to = UprobeMulti {
        path: Path::new("/"),
        offsets: &[0],
        semaphores: &[],
        cookies: &[0],
        on_return: false,
        pid,
    };
    Link::uprobe_multi(program, &to)
        .err()
        .and_then(|error| error.raw_os_error())
}

fn refused(error: LoadError) -> SessionError {
    SessionError::permission_or(error.source, |source| SessionError::Refused {
        program: "a trial".into(),
        log: error.log,
        source,
    })
}
