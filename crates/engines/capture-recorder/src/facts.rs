//! Facts about the machine and the process for a capture, and the threads that write its rings.

use std::path::Path;

use capture::{
    FORMAT, LcoreThread, MAX_PARTS, Machine, Meta, NamedThread, Process, SocketSummary, Thread,
    Timestamp,
};
use host::machine::{self, Scheduling};
use host::{Pid, proc, system};
use scene::{BootNanos, Tid};
use socket_requests::Totals;
use spdk_trace::Lcore;
use sys::clock::{boot_nanos, real_nanos};
use text::printable;

/// Gathers the facts known before anything is captured.
pub fn gather(pid: u32) -> Meta {
    Meta {
        format: FORMAT,
        dptrace: env!("CARGO_PKG_VERSION").to_owned(),
        begin: now(),
        machine: describe_machine(),
        process: describe_process(pid),
        ..Meta::default()
    }
}

/// Returns the threads of this process.
pub fn own_threads() -> Vec<u32> {
    let own = proc::threads(Pid(std::process::id()));
    own.into_iter().map(|thread| thread.0).collect()
}

/// Returns the totals of a recording of sockets as a capture states them.
pub(crate) fn socket_totals(totals: Totals) -> SocketSummary {
    let Totals {
        requests,
        connections,
        forgotten,
        outgoing,
        lost,
    } = totals;
    SocketSummary {
        requests,
        connections,
        connections_forgotten: forgotten,
        connections_outgoing: outgoing,
        events_lost: lost,
    }
}

/// Returns the current time.
pub fn now() -> Timestamp {
    Timestamp {
        utc: text::utc::text(real_nanos().into()),
        boot_nanos: boot_nanos(),
    }
}

/// Converts a recent time of the boot clock.
pub(crate) fn at(boot: BootNanos) -> Timestamp {
    let utc = real_nanos()
        .saturating_sub(boot_nanos())
        .saturating_add(boot.0);
    Timestamp {
        utc: text::utc::text(utc.into()),
        boot_nanos: boot.0,
    }
}

fn describe_machine() -> Machine {
    let shown = |text: Option<String>| shown(text.unwrap_or_default().as_bytes());
    Machine {
        hostname: shown(machine::hostname()),
        kernel: shown(system::kernel_release()),
        arch: std::env::consts::ARCH.to_owned(),
        cpus_online: shown(machine::cpu_list("online")),
        cpus_isolated: shown(machine::cpu_list("isolated")),
        cpus_nohz_full: shown(machine::cpu_list("nohz_full")),
        governors: machine::governors(),
        kernel_command_line: shown(machine::kernel_command_line()),
        clock_source: shown(machine::clock_source()),
    }
}

fn describe_process(pid: u32) -> Process {
    let mut words = proc::command_line(Pid(pid));
    // The last word is followed by a zero, too.
    words.pop_if(|word| word.is_empty());
    Process {
        pid,
        start: proc::start_of_living(Pid(pid)).unwrap_or_default(),
        program: proc::program(Pid(pid))
            .map(|path| printable::path(&path))
            .unwrap_or_default(),
        command_line: words
            .iter()
            .take(MAX_PARTS)
            .map(|word| shown(word))
            .collect(),
        threads: describe_threads(pid),
        trace_file: None,
    }
}

/// Returns the process's current threads, up to the limit of a capture.
pub fn describe_threads(pid: u32) -> Vec<Thread> {
    proc::threads(Pid(pid))
        .into_iter()
        .filter_map(|tid| describe_thread(pid, tid))
        .take(MAX_PARTS)
        .collect()
}

/// Describes a thread, unless it has ended since it was listed.
fn describe_thread(pid: u32, tid: Pid) -> Option<Thread> {
    let folder = proc::task(Pid(pid), tid);
    let Scheduling {
        affinity,
        policy,
        priority,
    } = machine::scheduling(&folder).unwrap_or_default();
    // The name is read last: if it is there, the thread had not ended during the other reads.
    let name = shown(&proc::name(&folder)?);
    Some(Thread {
        tid: tid.0,
        name,
        affinity,
        policy: policy.to_owned(),
        priority,
    })
}

fn shown(text: &[u8]) -> String {
    printable::text(text).into_owned()
}

