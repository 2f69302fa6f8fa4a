//! The tracepoints of the target: real names, ids and arguments of each era.
//!
//! Ids and arguments come from `include/spdk_internal/trace_defs.h`, `lib/nvmf/tcp.c`,
//! `lib/nvmf/rdma.c` and `lib/bdev/bdev.c` at the first tag of each era (`lib/nvmf/tcp.c` alone for
//! v21.07). Two liberties are taken, so that every era has something of every kind: `BDEV_IO_START`
//! keeps its `name` after v24.05 dropped it and has all of its arguments before v22.05 added them,
//! and era A's TCP tracepoints carry the `qpair` that v21.10 gave them.

use crate::builder::TraceBuilder;
use crate::era::Era;
use crate::tpoint::Tpoint;

/// `OWNER_BDEV`: the owner type of bdevs.
pub const OWNER_BDEV: u8 = 0x2;
/// `OWNER_NVMF_TCP`: the owner type of TCP connections.
pub const OWNER_TCP: u8 = 0x30;
/// `OBJECT_BDEV_IO`.
const OBJECT_BDEV_IO: u8 = 0x2;
/// `OBJECT_NVMF_RDMA_IO`.
const OBJECT_RDMA_IO: u8 = 0x40;
/// `OBJECT_NVMF_TCP_IO`.
const OBJECT_TCP_IO: u8 = 0x80;

/// `SPDK_TPOINT_ID(TRACE_GROUP_BDEV, 0)`.
pub(super) const BDEV_IO_START: u16 = 192;
/// `SPDK_TPOINT_ID(TRACE_GROUP_BDEV, 1)`.
pub(super) const BDEV_IO_DONE: u16 = 193;
/// `SPDK_TPOINT_ID(TRACE_GROUP_NVMF_RDMA, 0)`.
const RDMA: u16 = 256;
/// `SPDK_TPOINT_ID(TRACE_GROUP_NVMF_TCP, 0)`.
const TCP: u16 = 320;

/// Direction of the requests that pass a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Both,
    Read,
    Write,
}

/// Kind of record of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes arrived on the socket: no object yet.
    Socket,
    /// The request's state, with its `qpair` if the era has it.
    State,
    /// The request's state, also with the queue depth if the era has it.
    Depth,
    /// The bdev layer takes the request.
    Submit,
    /// The bdev layer completes the request.
    Complete,
}

/// One row of a transport's table.
struct Row {
    name: &'static str,
    /// Index in its group: up to v22.05, from v22.09 to v24.05, from v24.09 on.
    index: [Option<u8>; 3],
    way: Direction,
    kind: Kind,
    /// Mean time since the stage before, in ticks.
    wait: u64,
}

/// One stage of a request in one era.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// Id of its tracepoint.
    pub tpoint: u16,
    /// Kind of its record.
    pub kind: Kind,
    /// Mean time since the stage before, in ticks.
    pub wait: u64,
}

const fn row(
    name: &'static str,
    index: [Option<u8>; 3],
    way: Direction,
    kind: Kind,
    wait: u64,
) -> Row {
    Row {
        name,
        index,
        way,
        kind,
        wait,
    }
}

const fn same(index: u8) -> [Option<u8>; 3] {
    [Some(index); 3]
}

const fn each(index: [u8; 3]) -> [Option<u8>; 3] {
    [Some(index[0]), Some(index[1]), Some(index[2])]
}

/// Rows of the bdev layer's own two tracepoints.
const SUBMIT: Row = row("", same(0), Direction::Both, Kind::Submit, 200);
const COMPLETE: Row = row("", same(1), Direction::Both, Kind::Complete, 40_000);

#[rustfmt::skip]
const TCP_ROWS: [Row; 14] = [
    row("TCP_READ_DONE",           each([0xb, 0xf, 0xf]),       Direction::Both,  Kind::Socket, 0),
    row("TCP_REQ_NEW",             same(0),                     Direction::Both,  Kind::Depth,  150),
    row("TCP_REQ_NEED_BUFFER",     same(1),                     Direction::Both,  Kind::State,  400),
    row("TCP_REQ_HAVE_BUFFER",     [None, None, Some(2)],       Direction::Both,  Kind::State,  300),
    row("TCP_REQ_AWAIT_R2T_ACK",   each([0xc, 0x10, 0x10]),     Direction::Write, Kind::State,  600),
    row("TCP_REQ_TX_H_TO_C",       each([2, 4, 5]),             Direction::Write, Kind::State,  15_000),
    row("TCP_REQ_RDY_TO_EXECUTE",  each([3, 5, 6]),             Direction::Both,  Kind::State,  500),
    SUBMIT,
    row("TCP_REQ_EXECUTING",       each([4, 6, 7]),             Direction::Both,  Kind::State,  300),
    COMPLETE,
    row("TCP_REQ_EXECUTED",        each([5, 8, 9]),             Direction::Both,  Kind::State,  800),
    row("TCP_REQ_RDY_TO_COMPLETE", each([6, 9, 0xa]),           Direction::Both,  Kind::State,  120),
    row("TCP_REQ_TRANSFER_C2H",    each([7, 0xa, 0xb]),         Direction::Both,  Kind::State,  700),
    row("TCP_REQ_COMPLETED",       each([8, 0xc, 0xd]),         Direction::Both,  Kind::Depth,  20_000),
];

