//! Preemptors: the processes that ran while a thread waited for a CPU, and their relations to the
//! thread's own.

use std::collections::{BTreeMap, HashMap};

use ordering::Order as _;

use crate::by_thread::ByThread;
use crate::snapshot::name;

/// Relation of a process that ran instead to the one that waited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Relation {
    /// The same process: another thread.
    Own,
    /// A process started by that process or by its descendants.
    Child,
    /// No process: the CPU was idle, and the wait is the time that it took to wake up.
    Idle,
    /// Thread of the kernel.
    Kernel,
    /// This program, which measures.
    Dptrace,
    /// Any other process.
    Other,
}

impl Relation {
    /// Returns the word for JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Child => "child",
            Self::Idle => "idle",
            Self::Kernel => "kernel",
            Self::Dptrace => "dptrace",
            Self::Other => "other",
        }
    }
}

/// Task that ran while a thread waited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preemptor {
    /// Name of the task.
    pub name: String,
    /// Relation of its process to that of the thread.
    pub relation: Relation,
    /// Function of its work, if it is a kernel worker and the function's name is known.
    pub work: Option<String>,
    /// Processes with this name and relation.
    pub pids: Vec<u32>,
    /// Time that it ran, in nanoseconds.
    pub nanos: u64,
}

impl Preemptor {
    /// Returns a label: `kworker/1:0 (vmstat_update)`, `yes [4711]`, `sh [4712, its child]`, `cc1
    /// [8 of its children]`, `postgres [its own thread]`.
    pub fn label(&self) -> String {
        let Self {
            name,
            relation,
            pids,
            work,
            ..
        } = self;
        let label = match (relation, pids.as_slice()) {
            // The names of these are complete.
            (Relation::Idle | Relation::Dptrace, _) => return name.clone(),
            (Relation::Kernel, _) => {
                return work
                    .as_ref()
                    .map_or_else(|| name.clone(), |work| format!("{name} ({work})"));
            }
            (Relation::Own, _) => "its own thread".to_owned(),
            (Relation::Child, [pid]) => format!("{pid}, its child"),
            (Relation::Child, pids) => format!("{} of its children", pids.len()),
            (Relation::Other, [pid]) => pid.to_string(),
            (Relation::Other, pids) => format!("{} processes", pids.len()),
        };
        format!("{name} [{label}]")
    }
}

/// Parent of the kernel's threads (`kthreadd` of `init/main.c`).
const KERNEL_PARENT: u32 = 2;
/// Maximum number of ancestors that are followed.
const GENERATIONS: usize = 64;

/// Key of the sums: a name, its relation to the thread, and a worker's function.
type PreemptorGroup = (String, Relation, Option<String>);

/// Returns the tasks that ran while the thread `tid` of the process `own` waited, longest first.
pub(crate) fn preemptors(tid: u32, own: u32, causes: &ByThread<'_>) -> Vec<Preemptor> {
    let mut found: BTreeMap<PreemptorGroup, (Vec<u32>, u64)> = BTreeMap::new();
    for (key, nanos) in causes.preemptors(tid) {
        let relation = match causes.snapshot.dptrace {
            Some(pid) if pid == key.tgid && pid != own => Relation::Dptrace,
            _ => relation(key.tgid, own, &causes.parents),
        };
        let name = match relation {
            // One name for the idle tasks of all CPUs.
            Relation::Idle => "(idle CPU)".to_owned(),
            Relation::Dptrace => screen::DPTRACE_ITSELF.to_owned(),
            _ => name(&key.comm),
        };
        let work = causes.snapshot.functions.get(&key.function).cloned();
        let (pids, sum) = found.entry((name, relation, work)).or_default();
        if !pids.contains(&key.tgid) {
            pids.push(key.tgid);
        }
        *sum += nanos;
    }
    let all = found
        .into_iter()
        .map(|((name, relation, work), (mut pids, nanos))| {
            pids.order();
            Preemptor {
                name,
                relation,
                work,
                pids,
                nanos,
            }
        });
    let mut all: Vec<Preemptor> = all.collect();
    all.order_by(|a, b| {
        b.nanos
            .cmp(&a.nanos)
            .then_with(|| (&a.name, a.relation, &a.work).cmp(&(&b.name, b.relation, &b.work)))
    });
    all
}

/// Returns the relation of a process to another, by the parents that were seen.
fn relation(pid: u32, own: u32, parents: &HashMap<u32, u32>) -> Relation {
    if pid == own {
        return Relation::Own;
    }
    if pid == 0 {
        return Relation::Idle;
    }
    let mut at = pid;
    for _ in 0..GENERATIONS {
        match parents.get(&at) {
            Some(&parent) if parent == own => return Relation::Child,
            Some(&KERNEL_PARENT) => return Relation::Kernel,
            Some(&parent) if parent != 0 => at = parent,
            _ => break,
        }
    }
    if pid == KERNEL_PARENT {
        Relation::Kernel
    } else {
        Relation::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::PreemptorKey;
    use crate::sample::WindowSnapshot;

    fn key(tgid: u32, parent: u32, text: &[u8]) -> (PreemptorKey, u64) {
        let mut comm = [0; 16];
        comm[..text.len()].copy_from_slice(text);
        (
            PreemptorKey {
                waiter: 7,
                tgid,
                parent,
                comm,
                function: 0,
            },
            10,
        )
    }

    #[test]
    fn children_and_own_threads_are_no_strangers() {
        let preemptors_of = [
            key(100, 1, b"make"),
            key(101, 100, b"sh"),
            key(102, 101, b"cc1"),
            key(103, 101, b"cc1"),
            key(200, 1, b"cc1"),
            key(0, 0, b"swapper/1"),
            key(55, 2, b"kworker/0:1"),
            key(300, 1, b"ring-reader"),
            key(300, 1, b"clocks"),
        ];
        let worked = |function| {
            (
                PreemptorKey {
                    function,
                    ..key(55, 2, b"kworker/0:1").0
                },
                10,
            )
        };
        let snapshot = WindowSnapshot {
            preemptors: preemptors_of
                .into_iter()
                .chain([worked(64), worked(65), worked(64)])
                .collect(),
            functions: HashMap::from([(64, "vmstat_update".to_owned())]),
            dptrace: Some(300),
            ..WindowSnapshot::default()
        };
        let causes = ByThread::from_snapshot(&snapshot);
        let mut labels: Vec<String> = preemptors(7, 100, &causes)
            .iter()
            .map(Preemptor::label)
            .collect();
        labels.sort();
        let wanted = [
            "(idle CPU)",
            "cc1 [2 of its children]",
            "cc1 [200]",
            "dptrace itself",
            "kworker/0:1",
            "kworker/0:1 (vmstat_update)",
            "make [its own thread]",
            "sh [101, its child]",
        ];
        assert_eq!(labels, wanted);
        assert!(preemptors(8, 100, &causes).is_empty());
    }
}