/// Returns the process's current threads in the form of the kernel's stream.
pub fn threads(pid: u32) -> Vec<NamedThread> {
    let since = BootNanos(boot_nanos());
    let named = |tid: Pid| {
        let read = proc::name(&proc::task(Pid(pid), tid))?;
        let mut name = [0; 16];
        // The kernel has room for 15 bytes (TASK_COMM_LEN, include/linux/sched.h).
        let kept = read.len().min(15);
        name[..kept].copy_from_slice(&read[..kept]);
        Some(NamedThread {
            since,
            tid: Tid(tid.0),
            name,
        })
    };
    proc::threads(Pid(pid))
        .into_iter()
        .filter_map(named)
        .collect()
}

/// Returns the name of the thread that writes a ring: the one stated by the file, or else SPDK's
/// name for a reactor (`_reactor_run`, lib/event/reactor.c).
pub fn thread_name(lcore: Lcore, stated: &str) -> String {
    if stated.is_empty() {
        format!("reactor_{lcore}")
    } else {
        stated.to_owned()
    }
}

/// Finds the thread that writes each ring: the one with its name, or else the only one that may run
/// on just the CPU with the lcore's number.
pub fn lcore_threads<'a>(
    rings: impl Iterator<Item = (Lcore, &'a str)>,
    threads: &[Thread],
) -> Vec<LcoreThread> {
    let only = |matches: &dyn Fn(&&Thread) -> bool| {
        let mut found = threads.iter().filter(matches);
        found
            .next()
            .filter(|_| found.next().is_none())
            .map(|thread| thread.tid)
    };
    let of_ring = |(lcore, name): (Lcore, &str)| {
        let name_there = thread_name(lcore, name);
        let by_name = only(&|thread| thread.name == name_there);
        let by_affinity = || only(&|thread| thread.affinity == lcore.to_string());
        let (tid, by) = match (by_name, by_name.or_else(by_affinity)) {
            (Some(tid), _) => (Some(tid), Some("name")),
            (None, Some(tid)) => (Some(tid), Some("affinity")),
            (None, None) => (None, None),
        };
        LcoreThread {
            lcore: lcore.0,
            name: name.to_owned(),
            tid,
            by: by.map(str::to_owned),
        }
    };
    // Some eras have a ring for each possible lcore.
    rings
        .map(of_ring)
        .filter(|ring| ring.tid.is_some() || !ring.name.is_empty())
        .collect()
}

/// Formats a path for messages.
pub fn path(path: &Path) -> String {
    printable::path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, name: &str, affinity: &str) -> Thread {
        Thread {
            tid,
            name: name.to_owned(),
            affinity: affinity.to_owned(),
            ..Thread::default()
        }
    }

    #[test]
    fn rings_are_of_the_threads_of_their_names() {
        let threads = [
            thread(1, "reactor_0", "0-3"),
            thread(2, "reactor_1", "1"),
            thread(3, "worker", "2"),
            thread(4, "app", "0"),
        ];
        let rings = [(0, "reactor_0"), (1, ""), (2, "gone"), (3, ""), (0, "")];
        let found = lcore_threads(
            rings.into_iter().map(|(lcore, name)| (Lcore(lcore), name)),
            &threads,
        );
        let found: Vec<_> = found
            .iter()
            .map(|ring| (ring.lcore, ring.tid, ring.by.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                (0, Some(1), Some("name")),
                (1, Some(2), Some("name")),
                (2, Some(3), Some("affinity")),
                (0, Some(1), Some("name"))
            ]
        );
        // Two threads of one name can't be distinguished.
        let twins = [thread(1, "w", "0-1"), thread(2, "w", "0-1")];
        assert_eq!(
            lcore_threads([(Lcore(0), "w")].into_iter(), &twins)[0].tid,
            None
        );
    }

    #[test]
    fn this_process_is_described() {
        let meta = gather(std::process::id());
        assert!(meta.process.program.starts_with('/') && !meta.process.command_line.is_empty());
        assert!(
            meta.process
                .threads
                .iter()
                .all(|thread| !thread.policy.is_empty())
        );
        assert!(meta.begin.utc.starts_with("20") && meta.begin.boot_nanos > 0);
        assert!(
            threads(std::process::id())
                .iter()
                .any(|thread| thread.tid == Tid(std::process::id()))
        );
    }
}
