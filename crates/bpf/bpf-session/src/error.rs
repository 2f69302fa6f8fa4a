//! Errors of a session.

use std::io;
use std::path::PathBuf;

use bpf_insn::KernelVersion;
use host::{Capabilities, Capability};
use thiserror::Error;

/// Reason why the kernel refused a session's request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// BPF is not permitted for this user.
    #[error("not permitted to use BPF: {} missing", named(missing))]
    NotPermitted {
        /// Capabilities that this process lacks.
        missing: Vec<Capability>,
    },
    /// A map could not be created.
    #[error("can't create the BPF map {name}")]
    Map {
        /// Name of the map.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The verifier rejected a program.
    #[error(
        "the kernel rejects the program for {program}; this is a bug in dptrace, please report \
         it\n{log}\n"
    )]
    Refused {
        /// Purpose of the program.
        program: String,
        /// Last lines of the verifier's log.
        log: String,
        /// Error of the call.
        source: io::Error,
    },
    /// The verifier gave up: the program has too many paths.
    #[error(
        "the kernel can't follow all paths through {program}: it examines at most a million \
         instructions, and those after a branch once for each path that leads there. Use fewer \
         consecutive branches: a map instead of a chain of them, a loop instead of unroll, or two \
         probes instead of one"
    )]
    TooComplex {
        /// Purpose of the program.
        program: String,
    },
    /// The kernel is too old for a program.
    #[error("this kernel has no {what}, which {program} needs: Linux {since} has")]
    TooOld {
        /// Missing feature.
        what: String,
        /// First Linux release that has it.
        since: KernelVersion,
        /// Program that needs it.
        program: String,
    },
    /// The kernel refuses although no capability is missing.
    #[error(
        "the kernel does not permit {program}, even to root: it is locked down, or built without \
         CONFIG_FUNCTION_TRACER"
    )]
    Locked {
        /// Purpose of the program.
        program: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A helper is allowed only in programs for certain kernel functions, and this is not one of
    /// them.
    #[error(
        "the kernel does not allow path() in {place}, only in iterators and in the functions \
         dentry_open, filp_close, security_file_open, security_file_permission, \
         security_inode_getattr, security_path_truncate, vfs_fallocate, vfs_getattr and \
         vfs_truncate, where they exist (btf_allowlist_d_path of kernel/trace/bpf_trace.c)"
    )]
    NotInThis {
        /// Name of the function.
        place: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A helper is given a pointer that the kernel does not trust.
    #[error(
        "the kernel does not take a pointer of {program}: path() and socket_cookie() need one that \
         the probe itself has, such as ctx.file of iter:task_file. This one was read from another \
         object, which may not keep what it points to"
    )]
    UntrustedPointer {
        /// Purpose of the program.
        program: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// No program may write into a process's memory.
    #[error(
        "the kernel does not let {program} write into the memory of processes \
         (bpf_probe_write_user): it is locked down"
    )]
    NoWrites {
        /// Purpose of the program.
        program: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A program uses a symbol that its module does not have.
    #[error(
        "the program for {program} uses {symbol:?}, which does not exist; this is a bug in dptrace"
    )]
    Unresolved {
        /// Purpose of the program.
        program: String,
        /// Name of the symbol.
        symbol: String,
    },
    /// Places of a file could not be attached to.
    #[error("can't attach to {} at {}", shown(path), offsets(places))]
    Uprobe {
        /// Path of the file.
        path: PathBuf,
        /// Places, as offsets in the file.
        places: Vec<u64>,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A place has a probe with another semaphore (`alloc_uprobe` in `kernel/events/uprobes.c`:
    /// `EINVAL`).
    #[error(
        "can't attach to {} at {}: the kernel already has a probe there, with another semaphore or \
         with none. Another tracer is running; or one was killed while it attached, and the kernel \
         kept its probe for good (dmesg: leaking uprobe): in that case give the program a new file \
         (cp -p FILE NEW, mv NEW FILE) and restart it",
        path.display(),
        offsets(places)
    )]
    OtherSemaphore {
        /// Path of the file.
        path: PathBuf,
        /// Places, as offsets in the file.
        places: Vec<u64>,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A target in the kernel could not be attached to.
    #[error("can't attach to {what}")]
    Attach {
        /// Description of the target.
        what: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The kernel was built without a feature.
    #[error("this kernel has no {what}")]
    Unsupported {
        /// Missing feature.
        what: &'static str,
    },
    /// The ring buffer could not be mapped.
    #[error("can't map the ring buffer {name}")]
    Ring {
        /// Name of the map.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The thread that reads the ring could not be started.
    #[error("can't start a thread")]
    Thread {
        /// Error of the kernel.
        source: io::Error,
    },
}

impl SessionError {
    /// Returns true if the cause is this machine or missing capabilities.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::NotPermitted { .. }
                | Self::Unsupported { .. }
                | Self::TooOld { .. }
                | Self::Locked { .. }
                | Self::NotInThis { .. }
                | Self::UntrustedPointer { .. }
                | Self::NoWrites { .. }
                | Self::TooComplex { .. }
        )
    }

    /// Converts a failed call: [`Self::NotPermitted`] if it failed for lack of BPF's capabilities.
    pub(crate) fn permission_or(source: io::Error, other: impl FnOnce(io::Error) -> Self) -> Self {
        Self::lacking_or(&[Capability::Bpf, Capability::Perfmon], source, other)
    }

    /// Converts a failed call: [`Self::NotPermitted`] if it failed for lack of one of these
    /// capabilities.
    pub(crate) fn lacking_or(
        wanted: &[Capability],
        source: io::Error,
        other: impl FnOnce(io::Error) -> Self,
    ) -> Self {
        let missing = Capabilities::own().missing(wanted);
        if source.kind() == io::ErrorKind::PermissionDenied && !missing.is_empty() {
            Self::NotPermitted { missing }
        } else {
            other(source)
        }
    }
}

fn named(missing: &[Capability]) -> String {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    names.join(" and ") + if names.len() == 1 { " is" } else { " are" }
}

/// Formats a path for printing: foreign names can hold control characters.
fn shown(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_control) {
        text.escape_debug().to_string()
    } else {
        text
    }
}

fn offsets(places: &[u64]) -> String {
    let shown: Vec<String> = places
        .iter()
        .take(4)
        .map(|offset| format!("{offset:#x}"))
        .collect();
    let more = places.len() - shown.len();
    let places = if more == 1 { "place" } else { "places" };
    shown.join(", ")
        + &if more > 0 {
            format!(" and {more} more {places}")
        } else {
            String::new()
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_named() {
        let message = |missing: &[Capability]| {
            SessionError::NotPermitted {
                missing: missing.to_vec(),
            }
            .to_string()
        };
        assert!(
            message(&[Capability::Bpf, Capability::Perfmon])
                .contains("CAP_BPF and CAP_PERFMON are missing")
        );
        assert!(message(&[Capability::SysAdmin]).contains("CAP_SYS_ADMIN is missing"));
    }
}
