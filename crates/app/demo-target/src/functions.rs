//! Functions with plain names, for uprobes and uretprobes, and for the probes that pass a
//! function's address.
//!
//! Each body is opaque to the optimizer and differs from the others, so that none is inlined,
//! merged or loses an argument.
#![expect(
    unsafe_code,
    reason = "a symbol without mangling must not be defined twice: these names are ours alone"
)]

use std::hint::black_box;

/// Marks the start of a request; returns the request's pointer.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn demo_request_start(request: u64, qpair: u64, blocks: u32) -> u64 {
    black_box(qpair);
    black_box(blocks);
    black_box(request)
}

/// Marks the completion of a request; returns the number of blocks moved.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn demo_request_complete(request: u64, status: i32, blocks: u32) -> u64 {
    black_box(request);
    if black_box(status) == 0 {
        u64::from(black_box(blocks))
    } else {
        0
    }
}

/// Serves as the function of the probe `msg_exec`.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn demo_connect_msg(ctrlr: u64) -> u64 {
    black_box(ctrlr) + 1
}

/// Serves as the function of the probe `event_exec`.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn demo_schedule_event(first: u64, second: u64) -> u64 {
    black_box(first) + black_box(second)
}

/// Serves as the function of the probes `timerfd_exec` and `interrupt_fd_process`.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn demo_poller(arg: u64) -> u64 {
    black_box(arg) + 2
}
