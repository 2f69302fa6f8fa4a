//! Advice on missing rights. It names all of them at once: a user who is granted one after another
//! has to ask somebody each time.

use std::path::PathBuf;

use bpf_session::SessionError;
use errors::ForbiddenError;
use host::{Capabilities, Capability, HostError, Tracefs, system};
use kernel_delay::DelayError;
use sched_programs::SchedError;
use text::shell;

/// All rights that dptrace can use (docs/security.md).
const ALL: &str = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search";

/// Environment that decides the advice.
struct Situation {
    is_root: bool,
    /// True if this process is in a user namespace of its own, where its capabilities have no use
    /// for dptrace.
    is_inner: bool,
    /// True if tracefs is mounted, so that rights to files are enough to read it.
    has_tracefs: bool,
    program: PathBuf,
}

/// Returns advice on an error, if rights are missing: further lines of its message.
pub fn advice(error: &anyhow::Error) -> Option<String> {
    let lack = error.chain().find_map(MissingRight::from_error)?;
    let own = Capabilities::own();
    Some(Situation::here().advice(lack, own.has(Capability::SysPtrace)))
}

/// Returns how to get the rights that dptrace can use, in one line.
pub fn rights_advice() -> String {
    let situation = Situation::here();
    situation
        .in_container("")
        .unwrap_or_else(|| format!("run as root, or: {}", situation.setcap("")))
}

/// Command that mounts tracefs.
const MOUNT: &str = "mount -t tracefs tracefs /sys/kernel/tracing";

/// Missing right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MissingRight {
    /// Right to load and attach programs.
    Bpf,
    /// Right to administrate the machine, which attaching needs on some kernels.
    Admin,
    /// Right to inspect a process.
    Process,
    /// Right to read tracefs.
    Tracefs,
    /// Tracefs itself: it is not mounted.
    Mount,
}

impl MissingRight {
    fn from_error(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        // A `DelayError` passes on another error's message as its own, so that error is not in the
        // chain.
        let session = match cause.downcast_ref() {
            Some(DelayError::Programs(SchedError::Session(session))) => Some(session),
            _ => match cause.downcast_ref() {
                Some(SchedError::Session(session)) => Some(session),
                _ => cause.downcast_ref::<SessionError>(),
            },
        };
        if let Some(SessionError::NotPermitted { missing, .. }) = session {
            return Some(if missing.contains(&Capability::SysAdmin) {
                Self::Admin
            } else {
                Self::Bpf
            });
        }
        if cause.is::<ForbiddenError>() {
            return Some(Self::Tracefs);
        }
        match cause.downcast_ref()? {
            HostError::ProcessForbidden { .. } | HostError::MemoryForbidden { .. } => {
                Some(Self::Process)
            }
            HostError::TracefsForbidden { .. } => Some(Self::Tracefs),
            HostError::NoTracefs { .. } => Some(Self::Mount),
            _ => None,
        }
    }
}

impl Situation {
    fn here() -> Self {
        Self {
            is_root: host::capabilities::is_root(),
            is_inner: system::in_first_user_namespace() == Some(false),
            has_tracefs: !matches!(Tracefs::find(), Err(HostError::NoTracefs { .. })),
            program: std::env::current_exe().unwrap_or_else(|_| "dptrace".into()),
        }
    }

    fn advice(&self, lack: MissingRight, may_trace: bool) -> String {
        let more = if lack == MissingRight::Admin {
            ",cap_sys_admin"
        } else {
            ""
        };
        if lack == MissingRight::Process && may_trace {
            return "\n  this process has CAP_SYS_PTRACE, so a security module or another user namespace protects that one"
                .to_owned();
        }
        if lack == MissingRight::Mount && self.is_root {
            return format!("\n  {MOUNT}");
        }
        if let Some(advice) = self.in_container(more) {
            return format!("\n  {advice}");
        }
        // The program has been given its rights, and there is nothing that they could read.
        let is_about_tracefs = matches!(lack, MissingRight::Mount | MissingRight::Tracefs);
        if is_about_tracefs && !self.has_tracefs && may_trace {
            return format!("\n  sudo {MOUNT}");
        }
        let mut text = format!(
            "\n  run dptrace as root, or give the program its rights, once:\n    {}",
            self.setcap(more)
        );
        if !self.has_tracefs {
            text.extend(["\n    sudo ", MOUNT, "   (for tracepoints)"]);
        }
        text
    }

    /// Returns the command that gives the program all rights that it can use, and `more`.
    fn setcap(&self, more: &str) -> String {
        format!("sudo setcap {ALL}{more}+ep {}", shell::word(&self.program))
    }

    /// Returns the advice for environments in which files can't be given rights.
    fn in_container(&self, more: &str) -> Option<String> {
        if self.is_inner {
            let text = "run dptrace outside of this container or user namespace: the kernel treats its root as an ordinary user";
            return Some(text.to_owned());
        }
        let names = format!("{ALL}{more}").replace("cap_", "").to_uppercase();
        self.is_root.then(|| {
            format!(
                "this root does not have all rights: start its container with --cap-add {names}, or with --privileged"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation() -> Situation {
        Situation {
            is_root: false,
            is_inner: false,
            has_tracefs: false,
            program: "/opt/my tools/dptrace".into(),
        }
    }

    #[test]
    fn a_user_gets_all_of_it_at_once() {
        for lack in [
            MissingRight::Bpf,
            MissingRight::Process,
            MissingRight::Tracefs,
            MissingRight::Mount,
        ] {
            let said = situation().advice(lack, false);
            let setcap = "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep '/opt/my tools/dptrace'";
            assert!(
                said.contains("as root")
                    && said.contains(setcap)
                    && said.contains("sudo mount -t tracefs"),
                "{said}"
            );
        }
        let said = situation().advice(MissingRight::Admin, false);
        assert!(said.contains(",cap_sys_admin+ep "), "{said}");
        let mounted = Situation {
            has_tracefs: true,
            ..situation()
        };
        assert!(!mounted.advice(MissingRight::Bpf, false).contains("mount"));
        for lack in [MissingRight::Mount, MissingRight::Tracefs] {
            assert_eq!(
                situation().advice(lack, true),
                "\n  sudo mount -t tracefs tracefs /sys/kernel/tracing"
            );
        }
    }

    #[test]
    fn in_a_container_no_file_is_given_rights() {
        let said = Situation {
            is_root: true,
            ..situation()
        }
        .advice(MissingRight::Bpf, false);
        assert!(
            said.contains("--cap-add BPF,PERFMON,SYS_PTRACE,DAC_READ_SEARCH,")
                && !said.contains("setcap"),
            "{said}"
        );
        let said = Situation {
            is_root: true,
            is_inner: true,
            ..situation()
        }
        .advice(MissingRight::Bpf, false);
        assert!(
            said.contains("outside of this container") && !said.contains("setcap"),
            "{said}"
        );
        let said = Situation {
            is_root: true,
            ..situation()
        }
        .advice(MissingRight::Mount, true);
        assert_eq!(said, "\n  mount -t tracefs tracefs /sys/kernel/tracing");
        assert!(
            situation()
                .advice(MissingRight::Process, true)
                .contains("security module")
        );
    }
}
