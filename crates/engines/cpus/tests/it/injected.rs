//! Tests that inject known numbers of events on an audited CPU: each is counted under its own name,
//! with its cause.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::common::{
    Poller, beside_a_poller, close, count, counted, cpu, keep_off, started, stopped, tallies,
};
use cpus::audit::Facts;
use cpus::audit::layout::kind;
use host::KernelSymbols;
use rustix::thread::{MembarrierCommand, gettid, membarrier};
use testkit::kernel;

/// Number of injected memory barriers, and of flushes.
const TIMES: u64 = 200;
/// Number of injected work items.
const WORKS: u64 = 20;
/// Number of injected packets.
const PACKETS: u64 = 300;

/// Returns the address of a function of the kernel; `None`, with a note, if the kernel hides it.
fn function(name: &str) -> Option<u64> {
    let address = KernelSymbols::read().unwrap().address(name);
    if address.is_none() {
        kernel::skip(
            "names of functions",
            &format!("/proc/kallsyms has no {name}"),
        );
    }
    address
}

/// Returns whether this kernel shows the functions that CPUs call on each other.
fn shows_calls() -> bool {
    let missing = Facts::read().unwrap().missing();
    let shows = missing
        .iter()
        .all(|(name, _)| *name != "csd_function_entry");
    if !shows {
        println!("this kernel does not show {missing:?}");
    }
    shows
}

/// Each call interrupts the thread, which keeps the CPU throughout.
#[test]
#[ignore = "deep starve: a thread with SCHED_FIFO keeps the CPU, so that no call comes to an idle one"]
fn each_memory_barrier_of_another_cpu_is_a_called_function_with_its_caller() {
    let Some(_turn) = kernel::may_run("memory barriers of an audited CPU") else {
        return;
    };
    if !keep_off("memory barriers of an audited CPU") || !shows_calls() {
        return;
    }
    let Some(barrier) = function("ipi_mb") else {
        return;
    };
    membarrier(MembarrierCommand::RegisterPrivateExpedited).unwrap();
    let mut audit = started(Some(0));
    beside_a_poller(Poller::First, || {
        for _ in 0..TIMES {
            membarrier(MembarrierCommand::PrivateExpedited).unwrap();
        }
    });
    let (sums, each) = stopped(&mut audit);
    let caller = u64::try_from(gettid().as_raw_nonzero().get()).unwrap();
    let found = count(&sums, |key| {
        (key.kind, key.id, key.by_kind, key.by) == (kind::FUNCTION, barrier, kind::THREAD, caller)
    });
    assert_eq!(
        found,
        TIMES,
        "{:?}",
        tallies(&sums, |key| key.kind == kind::FUNCTION)
    );
    let sent = each
        .iter()
        .filter(|one| (one.key.kind, one.key.id, one.key.by) == (kind::FUNCTION, barrier, caller));
    assert_eq!(
        sent.count() as u64 + sums.cpus[0].state.unsent,
        TIMES,
        "single ones"
    );
    close(audit);
}

/// A hypervisor may do the flush itself if it has stopped the CPU: hence the comparison with the
/// kernel's own count (`/proc/interrupts`, x86-64).
#[test]
#[ignore = "deep starve: a thread with SCHED_FIFO keeps the CPU, so that no call comes to an idle one"]
fn flushes_of_translations_are_as_many_as_the_kernel_counts() {
    let Some(_turn) = kernel::may_run("TLB flushes of an audited CPU") else {
        return;
    };
    if !keep_off("TLB flushes of an audited CPU") || !shows_calls() {
        return;
    }
    let read = || counted("/proc/interrupts").get("TLB").copied();
    let (Some(_), Some(flush)) = (read(), function("flush_tlb_func")) else {
        return;
    };
    let (audit, sums, [around, inside, inside_end, around_end]) =
        beside_a_poller(Poller::First, || {
            let around = read();
            let audit = started(None);
            let inside = read();
            for _ in 0..TIMES {
                // Larger than the allocator caches: it is mapped, and unmapped when dropped.
                let mut memory: Vec<u8> = Vec::with_capacity(64 << 20);
                memory.push(std::hint::black_box(1));
                std::hint::black_box(&memory);
            }
            let inside_end = read();
            let sums = audit.stop().unwrap();
            (
                audit,
                sums,
                [around, inside, inside_end, read()].map(Option::unwrap),
            )
        });
    let found = count(&sums, |key| (key.kind, key.id) == (kind::FUNCTION, flush));
    let (least, most) = (inside_end - inside, around_end - around);
    assert!(
        (least..=most).contains(&found),
        "{found} are not between {least} and {most}"
    );
    let caller = u64::try_from(gettid().as_raw_nonzero().get()).unwrap();
    let mine = count(&sums, |key| {
        (key.kind, key.id, key.by) == (kind::FUNCTION, flush, caller)
    });
    assert!(mine > 0, "none of {TIMES}, and {found} of all threads");
    close(audit);
}

