//! Names of system calls and soft interrupts.

use crate::layout::{SLOT_COMPAT, SLOT_FAULT, SLOT_NONE, SLOT_OTHER, SLOT_RECLAIM, SLOT_UNKNOWN};
use syscalls::Sysno;
use text::patterns::nearest;

/// Maximum number of near names listed.
pub(crate) const MAX_NEAR_NAMES: usize = 3;

/// Returns the name of a call's slot; a call without a name is shown by its number.
pub fn call_name(slot: u32) -> String {
    match slot {
        SLOT_COMPAT => "32-bit calls".to_owned(),
        SLOT_OTHER => "other calls".to_owned(),
        SLOT_NONE => "no call".to_owned(),
        SLOT_UNKNOWN => "unknown call".to_owned(),
        SLOT_FAULT => "page faults".to_owned(),
        SLOT_RECLAIM => "reclaim of memory".to_owned(),
        number => Sysno::new(number as usize).map_or_else(
            || format!("syscall:{number}"),
            |call| call.name().to_owned(),
        ),
    }
}

/// Returns the number of the system call with this name.
pub fn call_number(name: &str) -> Option<u32> {
    name.parse::<Sysno>()
        .ok()
        .map(|call| call.id().cast_unsigned())
}

/// Returns the names of system calls that are near to this one.
pub(crate) fn calls_near(name: &str) -> Vec<String> {
    let known: Vec<&str> = Sysno::iter().map(|call| call.name()).collect();
    nearest(name, known, MAX_NEAR_NAMES)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Returns the number of the call that programs make for `poll(2)`: the C library uses `ppoll` on
/// machines without `poll`.
pub fn poll_numbers() -> Vec<u32> {
    poll_of(call_number).into_iter().collect()
}

fn poll_of(number: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    number("poll").or_else(|| number("ppoll"))
}

/// Calls that only wait for events, and do no work: poll(2), select(2) and epoll_wait(2), with
/// their variants.
const EVENT_WAITS: [&str; 7] = [
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];

/// Returns whether a call only waits for events.
pub(crate) fn waits_for_events(slot: u32) -> bool {
    EVENT_WAITS.contains(&call_name(slot).as_str())
}

/// Returns whether a call reports errors. The result of rt_sigreturn(2) is that of the call which
/// a signal interrupted; the scripts `syslat` and `syscall-errors` leave it out, too.
pub(crate) fn has_errors(slot: u32) -> bool {
    call_name(slot) != "rt_sigreturn"
}

/// Soft interrupts in order (`enum` of `include/linux/interrupt.h`), named as in `/proc/softirqs`,
/// in lower case.
const SOFT: [&str; 10] = [
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu",
];

/// Returns the name of a soft interrupt.
pub fn soft_name(vector: u32) -> String {
    SOFT.get(vector as usize)
        .map_or_else(|| format!("softirq:{vector}"), |name| (*name).to_owned())
}

/// Processor's own interrupts that are counted, by their vectors
/// (`arch/x86/include/asm/irq_vectors.h`). `/proc/interrupts` has them as `LOC` and `CAL`.
const VECTORS: [(u32, &str); 3] = [
    (0xec, "local timer"),
    (0xfb, "function call, one"),
    (0xfc, "function call, many"),
];

/// Returns the name of one of the processor's own interrupts.
pub(crate) fn vector_name(vector: u32) -> String {
    let known = VECTORS.iter().find(|(number, _)| *number == vector);
    known.map_or_else(
        || format!("vector:{vector}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// Possible errors of sending a packet to user space, by number (`asm-generic/errno-base.h`,
/// `asm-generic/errno.h`).
const ERRORS: [(u32, &str); 15] = [
    (1, "EPERM"),
    (2, "ENOENT"),
    (4, "EINTR"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (19, "ENODEV"),
    (22, "EINVAL"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (75, "EOVERFLOW"),
    (90, "EMSGSIZE"),
    (95, "EOPNOTSUPP"),
    (105, "ENOBUFS"),
    (107, "ENOTCONN"),
    (111, "ECONNREFUSED"),
];

/// Returns the name of an error; an error without a name here is shown by its number.
pub(crate) fn error_name(error: u32) -> String {
    let known = ERRORS.iter().find(|(number, _)| *number == error);
    known.map_or_else(|| format!("error {error}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_call_is_found() {
        assert_eq!(calls_near("opennat"), ["openat", "openat2"]);
        assert_eq!(calls_near("nothing_like_it"), [""; 0]);
    }

    #[test]
    fn calls_have_their_names_or_their_numbers() {
        assert_eq!(call_name(libc_getppid()), "getppid");
        assert_eq!(call_name(505), "syscall:505");
        assert_eq!(call_name(SLOT_COMPAT), "32-bit calls");
        assert_eq!(
            (soft_name(3), soft_name(12)),
            ("net_rx".to_owned(), "softirq:12".to_owned())
        );
        assert_eq!(poll_numbers().len(), 1);
    }

    /// Each architecture has some of them.
    #[test]
    fn calls_that_wait_for_events_are_known() {
        let known: Vec<u32> = EVENT_WAITS
            .iter()
            .filter_map(|name| call_number(name))
            .collect();
        assert!(
            known.len() >= 4 && known.iter().all(|&slot| waits_for_events(slot)),
            "{known:?}"
        );
        let others = ["read", "futex", "clock_nanosleep"].map(|name| call_number(name).unwrap());
        assert!(
            ![&others[..], &[SLOT_COMPAT, SLOT_OTHER, SLOT_NONE]]
                .concat()
                .into_iter()
                .any(waits_for_events)
        );
    }

    #[test]
    fn the_end_of_a_signal_handler_has_no_errors() {
        let of = |name| has_errors(call_number(name).unwrap());
        assert!(!of("rt_sigreturn") && of("read") && has_errors(SLOT_OTHER));
    }

    /// Numbers of `include/uapi/asm-generic/unistd.h`.
    #[test]
    fn the_table_of_aarch64() {
        use syscalls::aarch64::Sysno as Arm;
        for (number, name) in [
            (63, "read"),
            (73, "ppoll"),
            (98, "futex"),
            (115, "clock_nanosleep"),
            (173, "getppid"),
        ] {
            assert_eq!(Arm::new(number).map(|call| call.name()), Some(name));
        }
        let number = |name: &str| {
            name.parse::<Arm>()
                .ok()
                .map(|call| call.id().cast_unsigned())
        };
        assert_eq!(poll_of(number), Some(73), "it has no poll");
        assert_eq!(poll_of(call_number), call_number("poll").or(Some(73)));
        assert!(
            Arm::iter().all(|call| call.id().cast_unsigned() < crate::layout::NUMBERED_SLOTS),
            "each has a slot"
        );
    }

    fn libc_getppid() -> u32 {
        if cfg!(target_arch = "x86_64") {
            110
        } else {
            173
        }
    }
}
