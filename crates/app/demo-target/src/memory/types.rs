//! SPDK v24.09's structs, so that this program has the same debug information about them as a
//! target.
//!
//! Only members that dptrace's object specs use have names. A program has one layout for each name:
//! for the other versions, tests run copies without debug information.
#![allow(
    dead_code,
    non_camel_case_types,
    clippy::struct_field_names,
    reason = "they are there to be found by debuggers, under SPDK's names"
)]

use std::ffi::c_int;

/// List head of `<sys/queue.h>` (`TAILQ_HEAD`).
#[repr(C)]
pub(super) struct tailq_head<T> {
    pub(super) tqh_first: *mut T,
    pub(super) tqh_last: *mut *mut T,
}

/// List link of `<sys/queue.h>` (`TAILQ_ENTRY`).
#[repr(C)]
pub(super) struct tailq_entry<T> {
    tqe_next: *mut T,
    tqe_prev: *mut *mut T,
}

/// Tree head of `spdk/tree.h` (`RB_HEAD`).
#[repr(C)]
pub(super) struct rb_head<T> {
    rbh_root: *mut T,
}

/// Tree link of `spdk/tree.h` (`RB_ENTRY`).
#[repr(C)]
pub(super) struct rb_entry<T> {
    rbe_left: *mut T,
    rbe_right: *mut T,
    rbe_parent: *mut T,
}

#[repr(C)]
pub(super) struct spdk_nvmf_tgt {
    name: [u8; 256],
    pad1: [u8; 48],
    max_subsystems: u32,
    pad2: [u8; 4],
    state: c_int,
    pad3: [u8; 12],
    subsystems: rb_head<spdk_nvmf_subsystem>,
    transports: tailq_head<spdk_nvmf_transport>,
    poll_groups: tailq_head<spdk_nvmf_poll_group>,
    pad4: [u8; 56],
    link: tailq_entry<spdk_nvmf_tgt>,
}

#[repr(C)]
pub(super) struct spdk_nvmf_poll_group {
    thread: *mut spdk_thread,
    pad1: [u8; 40],
    qpairs: tailq_head<spdk_nvmf_qpair>,
    pad2: [u8; 56],
    link: tailq_entry<spdk_nvmf_poll_group>,
    pad3: [u8; 40],
}

#[repr(C)]
pub(super) struct spdk_nvmf_qpair {
    state: u8,
    pad1: [u8; 1],
    qid: u16,
    pad2: [u8; 4],
    transport: *mut spdk_nvmf_transport,
    ctrlr: *mut spdk_nvmf_ctrlr,
    group: *mut spdk_nvmf_poll_group,
    pad3: [u8; 24],
    link: tailq_entry<spdk_nvmf_qpair>,
    pad4: [u8; 18],
    trace_id: u16,
    pad5: [u8; 20],
}

#[repr(C)]
pub(super) struct spdk_nvmf_transport {
    tgt: *mut spdk_nvmf_tgt,
    ops: *mut spdk_nvmf_transport_ops,
    pad1: [u8; 128],
    link: tailq_entry<spdk_nvmf_transport>,
    pad2: [u8; 40],
}

#[repr(C)]
pub(super) struct spdk_nvmf_transport_ops {
    name: [u8; 32],
    r#type: c_int,
    pad1: [u8; 252],
}

#[repr(C)]
pub(super) struct spdk_nvmf_ctrlr {
    cntlid: u16,
    hostnqn: [u8; 224],
    pad1: [u8; 6],
    subsys: *mut spdk_nvmf_subsystem,
    pad2: [u8; 368],
    admin_qpair: *mut spdk_nvmf_qpair,
    thread: *mut spdk_thread,
    pad3: [u8; 4288],
    link: tailq_entry<spdk_nvmf_ctrlr>,
}

