//! SPDK's objects as C structs in this process's memory, linked as in a target of some version, to
//! be found by other programs.
//!
//! Nothing here reads them. The order of stores is SPDK's: an object is complete before it is
//! linked, and unlinked before its memory is reused. Ended connections and controllers keep their
//! bytes until then, as freed memory does.

mod block;
mod connections;
mod layouts;
mod roots;
mod setup;
mod types;

use std::sync::{Arc, Mutex, PoisonError};

use crate::names::Names;
use crate::reactor::REACTORS;
use crate::truth::ObjectTruth;
pub(crate) use block::Block;
use block::List;
pub(crate) use connections::{Association, NewQpair};
pub(crate) use layouts::{LAYOUTS, Layout, layout};

/// Target, from its list of targets down to namespaces and pollers. Connections come and go.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) layout: &'static Layout,
    /// Transports: RDMA and TCP.
    transports: Vec<Arc<Block>>,
    subsystems: Vec<Subsystem>,
    /// Poll groups, one for each reactor.
    groups: Vec<Group>,
    /// Active pollers of the SPDK threads: the application's, then one for each reactor.
    pollers: Vec<Arc<Block>>,
    /// Objects that live from the beginning to the end.
    pub(crate) fixed: Vec<ObjectTruth>,
    /// Other linked blocks, kept allocated but not used.
    _kept: Vec<Arc<Block>>,
    _lists: Vec<List>,
}

/// Subsystem with its controllers, which both reactors change.
#[derive(Debug)]
struct Subsystem {
    block: Arc<Block>,
    controllers: Mutex<Controllers>,
}

#[derive(Debug)]
struct Controllers {
    list: List,
    next_cntlid: u16,
}

/// Poll group with its connections, which only its reactor changes.
#[derive(Debug)]
struct Group {
    block: Arc<Block>,
    thread: u64,
    qpairs: Mutex<List>,
}

impl World {
    /// Creates everything but the connections.
    pub(crate) fn new(layout: &'static Layout, names: &Names) -> Self {
        setup::Setup::new(layout).world(names, REACTORS as usize)
    }

    /// Counts a run of a reactor's poller, and whether it found work: `run_count` and `busy_count`,
    /// which never moved.
    pub(crate) fn poller_ran(&self, lcore: u32, is_busy: bool) {
        if let Some(poller) = self.pollers.get(lcore as usize + 1) {
            poller.count64(64);
            if is_busy {
                poller.count64(72);
            }
        }
    }

    /// Returns the addresses of the transports.
    pub(crate) fn transports(&self) -> [u64; 2] {
        [0, 1].map(|at| self.transports[at].address())
    }

    /// Returns the address of a reactor's poll group.
    pub(crate) fn group(&self, lcore: u32) -> u64 {
        self.groups[lcore as usize].block.address()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
