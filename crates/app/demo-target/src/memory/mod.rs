//! SPDK's objects as C structs in this process's memory, linked as in a target of some version, for what finds them there.
//!
//! Nothing here reads them. The order of stores is SPDK's: an object is complete before it is linked, and unlinked before its
//! memory is used again. Ended connections and controllers keep their bytes until then, as freed memory does.

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

/// A target, from its list of targets down to namespaces and pollers. Connections come and go.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) layout: &'static Layout,
    /// RDMA and TCP.
    transports: Vec<Arc<Block>>,
    subsystems: Vec<Subsystem>,
    /// One for each reactor.
    groups: Vec<Group>,
    /// What is alive from the beginning to the end.
    pub(crate) fixed: Vec<ObjectTruth>,
    /// The rest of what is linked; it is kept, not used.
    _kept: Vec<Arc<Block>>,
    _lists: Vec<List>,
}

/// A subsystem and its controllers, which both reactors change.
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

/// A poll group and its connections, which only its reactor changes.
#[derive(Debug)]
struct Group {
    block: Arc<Block>,
    thread: u64,
    qpairs: Mutex<List>,
}

impl World {
    /// Everything but the connections.
    pub(crate) fn new(layout: &'static Layout, names: &Names) -> Self {
        setup::Setup::new(layout).world(names, REACTORS as usize)
    }

    /// The addresses of the transports.
    pub(crate) fn transports(&self) -> [u64; 2] {
        [0, 1].map(|at| self.transports[at].address())
    }

    /// The address of a reactor's poll group.
    pub(crate) fn group(&self, lcore: u32) -> u64 {
        self.groups[lcore as usize].block.address()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
