//! The capabilities of this process (capabilities(7)).

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// A capability that tracing needs: its number in `linux/capability.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Capability {
    /// Look at other users' processes.
    SysPtrace = 19,
    /// Everything that follows, too.
    SysAdmin = 21,
    /// Attach to what processes and the kernel do. Since Linux 5.8.
    Perfmon = 38,
    /// Load programs, make maps. Since Linux 5.8.
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

/// A process's effective capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    bits: u64,
}

impl Capabilities {
    /// Those of this process. If `/proc` does not list them, none: whatever needs one reports an error itself.
    pub fn own() -> Self {
        let status = crate::proc::text("/proc/self/status").unwrap_or_default();
        Self::of(&status)
    }

    /// Those of the line `CapEff` of `/proc/PID/status` (proc_pid_status(5)).
    fn of(status: &str) -> Self {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Self { bits: line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default() }
    }

    /// Whether it has this one. The kernel takes `CAP_SYS_ADMIN` for both of the newer ones (`bpf_capable`,
    /// `perfmon_capable` in `linux/capability.h`).
    pub fn has(self, capability: Capability) -> bool {
        let stands_for_it = matches!(capability, Capability::Bpf | Capability::Perfmon);
        self.has_itself(capability) || stands_for_it && self.has_itself(Capability::SysAdmin)
    }

    /// Whether it has this very one.
    pub fn has_itself(self, capability: Capability) -> bool {
        self.bits >> capability as u8 & 1 != 0
    }

    /// Those of `wanted` that it does not have.
    pub fn missing(self, wanted: &[Capability]) -> Vec<Capability> {
        wanted.iter().copied().filter(|&capability| !self.has(capability)).collect()
    }
}

/// Whether this process runs as root, whatever capabilities that has here.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What lets one read files that their owners keep from one: the first one reads, the second one writes as well.
const FILE_ACCESS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::DAC_OVERRIDE);

/// Whether this process holds back its rights to files.
static HELD_BACK: AtomicBool = AtomicBool::new(false);

/// Holds back the rights to files that are not the user's own but the program's (setcap(8)), so that what a user names,
/// a script, `cat()`, a file to write, is opened as the user could open it. What is reached through a process is opened
/// in [`with_file_access`]. Call it before there is a second thread: the kernel keeps these rights for each thread, and a
/// new one has those of its maker.
///
/// For root, whose own rights these are, nothing changes.
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

/// Opens something that is reached through a process, or that the kernel has for those who trace: with the right to read
/// files of others, if the program was given it. Nothing that the user names may be opened in it.
pub fn with_file_access<T>(open: impl FnOnce() -> T) -> T {
    let _raised = HELD_BACK.load(Ordering::Relaxed).then(Raised::now);
    open()
}

/// The right to read files of others, as long as this lives.
struct Raised(Option<CapabilitySets>);

impl Raised {
    fn now() -> Self {
        let before = capabilities(None).ok().filter(|sets| {
            let right = CapabilitySet::DAC_READ_SEARCH;
            // In one that is raised already there is nothing to do. Where it can't be raised, what needs it says so.
            sets.permitted.contains(right)
                && !sets.effective.contains(right)
                && set_effective(*sets, sets.effective.union(right)).is_ok()
        });
        Self(before)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // To go on with it would be to read whatever a user names. A right can always be laid down (capset(2)).
        if self.0.is_some_and(|before| set_capabilities(None, before).is_err()) {
            std::process::abort();
        }
    }
}

fn set_effective(sets: CapabilitySets, effective: CapabilitySet) -> io::Result<()> {
    Ok(set_capabilities(None, CapabilitySets { effective, ..sets })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_and_sys_admin_stands_for_the_newer_two() {
        let only = |bits: &str| Capabilities::of(&format!("Name:\tx\nCapEff:\t{bits}\nCapBnd:\t0\n"));
        let all = [Capability::Bpf, Capability::Perfmon, Capability::SysPtrace];
        assert_eq!(only("000000c000000000").missing(&all), [Capability::SysPtrace]);
        assert_eq!(only("0000000000200000").missing(&all), [Capability::SysPtrace]);
        assert_eq!(only("0000004000000000").missing(&all), [Capability::Bpf, Capability::SysPtrace]);
        assert_eq!(only("000001ffffffffff").missing(&all), []);
        assert_eq!(Capabilities::of("").missing(&all), all);
    }
}
