//! Finds the feature that a rejected program needs and this kernel lacks: then the program is right
//! and the kernel too old.

use std::collections::BTreeSet;

use bpf_insn::KernelVersion;
use bpf_insn::{AtomicOp, Callee, Code, Helper, Insn};
use bpf_program::ProgramDef;
use sys::bpf::{AttachType, ProgramType};

use crate::error::SessionError;
use crate::features::trials;

/// Feature that this kernel lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MissingFeature {
    /// Name of the feature, for messages.
    pub(crate) what: String,
    /// First Linux release that has it.
    pub(crate) since: KernelVersion,
}

impl MissingFeature {
    /// Returns the error for a program that needs it.
    pub(crate) fn into_error(self, program: String) -> SessionError {
        SessionError::TooOld {
            what: self.what,
            since: self.since,
            program,
        }
    }
}

/// Limit on the size of a map's key on every kernel, in bytes: the size of a program's stack.
pub(crate) const MAX_PORTABLE_KEY_BYTES: u32 = 512;

/// Returns the feature of larger keys ("bpf: Lift hashtab key_size limit").
pub(crate) fn large_keys() -> MissingFeature {
    MissingFeature {
        what: format!("map keys of more than {MAX_PORTABLE_KEY_BYTES} bytes"),
        since: KernelVersion::new(5, 11),
    }
}

/// Returns the feature of `bpf_d_path` for iterators ("bpf: Allow bpf_d_path in bpf_iter program").
pub(crate) fn path_in_iterators() -> MissingFeature {
    MissingFeature {
        what: "bpf_d_path for iterators".into(),
        since: KernelVersion::new(5, 12),
    }
}

/// Returns the release since which tracing programs have a helper that other programs had earlier.
fn since_in_tracing(helper: Helper) -> Option<KernelVersion> {
    // "bpf: Expose bpf_get_socket_cookie to tracing programs".
    (helper == Helper::GET_SOCKET_COOKIE).then(|| KernelVersion::new(5, 12))
}

/// Returns the first feature that the program needs and the kernel lacks, found by trying; `None`
/// if the kernel has them all.
pub(crate) fn find(
    def: &ProgramDef,
    kind: ProgramType,
    attach: AttachType,
) -> Option<MissingFeature> {
    let codes = || std::iter::once(&def.code).chain(def.subprograms.iter().map(|sub| &sub.code));
    let insns = || codes().flat_map(Code::lines).map(|line| line.insn);
    let exchanges = |insn: Insn| matches!(insn, Insn::Atomic { op, .. } if op != AtomicOp::Add);
    if let Some(insn) = insns().find(|&insn| exchanges(insn))
        && !trials::exchange().is_yes()
    {
        return Some(MissingFeature {
            what: "atomic operations for BPF programs".into(),
            since: insn.since(),
        });
    }
    let helpers: BTreeSet<Helper> = insns().filter_map(helper).collect();
    let target = def.target.as_ref().map_or(0, |target| target.btf_id);
    let lacking = |helper: &Helper| !trials::knows(*helper, kind, attach, target);
    let missing = helpers.into_iter().find(lacking)?;
    let since = since_in_tracing(missing).or_else(|| missing.since())?;
    Some(MissingFeature {
        what: missing.to_string(),
        since,
    })
}

fn helper(insn: Insn) -> Option<Helper> {
    match insn {
        Insn::Call(Callee::Helper(helper)) => Some(helper),
        _ => None,
    }
}
