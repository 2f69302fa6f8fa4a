//! The capabilities of this process (capabilities(7)).

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// A capability that tracing needs, with its number in `linux/capability.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Capability {
    /// Access to other users' processes.
    SysPtrace = 19,
    /// Everything, including the two below.
    SysAdmin = 21,
    /// Attaching to events of processes and the kernel. Since Linux 5.8.
    Perfmon = 38,
    /// Loading programs and making maps. Since Linux 5.8.
    Bpf = 39,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        })
    }
}

/// Effective capabilities of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    bits: u64,
}

impl Capabilities {
    /// Returns those of this process; none if `/proc` does not list them. Operations that need one
    /// report their own errors.
    pub fn own() -> Self {
        let status = crate::proc::text("/proc/self/status").unwrap_or_default();
        Self::parse(&status)
    }

    /// Parses the line `CapEff` of `/proc/PID/status` (proc_pid_status(5)).
    fn parse(status: &str) -> Self {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Self {
            bits: line
                .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
                .unwrap_or_default(),
        }
    }

    /// Returns true if this capability is effective. The kernel accepts `CAP_SYS_ADMIN` for both of
    /// the newer ones (`bpf_capable`, `perfmon_capable` in `linux/capability.h`).
    pub fn has(self, capability: Capability) -> bool {
        let stands_for_it = matches!(capability, Capability::Bpf | Capability::Perfmon);
        self.has_itself(capability) || stands_for_it && self.has_itself(Capability::SysAdmin)
    }

    /// Returns true if this very capability is effective.
    pub fn has_itself(self, capability: Capability) -> bool {
        self.bits >> capability as u8 & 1 != 0
    }

    /// Returns the capabilities of `wanted` that are missing.
    pub fn missing(self, wanted: &[Capability]) -> Vec<Capability> {
        wanted
            .iter()
            .copied()
            .filter(|&capability| !self.has(capability))
            .collect()
    }
}

/// Returns true if this process runs as root, even if root lacks capabilities here.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the user and the group of whoever became root with sudo(8); `None` for all others, and
/// for root itself.
pub fn sudo_user() -> Option<(u32, u32)> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    (is_root() && user != 0).then_some((user, group))
}

/// Capabilities for files that their owners keep private: the first one reads, the second one
/// writes as well.
const FILE_ACCESS: CapabilitySet =
    CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::DAC_OVERRIDE);

/// True if this process holds back its rights to files.
static HELD_BACK: AtomicBool = AtomicBool::new(false);

/// Holds back the rights to files that belong to the program (setcap(8)) and not to the user, so
/// that a file that the user names (a script, `cat()`, an output file) is opened as the user could
/// open it. Files that are reached through a process are opened in [`with_file_access`]. Call it
/// before there is a second thread: the kernel keeps these rights for each thread, and a new thread
/// inherits them.
///
/// Does nothing for root, whose own rights these are.
pub fn hold_back_file_access() -> io::Result<()> {
    if is_root() {
        return Ok(());
    }
    let sets = capabilities(None)?;
    if sets.effective.intersects(FILE_ACCESS) {
        set_effective(sets, sets.effective.difference(FILE_ACCESS))?;
        HELD_BACK.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Opens a file that is reached through a process, or that the kernel provides for tracing, with
/// the right to read other users' files, if the program has it. `open` must not open files that the
/// user names.
pub fn with_file_access<T>(open: impl FnOnce() -> T) -> T {
    let _raised = HELD_BACK
        .load(Ordering::Relaxed)
        .then(RaisedCapabilities::now);
    open()
}

/// The right to read other users' files, for the lifetime of this value.
struct RaisedCapabilities(Option<CapabilitySets>);

impl RaisedCapabilities {
    fn now() -> Self {
        let before = capabilities(None).ok().filter(|sets| {
            let right = CapabilitySet::DAC_READ_SEARCH;
            // Nothing to do if it is raised already. If it can't be raised, `open` reports the
            // error.
            sets.permitted.contains(right)
                && !sets.effective.contains(right)
                && set_effective(*sets, sets.effective.union(right)).is_ok()
        });
        Self(before)
    }
}

impl Drop for RaisedCapabilities {
    fn drop(&mut self) {
        // Continuing with the right could read any file that a user names. A right can always be
        // dropped (capset(2)).
        if self
            .0
            .is_some_and(|before| set_capabilities(None, before).is_err())
        {
            std::process::abort();
        }
    }
}

fn set_effective(sets: CapabilitySets, effective: CapabilitySet) -> io::Result<()> {
    Ok(set_capabilities(
        None,
        CapabilitySets { effective, ..sets },
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_and_sys_admin_stands_for_the_newer_two() {
        let only =
            |bits: &str| Capabilities::parse(&format!("Name:\tx\nCapEff:\t{bits}\nCapBnd:\t0\n"));
        let all = [Capability::Bpf, Capability::Perfmon, Capability::SysPtrace];
        assert_eq!(
            only("000000c000000000").missing(&all),
            [Capability::SysPtrace]
        );
        assert_eq!(
            only("0000000000200000").missing(&all),
            [Capability::SysPtrace]
        );
        assert_eq!(
            only("0000004000000000").missing(&all),
            [Capability::Bpf, Capability::SysPtrace]
        );
        assert_eq!(only("000001ffffffffff").missing(&all), []);
        assert_eq!(Capabilities::parse("").missing(&all), all);
    }
}
