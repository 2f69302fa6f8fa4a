//! Contents of a request's records: one function for all stages, so that every writer fills them
//! alike.

use super::FIRST_OWNER;
use super::stages::{BDEV_IO_DONE, BDEV_IO_START, Kind, Stage, Stages, Transport};
use crate::record::{Arg, Record};

/// A request in progress, as its records show it.
#[derive(Debug, Clone)]
pub struct InFlight {
    /// Pointer of the request: the object of its records.
    pub pointer: u64,
    /// Transport of the request.
    pub transport: Transport,
    /// Pointer of its connection.
    pub qpair: u64,
    /// Owner id of its connection.
    pub owner: u16,
    /// Number of requests in flight on its connection.
    pub depth: u64,
    /// True for a write.
    pub write: bool,
    /// Index of its bdev in [`super::BDEVS`].
    pub bdev: usize,
    /// Pointer of its bdev I/O.
    pub bdev_io: u64,
    /// Number of I/Os in flight on the bdev.
    pub bdev_depth: u64,
    /// Offset on the bdev, in blocks.
    pub offset: u64,
    /// Number of blocks.
    pub blocks: u32,
}

impl Stages {
    /// Creates the record of a request in this stage.
    pub fn record(&self, stage: Stage, tsc: u64, request: &InFlight) -> Record {
        match stage.kind {
            Kind::Submit => self.submit_record(tsc, request),
            Kind::Complete => self.complete_record(tsc, request),
            Kind::Socket | Kind::State | Kind::Depth => self.state_record(stage, tsc, request),
        }
    }

    /// Creates the record of a connection being created (0) or destroyed (1).
    pub fn connection_record(
        &self,
        transport: Transport,
        which: usize,
        tsc: u64,
        qpair: u64,
        owner: u16,
    ) -> Record {
        let tcp = transport == Transport::Tcp;
        let object = if tcp && self.has_owners() { 0 } else { qpair };
        Record::new(self.connection(transport)[which], tsc)
            .owner(if tcp { owner } else { 0 })
            .object(object)
    }

    fn state_record(&self, stage: Stage, tsc: u64, request: &InFlight) -> Record {
        let mut record = Record::new(stage.tpoint, tsc);
        if request.transport == Transport::Tcp {
            record = record.owner(request.owner);
        }
        record = if stage.kind == Kind::Socket {
            record.size(72)
        } else {
            record.object(request.pointer)
        };
        if self.has_qpair(request.transport) {
            record = record.ptr(request.qpair);
        }
        if stage.kind == Kind::Depth && self.has_owners() {
            record = record.int(request.depth);
        }
        record
    }

    fn submit_record(&self, tsc: u64, request: &InFlight) -> Record {
        let size = if self.has_owners() { request.blocks } else { 0 };
        let last = if self.has_owners() {
            request.bdev_depth
        } else {
            u64::from(request.blocks)
        };
        let record = Record::new(BDEV_IO_START, tsc)
            .owner(self.bdev_owner(request.bdev))
            .size(size);
        record.object(request.bdev_io).args([
            Arg::Int(if request.write { 2 } else { 1 }),
            Arg::Ptr(request.pointer),
            Arg::Int(request.offset),
            Arg::Int(last),
            Arg::str(super::BDEVS[request.bdev]),
        ])
    }

    fn complete_record(&self, tsc: u64, request: &InFlight) -> Record {
        let record = Record::new(BDEV_IO_DONE, tsc).owner(self.bdev_owner(request.bdev));
        let record = record.object(request.bdev_io).ptr(request.pointer);
        if self.has_owners() {
            record.int(request.bdev_depth)
        } else {
            record
        }
    }

    /// Returns the owner id of a bdev, 0 in the eras without owners.
    fn bdev_owner(&self, bdev: usize) -> u16 {
        if self.has_owners() {
            (FIRST_OWNER + bdev) as u16
        } else {
            0
        }
    }
}
