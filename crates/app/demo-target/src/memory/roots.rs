//! The static variables of SPDK from which all else is found, under SPDK's names.
#![expect(
    unsafe_code,
    reason = "symbols without mangling, and stores to them: the names are ours alone in this program"
)]

use std::ptr::null_mut;

use super::types::{
    nvme_bdev_ctrlr, spdk_bdev_mgr, spdk_nvmf_tgt, spdk_reactor, spdk_thread, tailq_head,
};

const fn empty<T>() -> tailq_head<T> {
    tailq_head {
        tqh_first: null_mut(),
        tqh_last: null_mut(),
    }
}

/// List of targets (`lib/nvmf/nvmf.c`).
#[unsafe(no_mangle)]
static mut g_nvmf_tgts: tailq_head<spdk_nvmf_tgt> = empty();
/// List of threads (`lib/thread/thread.c`).
#[unsafe(no_mangle)]
static mut g_threads: tailq_head<spdk_thread> = empty();
/// List of NVMe bdev controllers (`module/bdev/nvme/bdev_nvme.c`).
#[unsafe(no_mangle)]
static mut g_nvme_bdev_ctrlrs: tailq_head<nvme_bdev_ctrlr> = empty();
/// Manager of bdevs (`lib/bdev/bdev.c`).
#[unsafe(no_mangle)]
static mut g_bdev_mgr: spdk_bdev_mgr = spdk_bdev_mgr::EMPTY;
/// Array of reactors (`lib/event/reactor.c`).
#[unsafe(no_mangle)]
static mut g_reactors: *mut spdk_reactor = null_mut();
/// Number of reactors (`lib/event/reactor.c`).
#[unsafe(no_mangle)]
static mut g_reactor_count: u32 = 0;

/// Name of one of these variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    NvmfTgts,
    Threads,
    NvmeBdevCtrlrs,
    BdevMgr,
    Reactors,
    ReactorCount,
}

impl Root {
    /// Returns its address, and its size in bytes.
    fn place(self) -> (*mut u64, usize) {
        fn sized<T>(root: *mut T) -> (*mut u64, usize) {
            (root.cast(), size_of::<T>())
        }
        match self {
            Self::NvmfTgts => sized(&raw mut g_nvmf_tgts),
            Self::Threads => sized(&raw mut g_threads),
            Self::NvmeBdevCtrlrs => sized(&raw mut g_nvme_bdev_ctrlrs),
            Self::BdevMgr => sized(&raw mut g_bdev_mgr),
            Self::Reactors => sized(&raw mut g_reactors),
            Self::ReactorCount => sized(&raw mut g_reactor_count),
        }
    }

    pub(super) fn address(self) -> u64 {
        self.place().0.expose_provenance() as u64
    }

    /// Writes a pointer or number of the variable. Only the thread that sets up the target calls
    /// this.
    pub(super) fn set(self, offset: usize, value: u64) {
        let (start, size) = self.place();
        if size == 4 {
            // SAFETY: a variable of four bytes, which nothing in this program reads or writes but
            // here, on one thread.
            unsafe { start.cast::<u32>().write_volatile(value as u32) };
        } else if offset.is_multiple_of(8) && offset + 8 <= size {
            // SAFETY: within the variable by the test above and aligned to its words; nothing in
            // this program reads it, and only the thread that sets up the target writes it.
            unsafe { start.add(offset / 8).write_volatile(value) };
        }
    }
}
