//! What this process is allowed to do (capabilities(7)).

use std::fmt;

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
    /// Our own. Where `/proc` does not tell, none: what needs one will say so itself.
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
