//! SPDK's USDT probes, each with a counter of its hits, in one table.
//!
//! Names, arguments and their order are those of the `SPDK_DTRACE_PROBE*` macros in SPDK's
//! `lib/nvmf`, `lib/event`, `lib/thread`, `module/bdev/nvme`, `module/event/subsystems/nvmf` and
//! `module/scheduler/dynamic` (master of 2026). Every probe has one word before them: the TSC in
//! the `_TICKS` macros, else 0 (`include/spdk_internal/usdt.h`). Strings are pointers to text that
//! ends with a NUL.

use std::ffi::CStr;

use probe::{probe, probe_lazy};

use crate::options::Options;

/// Type that can be passed to a probe as one machine word.
pub(crate) trait Word {
    /// Returns the word. The memory behind a pointer counts as reachable from then on, so that it
    /// is written by then.
    fn word(self) -> u64;
}

impl Word for u64 {
    #[inline]
    fn word(self) -> u64 {
        self
    }
}

impl Word for &CStr {
    #[inline]
    fn word(self) -> u64 {
        self.as_ptr().expose_provenance() as u64
    }
}

/// First word of a probe: the TSC, or 0 in the probes that have none since v23.05.
macro_rules! first_word {
    (ticks, $hits:expr, $tsc:expr) => {
        $tsc
    };
    (plain, $hits:expr, $tsc:expr) => {
        if $hits.all_ticks { $tsc } else { 0 }
    };
}

macro_rules! spdk_probes {
    ($($first:ident $name:ident ($($arg:ident: $type:ty),*);)*) => {
        /// Indices of the counters.
        #[derive(Clone, Copy)]
        #[expect(non_camel_case_types, reason = "they are named as the probes are")]
        enum Counter {
            $($name,)*
            request_lazy,
            demo_request_start,
            demo_request_complete,
        }

        /// Names of the counters: the probes as `provider:name`, then the two functions.
        pub const PROBE_NAMES: [&str; COUNTERS] = [
            $(concat!("spdk:", stringify!($name)),)*
            "demo:request_lazy",
            "demo_request_start",
            "demo_request_complete",
        ];

        // Always inlined, so that a probe is in every place that hits it, as in SPDK.
        impl Hits {
            $(
                #[inline(always)]
                pub(crate) fn $name(&mut self, tsc: u64 $(, $arg: $type)*) {
                    if !self.silent {
                        let first = first_word!($first, self, tsc);
                        probe!(spdk, $name, first $(, $arg.word())*);
                        self.counts[Counter::$name as usize] += 1;
                    }
                }
            )*
        }
    };
}

const COUNTERS: usize = Counter::demo_request_complete as usize + 1;