#[rustfmt::skip]
const RDMA_ROWS: [Row; 14] = [
    row("RDMA_REQ_NEW",            same(0),    Direction::Both,  Kind::Depth, 0),
    row("RDMA_REQ_NEED_BUFFER",    same(1),    Direction::Both,  Kind::State, 250),
    row("RDMA_REQ_TX_PENDING_H2C", same(2),    Direction::Write, Kind::State, 300),
    row("RDMA_REQ_TX_H2C",         same(3),    Direction::Write, Kind::State, 200),
    row("RDMA_REQ_RDY_TO_EXECUTE", same(4),    Direction::Both,  Kind::State, 4_000),
    SUBMIT,
    row("RDMA_REQ_EXECUTING",      same(5),    Direction::Both,  Kind::State, 250),
    COMPLETE,
    row("RDMA_REQ_EXECUTED",       same(6),    Direction::Both,  Kind::State, 500),
    row("RDMA_REQ_TX_PENDING_C2H", same(7),    Direction::Read,  Kind::State, 200),
    row("RDMA_REQ_RDY_TO_COMPL",   same(8),    Direction::Both,  Kind::State, 200),
    row("RDMA_REQ_COMPLETING_C2H", same(9),    Direction::Read,  Kind::State, 300),
    row("RDMA_REQ_COMPLETING",     same(0xa),  Direction::Write, Kind::State, 300),
    row("RDMA_REQ_COMPLETED",      same(0xb),  Direction::Both,  Kind::Depth, 6_000),
];

/// The connection's own tracepoints: they have no object type, and in the old eras their object is
/// the qpair.
const QP_ROWS: [(Transport, &str, [u8; 3]); 4] = [
    (Transport::Tcp, "TCP_QP_CREATE", [0xd, 0x11, 0x11]),
    (Transport::Tcp, "TCP_QP_DESTROY", [0x11, 0x15, 0x15]),
    (Transport::Rdma, "RDMA_QP_CREATE", [0xc; 3]),
    (Transport::Rdma, "RDMA_QP_DESTROY", [0x11; 3]),
];

/// Transport of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// NVMe/TCP.
    Tcp,
    /// NVMe/RDMA.
    Rdma,
}

impl Transport {
    const ALL: [Transport; 2] = [Transport::Tcp, Transport::Rdma];

    fn rows(self) -> &'static [Row] {
        match self {
            Transport::Tcp => &TCP_ROWS,
            Transport::Rdma => &RDMA_ROWS,
        }
    }

    /// Returns the first id of the transport's group, and the type of its requests.
    const fn group(self) -> (u16, u8) {
        match self {
            Transport::Tcp => (TCP, OBJECT_TCP_IO),
            Transport::Rdma => (RDMA, OBJECT_RDMA_IO),
        }
    }
}

/// The stages and tracepoints of one era.
#[derive(Debug, Clone)]
pub struct Stages {
    era: Era,
    /// Stages by transport and direction: TCP read, TCP write, RDMA read, RDMA write.
    ways: [Vec<Stage>; 4],
}

impl Stages {
    /// Returns the stages of this era.
    #[must_use]
    pub fn new(era: Era) -> Self {
        let ways = [
            stages(era, Transport::Tcp, Direction::Read),
            stages(era, Transport::Tcp, Direction::Write),
            stages(era, Transport::Rdma, Direction::Read),
            stages(era, Transport::Rdma, Direction::Write),
        ];
        Self { era, ways }
    }

    /// Returns the stages of a request.
    pub fn for_request(&self, transport: Transport, write: bool) -> &[Stage] {
        &self.ways[2 * transport as usize + usize::from(write)]
    }

    /// Returns the ids of the tracepoints for creating and destroying a connection.
    pub fn connection(&self, transport: Transport) -> [u16; 2] {
        let first = 2 * transport as usize;
        [0, 1].map(|at| transport.group().0 + u16::from(QP_ROWS[first + at].2[column(self.era)]))
    }

    /// Returns whether the file has owners, which the TCP tracepoints then use instead of the
    /// `qpair`.
    pub fn has_owners(&self) -> bool {
        self.era.spec().owners.is_some()
    }

