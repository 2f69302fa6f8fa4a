//! Ports on which a process listens, remembered for a moment.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use host::{Pid, proc};

/// Time after which the kernel's list is read again.
const REFRESH: Duration = Duration::from_secs(1);

/// Ports of TCP in the network of some processes.
pub(crate) struct ListeningPorts {
    pids: Vec<Pid>,
    /// Ports on which anything listens.
    all: BTreeSet<u16>,
    /// Ports on which the processes themselves listen.
    own: BTreeSet<u16>,
    read: Instant,
}

impl ListeningPorts {
    /// Reads the ports in the network of the first of these processes.
    pub(crate) fn for_processes(pids: Vec<Pid>) -> Self {
        let mut ports = Self {
            pids,
            all: BTreeSet::new(),
            own: BTreeSet::new(),
            read: Instant::now(),
        };
        ports.read();
        ports
    }

    /// Reads the ports again, if that was not done a moment ago.
    pub(crate) fn refresh(&mut self) {
        if self.read.elapsed() >= REFRESH {
            self.read();
        }
    }

    fn read(&mut self) {
        self.read = Instant::now();
        let Some(first) = self.pids.first() else {
            return;
        };
        let inodes: HashSet<u64> = self
            .pids
            .iter()
            .flat_map(|pid| proc::socket_inodes(*pid).unwrap_or_default())
            .collect();
        let listening = proc::listening_ports(*first);
        let own = listening.iter().filter(|it| inodes.contains(&it.inode));
        self.own = own.map(|it| it.port).collect();
        self.all = listening.iter().map(|it| it.port).collect();
    }

    /// Returns whether something listens on a port, so that connections to it are a server's: that
    /// of the process, or of the one that gave it the connection.
    pub(crate) fn contains(&mut self, port: u16) -> bool {
        if !self.all.contains(&port) {
            self.refresh();
        }
        self.all.contains(&port)
    }

    /// Returns the ports on which the processes themselves listen.
    pub(crate) fn own(&self) -> &BTreeSet<u16> {
        &self.own
    }
}