#[repr(C)]
pub(super) struct spdk_nvmf_subsystem {
    thread: *mut spdk_thread,
    id: u32,
    state: c_int,
    subtype: c_int,
    next_cntlid: u16,
    pad1: [u8; 18],
    tgt: *mut spdk_nvmf_tgt,
    link: rb_entry<spdk_nvmf_subsystem>,
    ns: *mut *mut spdk_nvmf_ns,
    max_nsid: u32,
    pad2: [u8; 20],
    ctrlrs: tailq_head<spdk_nvmf_ctrlr>,
    pad3: [u8; 80],
    entries: tailq_entry<spdk_nvmf_subsystem>,
    pad4: [u8; 16],
    sn: [u8; 21],
    mn: [u8; 41],
    subnqn: [u8; 224],
    pad5: [u8; 34],
}

#[repr(C)]
pub(super) struct spdk_nvmf_ns {
    nsid: u32,
    pad1: [u8; 4],
    subsystem: *mut spdk_nvmf_subsystem,
    bdev: *mut spdk_bdev,
    pad2: [u8; 168],
}

#[repr(C)]
pub(super) struct spdk_bdev {
    pad1: [u8; 8],
    name: *mut u8,
    pad2: [u8; 16],
    product_name: *mut u8,
    pad3: [u8; 4],
    blocklen: u32,
    pad4: [u8; 8],
    blockcnt: u64,
    pad5: [u8; 144],
    internal: spdk_bdev_internal,
}

#[repr(C)]
pub(super) struct spdk_bdev_mgr {
    pad1: [u8; 32],
    bdevs: tailq_head<spdk_bdev>,
    /// Padding to the size of the largest version.
    pad2: [u8; 72],
}

#[repr(C)]
pub(super) struct spdk_thread {
    tsc_last: u64,
    pad1: [u8; 16],
    active_pollers: tailq_head<spdk_poller>,
    timed_pollers: rb_head<spdk_poller>,
    pad2: [u8; 8],
    paused_pollers: tailq_head<spdk_poller>,
    pad3: [u8; 40],
    id: u64,
    pad4: [u8; 8],
    state: c_int,
    pad5: [u8; 20],
    tailq: tailq_entry<spdk_thread>,
    name: [u8; 257],
    pad6: [u8; 415],
}

#[repr(C)]
pub(super) struct spdk_poller {
    tailq: tailq_entry<spdk_poller>,
    node: rb_entry<spdk_poller>,
    state: c_int,
    pad1: [u8; 4],
    period_ticks: u64,
    pad2: [u8; 8],
    run_count: u64,
    busy_count: u64,
    pad3: [u8; 8],
    r#fn: *mut u8,
    arg: *mut u8,
    thread: *mut spdk_thread,
    pad4: [u8; 24],
    name: [u8; 257],
    pad5: [u8; 7],
}

#[repr(C)]
pub(super) struct spdk_reactor {
    threads: tailq_head<spdk_lw_thread>,
    thread_count: u32,
    lcore: u32,
    flags: u32,
    pad1: [u8; 4],
    tsc_last: u64,
    pad2: [u8; 168],
    busy_tsc: u64,
    idle_tsc: u64,
    pad3: [u8; 480],
}

#[repr(C)]
pub(super) struct spdk_lw_thread {
    link: tailq_entry<spdk_lw_thread>,
    pad1: [u8; 8],
    lcore: u32,
    pad2: [u8; 36],
}

#[repr(C)]
pub(super) struct nvme_bdev_ctrlr {
    name: *mut u8,
    ctrlrs: tailq_head<nvme_ctrlr>,
    pad1: [u8; 16],
    tailq: tailq_entry<nvme_bdev_ctrlr>,
}

#[repr(C)]
pub(super) struct nvme_ctrlr {
    ctrlr: *mut spdk_nvme_ctrlr,
    pad1: [u8; 160],
    tailq: tailq_entry<nvme_ctrlr>,
    nbdev_ctrlr: *mut nvme_bdev_ctrlr,
    pad2: [u8; 112],
}

#[repr(C)]
pub(super) struct spdk_nvme_ctrlr {
    pad1: [u8; 22],
    cntlid: u16,
    pad2: [u8; 16],
    trid: spdk_nvme_transport_id,
    pad3: [u8; 16],
    state: c_int,
    pad4: [u8; 6144],
}