    /// Returns whether a transport's request records carry the `qpair`.
    pub fn has_qpair(&self, transport: Transport) -> bool {
        transport == Transport::Rdma || !self.has_owners()
    }

    /// Declares every tracepoint, owner type and object type.
    pub fn declare(&self, trace: &mut TraceBuilder) {
        trace
            .owner_type(OWNER_BDEV, b'b')
            .owner_type(OWNER_TCP, b't');
        trace.object_type(OBJECT_BDEV_IO, b'i');
        trace
            .object_type(OBJECT_TCP_IO, b'r')
            .object_type(OBJECT_RDMA_IO, b'r');
        for transport in Transport::ALL {
            for row in transport.rows().iter().filter(|row| !row.name.is_empty()) {
                if let Some(index) = row.index[column(self.era)] {
                    trace.tpoint(self.request_tpoint(transport, row, index));
                }
            }
        }
        for (transport, name, index) in QP_ROWS {
            let id = transport.group().0 + u16::from(index[column(self.era)]);
            trace.tpoint(Tpoint::new(id, name).owner_type(owner_type(transport)));
        }
        trace.tpoint(self.relate(self.submit_tpoint(), 1));
        trace.tpoint(self.relate(self.complete_tpoint(), 0));
    }

    fn request_tpoint(&self, transport: Transport, row: &Row, index: u8) -> Tpoint {
        let (group, object_type) = transport.group();
        let mut tpoint =
            Tpoint::new(group + u16::from(index), row.name).owner_type(owner_type(transport));
        if row.kind != Kind::Socket {
            tpoint = tpoint.object_type(object_type);
        }
        if row.name.ends_with("_NEW") {
            tpoint = tpoint.new_object();
        }
        if self.has_qpair(transport) {
            tpoint = tpoint.ptr("qpair");
        }
        if row.kind == Kind::Depth && self.has_owners() {
            tpoint = tpoint.int("qd", if transport == Transport::Tcp { 8 } else { 4 });
        }
        tpoint
    }

    fn submit_tpoint(&self) -> Tpoint {
        let tpoint = Tpoint::new(BDEV_IO_START, "BDEV_IO_START").owner_type(OWNER_BDEV);
        let tpoint = tpoint.object_type(OBJECT_BDEV_IO).new_object();
        let tpoint = tpoint.int("type", 8).ptr("ctx").int("offset", 8);
        let tpoint = if self.has_owners() {
            tpoint.int("qd", 4)
        } else {
            tpoint.int("len", 8)
        };
        tpoint.str("name", 40)
    }

    fn complete_tpoint(&self) -> Tpoint {
        let tpoint = Tpoint::new(BDEV_IO_DONE, "BDEV_IO_DONE").owner_type(OWNER_BDEV);
        let tpoint = tpoint.object_type(OBJECT_BDEV_IO).ptr("ctx");
        if self.has_owners() {
            tpoint.int("qd", 4)
        } else {
            tpoint
        }
    }

    /// Adds the relation of `ctx` to the request: for TCP since v21.10, for RDMA since v24.09.
    fn relate(&self, mut tpoint: Tpoint, ctx: u8) -> Tpoint {
        for (object_type, since) in [(OBJECT_TCP_IO, Era::B), (OBJECT_RDMA_IO, Era::E)] {
            if self.era >= since {
                tpoint = tpoint.relates(object_type, ctx);
            }
        }
        tpoint
    }

    /// Returns the total number of slots of a read and a write over TCP.
    pub fn slots_of_two(&self) -> usize {
        let slots = |stage: &Stage| match stage.kind {
            Kind::Submit => self.submit_tpoint().slots(),
            Kind::Complete => self.complete_tpoint().slots(),
            Kind::Depth if self.has_qpair(Transport::Tcp) && self.has_owners() => 2,
            _ => 1,
        };
        self.ways[..2].iter().flatten().map(slots).sum()
    }
}

/// Returns the column of [`Row::index`].
fn column(era: Era) -> usize {
    usize::from(era >= Era::C) + usize::from(era >= Era::E)
}

const fn owner_type(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp => OWNER_TCP,
        Transport::Rdma => 0,
    }
}

fn stages(era: Era, transport: Transport, way: Direction) -> Vec<Stage> {
    let rows = transport
        .rows()
        .iter()
        .filter(|row| row.way == Direction::Both || row.way == way);
    let group = transport.group().0;
    rows.filter_map(|row| {
        let tpoint = match row.kind {
            Kind::Submit => BDEV_IO_START,
            Kind::Complete => BDEV_IO_DONE,
            _ => group + u16::from(row.index[column(era)]?),
        };
        Some(Stage {
            tpoint,
            kind: row.kind,
            wait: row.wait,
        })
    })
    .collect()
}
