//! Names of this machine: the kernel's functions, and facts of threads.

use std::sync::{Arc, OnceLock};

use host::{KernelSymbols, busy};

use super::{Names, ThreadFacts};

/// Names of this machine.
#[derive(Default)]
pub(super) struct KernelNames {
    symbols: Arc<OnceLock<KernelSymbols>>,
}

impl KernelNames {
    /// Reads the symbols in a separate thread: on a slow machine it takes seconds, in which waits
    /// must be seen.
    pub(super) fn read_meanwhile(&self) {
        let symbols = Arc::clone(&self.symbols);
        let read = move || _ = symbols.get_or_init(|| KernelSymbols::read().unwrap_or_default());
        // Without that thread, the first lookup of a name reads them.
        let _ = std::thread::Builder::new()
            .name("symbols".into())
            .spawn(read);
    }

    fn symbols(&self) -> &KernelSymbols {
        self.symbols
            .get_or_init(|| KernelSymbols::read().unwrap_or_default())
    }

    /// Returns true if names were read and `schedule` has none: the kernel hides them.
    pub(super) fn is_blind(&self) -> bool {
        self.symbols
            .get()
            .is_some_and(|symbols| symbols.address("schedule").is_none())
    }
}

impl Names for KernelNames {
    fn function(&self, address: u64) -> String {
        match self.symbols().code_at(address) {
            Some((name, _, Some(module))) => format!("{name} [{module}]"),
            Some((name, _, None)) => name.to_owned(),
            None => format!("{address:#x}"),
        }
    }

    fn affinity(&self, interrupt: u64) -> Option<String> {
        busy::interrupt_affinity(interrupt)
    }

    fn thread(&self, tid: u32) -> Option<ThreadFacts> {
        thread_facts(tid)
    }
}

/// Returns the facts of a thread; `None` if it has exited.
pub(super) fn thread_facts(tid: u32) -> Option<ThreadFacts> {
    let busy::Scheduling {
        process: (pid, name),
        policy,
        priority,
        nice,
        cgroup,
        affinity,
    } = busy::scheduling(tid)?;
    let policy = match policy {
        1 => format!("SCHED_FIFO {priority}"),
        2 => format!("SCHED_RR {priority}"),
        3 => "SCHED_BATCH".to_owned(),
        5 => "SCHED_IDLE".to_owned(),
        6 => "SCHED_DEADLINE".to_owned(),
        _ => format!("nice {nice}"),
    };
    let name = String::from_utf8_lossy(&name).into_owned();
    Some(ThreadFacts {
        process: (pid, name),
        policy,
        cgroup,
        affinity,
    })
}