#[repr(C)]
pub(super) struct spdk_nvme_transport_id {
    pad1: [u8; 36],
    trtype: c_int,
    pad2: [u8; 4],
    traddr: [u8; 257],
    trsvcid: [u8; 33],
    subnqn: [u8; 224],
    pad3: [u8; 6],
}

impl spdk_bdev_mgr {
    /// Empty manager.
    pub(super) const EMPTY: Self = Self {
        pad1: [0; 32],
        bdevs: tailq_head {
            tqh_first: std::ptr::null_mut(),
            tqh_last: std::ptr::null_mut(),
        },
        pad2: [0; 72],
    };
}

#[repr(C)]
pub(super) struct spdk_bdev_internal {
    pad1: [u8; 128],
    link: tailq_entry<spdk_bdev>,
    pad2: [u8; 160],
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use crate::memory::layouts::layout;

    #[test]
    fn debug_information_and_memory_agree() {
        let at = layout("v24.09").unwrap();
        assert_eq!(offset_of!(spdk_nvmf_tgt, poll_groups), at.tgt_poll_groups);
        assert_eq!(offset_of!(spdk_nvmf_tgt, transports), at.tgt_transports);
        assert_eq!(offset_of!(spdk_nvmf_tgt, subsystems), at.tgt_subsystems);
        assert_eq!(offset_of!(spdk_nvmf_tgt, link), at.tgt_link);
        assert_eq!(offset_of!(spdk_nvmf_poll_group, qpairs), at.group_qpairs);
        assert_eq!(offset_of!(spdk_nvmf_poll_group, link), at.group_link);
        assert_eq!(offset_of!(spdk_nvmf_qpair, qid), at.qpair_qid);
        assert_eq!(offset_of!(spdk_nvmf_qpair, ctrlr), at.qpair_ctrlr);
        assert_eq!(offset_of!(spdk_nvmf_qpair, link), at.qpair_link);
        assert_eq!(offset_of!(spdk_nvmf_qpair, trace_id), at.qpair_trace_id);
        assert_eq!(offset_of!(spdk_nvmf_transport, link), at.transport_link);
        assert_eq!(
            (
                offset_of!(spdk_nvmf_ctrlr, hostnqn),
                offset_of!(spdk_nvmf_ctrlr, subsys)
            ),
            (2, 232)
        );
        assert_eq!(
            offset_of!(spdk_nvmf_ctrlr, admin_qpair),
            at.ctrlr_admin_qpair
        );
        assert_eq!(offset_of!(spdk_nvmf_subsystem, subnqn), at.subsystem_subnqn);
        assert_eq!(offset_of!(spdk_nvmf_subsystem, ns), at.subsystem_ns);
        assert_eq!(offset_of!(spdk_nvmf_subsystem, link), at.subsystem_link);
        assert_eq!(
            offset_of!(spdk_bdev, internal) + offset_of!(spdk_bdev_internal, link),
            at.bdev_link
        );
        assert_eq!(offset_of!(spdk_bdev_mgr, bdevs), at.bdev_mgr_bdevs);
        assert_eq!(
            (
                offset_of!(spdk_thread, tailq),
                offset_of!(spdk_thread, name)
            ),
            (at.thread_tailq, at.thread_name)
        );
        assert_eq!(
            (offset_of!(spdk_poller, name), size_of::<spdk_poller>()),
            (136, at.poller_size)
        );
        assert_eq!(size_of::<spdk_reactor>(), at.reactor_size);
        assert_eq!(offset_of!(nvme_ctrlr, tailq), at.nvme_ctrlr_tailq);
        assert_eq!(offset_of!(spdk_nvme_ctrlr, trid), at.nvme_trid);
        assert_eq!(
            (size_of::<spdk_nvmf_qpair>(), size_of::<spdk_nvmf_ctrlr>()),
            (at.qpair_size, at.ctrlr_size)
        );
    }
}
