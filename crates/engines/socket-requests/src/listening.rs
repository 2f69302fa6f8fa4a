//! Ports on which a process listens, remembered for a moment.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use host::Pid;

/// Time after which the kernel's list is read again for a port that is not in it.
const REFRESH: Duration = Duration::from_secs(1);

/// Ports of TCP on which something listens in the network of the process.
pub(crate) struct ListeningPorts {
    pid: Pid,
    ports: BTreeSet<u16>,
    read: Instant,
}

impl ListeningPorts {
    pub(crate) fn of(pid: Pid) -> Self {
        Self {
            pid,
            ports: host::proc::listening_ports(pid),
            read: Instant::now(),
        }
    }

    /// Returns whether something listens on a port, so that connections to it are a server's.
    pub(crate) fn contains(&mut self, port: u16) -> bool {
        if !self.ports.contains(&port) && self.read.elapsed() >= REFRESH {
            self.ports = host::proc::listening_ports(self.pid);
            self.read = Instant::now();
        }
        self.ports.contains(&port)
    }
}