/// Reading this file queues `refresh_vm_stats` on each CPU, and waits until all of them are done
/// (`vmstat_refresh` of `mm/vmstat.c`).
#[test]
fn each_work_item_has_its_function_and_who_queued_it() {
    let Some(_turn) = kernel::may_run("work items of an audited CPU") else {
        return;
    };
    if !keep_off("work items of an audited CPU") {
        return;
    }
    let Some(refresh) = function("refresh_vm_stats") else {
        return;
    };
    let mut audit = started(Some(0));
    for _ in 0..WORKS {
        std::fs::read("/proc/sys/vm/stat_refresh").unwrap();
    }
    let (sums, each) = stopped(&mut audit);
    let symbols = KernelSymbols::read().unwrap();
    let names = |stack: u64| {
        let frames = sums.stacks.get(&stack).into_iter().flatten();
        frames
            .filter_map(|&frame| Some(symbols.at(frame)?.0))
            .collect::<Vec<_>>()
    };
    for (what, of) in [("run", kind::WORK), ("waited", kind::WORK | kind::WAITED)] {
        let found = count(&sums, |key| {
            (key.kind, key.id, key.by_kind) == (of, refresh, kind::STACK)
                && names(key.by).contains(&"schedule_on_each_cpu")
        });
        // Another process may read the file, too.
        assert!(found >= WORKS, "{found} of {WORKS} work items {what}");
    }
    let sent = each
        .iter()
        .filter(|one| (one.key.kind, one.key.id) == (kind::WORK, refresh))
        .count() as u64;
    assert!(
        sent + sums.cpus[0].state.unsent >= WORKS,
        "{sent} of {WORKS} were sent"
    );
    close(audit);
}

/// Script that sends packets over a pair of interfaces, both in a separate network namespace that
/// goes with its last process. Packets leave by one end and arrive at the other, which hands them
/// to the audited CPU, one at a time: the script waits for each.
const SENDER: &str = r#"
set -e
mount -t sysfs none /sys
ip link add one type veth peer name two
ip address add 192.0.2.1/24 dev one
ip link set one up && ip link set two up
ip neighbour add 192.0.2.9 lladdr "$(cat /sys/class/net/two/address)" dev one
echo "$1" > /sys/class/net/two/queues/rx-0/rps_cpus
echo ready
read -r _
exec 3> /dev/udp/192.0.2.9/9
for _ in $(seq "$2"); do
    before=$(cat /sys/class/net/two/statistics/rx_packets)
    echo packet >&3
    while [ "$(cat /sys/class/net/two/statistics/rx_packets)" = "$before" ]; do :; done
done
echo sent
read -r _
"#;

/// Returns the number of times that another CPU has interrupted [`cpu`] to hand it packets: the
/// tenth number of its line (`softnet_seq_show` of `net/core/net-procfs.c`).
fn handed() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let line = text.lines().nth(cpu() as usize).unwrap();
    u64::from_str_radix(line.split_whitespace().nth(9).unwrap(), 16).unwrap()
}

/// Starts the program that sends packets, and waits until it is ready; `None`, with a note, if no
/// pair of devices could be made.
fn start_sender() -> Option<(Child, ChildStdin, Lines<BufReader<ChildStdout>>)> {
    let mut sender = testkit::command("unshare")
        .args([
            "--net",
            "--mount",
            "bash",
            "-c",
            SENDER,
            "bash",
            &format!("{:x}", 1_u64 << cpu()),
            &PACKETS.to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (to, mut from) = (
        sender.stdin.take().unwrap(),
        BufReader::new(sender.stdout.take().unwrap()).lines(),
    );
    if from.next().and_then(Result::ok).as_deref() != Some("ready") {
        sender.wait().unwrap();
        kernel::skip(
            "packets for an audited CPU",
            "no pair of devices could be made: it needs bash and ip",
        );
        return None;
    }
    Some((sender, to, from))
}

#[test]
#[ignore = "deep truth: the CPU must not be idle when a packet comes, and the poller has it for two seconds only"]
fn packets_that_are_handed_to_the_cpu_are_soft_interrupts_raised_for_that() {
    let Some(_turn) = kernel::may_run("packets for an audited CPU") else {
        return;
    };
    if !keep_off("packets for an audited CPU") || !shows_calls() {
        return;
    }
    let Some(trigger) = function("rps_trigger_softirq") else {
        return;
    };
    let Some((mut sender, mut to, mut from)) = start_sender() else {
        return;
    };
    let (around, audit, inside, inside_end, sums, around_end) =
        beside_a_poller(Poller::Ordinary, || {
            let around = handed();
            let audit = started(None);
            let inside = handed();
            writeln!(to).unwrap();
            assert_eq!(from.next().unwrap().unwrap(), "sent");
            let inside_end = handed();
            let sums = audit.stop().unwrap();
            (around, audit, inside, inside_end, sums, handed())
        });
    drop(to);
    sender.wait().unwrap();

    let (least, most) = (inside_end - inside, around_end - around);
    assert!(least > 0, "no packet was handed to the CPU");
    let called = count(&sums, |key| (key.kind, key.id) == (kind::FUNCTION, trigger));
    assert!(
        (least..=most).contains(&called),
        "{called} calls are not between {least} and {most}"
    );
    let raised = tallies(&sums, |key| {
        (key.kind, key.id, key.by_kind, key.by) == (kind::SOFT, 3, kind::FUNCTION, trigger)
    });
    let soft: u64 = raised.iter().map(|(_, tally)| tally.count).sum();
    // Something else may have raised one before, and one may be over before the next packet's.
    assert!(
        soft > 0 && soft <= called,
        "{soft} soft interrupts of {called} calls"
    );
    assert!(
        raised
            .iter()
            .any(|(_, tally)| tally.name.starts_with(b"bash\0")),
        "{raised:?}"
    );
    close(audit);
}