spdk_probes! {
    plain nvmf_tgt_state(state: u64);
    ticks nvmf_tgt_add_transport(transport: u64, target: &CStr);
    ticks nvmf_create_poll_group(thread: u64);
    ticks nvmf_transport_poll_group_create(transport: u64, thread: u64);
    ticks nvmf_destroy_poll_group_qpairs(thread: u64);
    ticks nvmf_destroy_poll_group(thread: u64);
    ticks nvmf_poll_group_add_qpair(qpair: u64, thread: u64);
    ticks nvmf_poll_group_remove_qpair(qpair: u64, thread: u64);
    ticks nvmf_poll_group_drain_qpair(qpair: u64, thread: u64);
    ticks nvmf_poll_group_add_subsystem(thread: u64, subnqn: &CStr);
    ticks nvmf_poll_group_remove_subsystem(group: u64, thread: u64, subnqn: &CStr);
    plain nvmf_transport_poll_group_add(qpair: u64, qid: u64, thread: u64);
    plain nvmf_transport_poll_group_remove(qpair: u64, qid: u64, thread: u64);
    plain nvmf_transport_qpair_fini(qpair: u64);
    ticks nvmf_qpair_disconnect(qpair: u64, thread: u64);
    ticks nvmf_ctrlr_create(ctrlr: u64, subnqn: &CStr, thread: u64);
    ticks nvmf_ctrlr_destruct(ctrlr: u64, thread: u64);
    ticks nvmf_ctrlr_add_qpair(qpair: u64, qid: u64, subnqn: &CStr, hostnqn: &CStr);
    ticks nvmf_ctrlr_add_io_qpair(ctrlr: u64, qpair: u64, qid: u64, thread: u64);
    plain nvmf_subsystem_create(subnqn: &CStr);
    plain nvmf_subsystem_destroy(subnqn: &CStr);
    plain nvmf_subsystem_add_ns(subnqn: &CStr, nsid: u64);
    plain nvmf_subsystem_add_host(subnqn: &CStr, hostnqn: &CStr);
    plain nvmf_subsystem_remove_host(subnqn: &CStr, hostnqn: &CStr);
    plain nvmf_subsystem_add_listener(subnqn: &CStr, trtype: u64, traddr: &CStr, trsvcid: &CStr);
    plain nvmf_subsystem_remove_listener(subnqn: &CStr, trtype: u64, traddr: &CStr, trsvcid: &CStr);
    plain nvmf_subsystem_add_ctrlr(subnqn: &CStr, ctrlr: u64, hostnqn: &CStr);
    plain nvmf_subsystem_remove_ctrlr(subnqn: &CStr, ctrlr: u64, hostnqn: &CStr);
    plain nvmf_subsystem_change_state(subnqn: &CStr, requested: u64, current: u64);
    plain nvmf_subsystem_change_state_done(subnqn: &CStr, requested: u64, original: u64, status: u64);
    plain nvmf_pg_change_state(subnqn: &CStr, requested: u64, thread: u64);
    plain nvmf_pg_change_state_done(subnqn: &CStr, requested: u64, thread: u64);
    plain bdev_nvme_create_qpair(name: &CStr, qid: u64, thread: u64);
    plain bdev_nvme_ctrlr_reset(name: &CStr);
    plain bdev_nvme_ctrlr_reconnect_delay(name: &CStr);
    plain bdev_nvme_ctrlr_reconnect(name: &CStr);
    plain bdev_nvme_destruct(name: &CStr, nsid: u64);
    plain bdev_nvme_ctrlr_delete(name: &CStr);
    plain bdev_nvme_ctrlr_release(name: &CStr, refs: u64);
    plain dynsched_balance(cores: u64);
    plain dynsched_core_info(core: u64, info: u64);
    plain dynsched_move(thread_info: u64, new_core: u64);
    plain msg_exec(function: u64, arg: u64);
    plain event_exec(function: u64, arg1: u64, arg2: u64);
    plain timerfd_exec(function: u64, arg: u64);
    plain interrupt_fd_process(name: &CStr, fd: u64, function: u64, arg: u64);
}

/// Access of one thread to the probes, with exact counts.
#[derive(Debug, Clone)]
pub(crate) struct Hits {
    counts: [u64; COUNTERS],
    /// True if the probes without ticks get them nevertheless.
    all_ticks: bool,
    /// True if no probe is hit at all.
    silent: bool,
}

impl Hits {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            counts: [0; COUNTERS],
            all_ticks: options.all_ticks,
            silent: options.no_probes,
        }
    }

    /// Hits a probe with a semaphore, unlike SPDK's: it is hit, and counted, only while somebody
    /// listens.
    #[inline]
    pub(crate) fn request_lazy(&mut self, tsc: u64, request: u64) {
        let hit = !self.silent && probe_lazy!(demo, request_lazy, tsc, request);
        self.counts[Counter::request_lazy as usize] += u64::from(hit);
    }

    #[inline]
    pub(crate) fn request_start(&mut self, request: u64, qpair: u64, blocks: u32) {
        crate::functions::demo_request_start(request, qpair, blocks);
        self.counts[Counter::demo_request_start as usize] += 1;
    }

    #[inline]
    pub(crate) fn request_complete(&mut self, request: u64, blocks: u32) {
        crate::functions::demo_request_complete(request, 0, blocks);
        self.counts[Counter::demo_request_complete as usize] += 1;
    }

    pub(crate) fn started(&self) -> u64 {
        self.counts[Counter::demo_request_start as usize]
    }

    pub(crate) fn completed(&self) -> u64 {
        self.counts[Counter::demo_request_complete as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// Returns every counter with its name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        PROBE_NAMES.into_iter().zip(self.counts)
    }
}
