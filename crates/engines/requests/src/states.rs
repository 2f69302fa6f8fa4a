//! States of SPDK's objects, by the names of its tracepoints: the record that ends an object, the
//! requests of hosts, and the stages that a thread's own work ends.
//!
//! Read in SPDK's master of August 2026 (`3230130e6a`), and of the same meaning in all eras that
//! have the names. `nvmf_tcp_req_process` (lib/nvmf/tcp.c) and `nvmf_rdma_request_process`
//! (lib/nvmf/rdma.c) are loops over a request's states, which write a record at the start of each
//! state. A state that sets the next one itself is left in the same call: the stage between them is
//! the thread's own work. "Some external code must kick a request" out of the others: the
//! completion of a block device, data from a socket or a queue pair. A poller finds all of these.
//!
//! One exception is not visible in a trace: a fused command (compare and write) waits in
//! `RDY_TO_EXECUTE` for its other half.

use spdk_trace::{Tpoint, TpointSet};

use crate::sockets;

/// End of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The thread's own work ends it.
    OwnWork,
    /// The thread finds at a poll that something is done.
    Found,
    /// Either way: the state is left at once, or after waiting; or the tracepoints are unknown.
    Either,
}

/// Stages that the state machine of a transport leaves in the call in which it entered them: the
/// prefix of the names, and the two states.
const OWN_WORK: [(&str, &[(&str, &str)]); 3] = [
    ("TCP_REQ_", &TCP_OWN_WORK),
    ("RDMA_REQ_", &RDMA_OWN_WORK),
    ("", &SOCKET_OWN_WORK),
];

/// Own-work stages of requests at sockets: the thread receives, works, and sends. While data is
/// queued, the thread that will receive it may work for others, which is its own work, too.
const SOCKET_OWN_WORK: [(&str, &str); 4] = [
    (sockets::QUEUED, sockets::RECEIVED),
    (sockets::RECEIVED, sockets::REPLIED),
    (sockets::NEW, sockets::REPLIED),
    (sockets::REPLIED, sockets::REPLIED),
];

/// Own-work stages of TCP (`nvmf_tcp_req_process`, lib/nvmf/tcp.c). `nvmf_tcp_send_r2t_pdu` sets
/// the state for the R2T, and `request_transfer_out` the one for the transfer to the host.
const TCP_OWN_WORK: [(&str, &str); 14] = [
    ("NEW", "NEED_BUFFER"),
    ("NEW", "RDY_TO_EXECUTE"),
    ("NEW", "RDY_TO_COMPLETE"),
    ("HAVE_BUFFER", "WAIT_ZCPY_START"),
    ("HAVE_BUFFER", "AWAIT_R2T_ACK"),
    ("HAVE_BUFFER", "TX_H_TO_C"),
    ("HAVE_BUFFER", "RDY_TO_EXECUTE"),
    ("ZCPY_START_CPL", "RDY_TO_COMPLETE"),
    ("ZCPY_START_CPL", "EXECUTED"),
    ("ZCPY_START_CPL", "AWAIT_R2T_ACK"),
    ("RDY_TO_EXECUTE", "EXECUTING"),
    ("RDY_TO_EXECUTE", "WAIT_ZCPY_CMT"),
    ("EXECUTED", "RDY_TO_COMPLETE"),
    ("RDY_TO_COMPLETE", "TRANSFER_C2H"),
];

/// Own-work stages of RDMA (`nvmf_rdma_request_process`, lib/nvmf/rdma.c). Before v24.09 `EXECUTED`
/// led to `RDY_TO_COMPL` without `RDY2COMPL_PEND`.
const RDMA_OWN_WORK: [(&str, &str); 11] = [
    ("NEW", "NEED_BUFFER"),
    ("NEW", "NEED_DATA_WR"),
    ("NEW", "RDY_TO_EXECUTE"),
    ("HAVE_BUFFER", "TX_PENDING_H2C"),
    ("HAVE_BUFFER", "RDY_TO_EXECUTE"),
    ("RDY_TO_EXECUTE", "EXECUTING"),
    ("EXECUTED", "TX_PENDING_C2H"),
    ("EXECUTED", "RDY2COMPL_PEND"),
    ("EXECUTED", "RDY_TO_COMPL"),
    ("RDY_TO_COMPL", "COMPLETING_C2H"),
    ("RDY_TO_COMPL", "COMPLETING"),
];

/// Stages that external code ends, found by a poller of the thread, with full names.
const POLLED_STAGES: [(&str, &str); 19] = [
    // The zero-copy buffer of the block device (`nvmf_tcp_req_complete`).
    ("TCP_REQ_WAIT_ZCPY_START", "TCP_REQ_ZCPY_START_CPL"),
    ("TCP_REQ_WAIT_ZCPY_CMT", "TCP_REQ_EXECUTED"),
    ("TCP_REQ_AWAIT_ZCPY_RLS", "TCP_REQ_COMPLETED"),
    // Data of the host (`nvmf_tcp_h2c_data_hdr_handle`, `nvmf_tcp_pdu_payload_handle`).
    ("TCP_REQ_AWAIT_R2T_ACK", "TCP_REQ_TX_H_TO_C"),
    ("TCP_REQ_TX_H_TO_C", "TCP_REQ_RDY_TO_EXECUTE"),
    // The block device (`nvmf_tcp_req_complete`, `nvmf_rdma_request_complete`).
    ("TCP_REQ_EXECUTING", "TCP_REQ_EXECUTED"),
    ("RDMA_REQ_EXECUTING", "RDMA_REQ_EXECUTED"),
    // The socket has taken the response (`nvmf_tcp_request_free`, from the callback of the PDU).
    ("TCP_REQ_TRANSFER_C2H", "TCP_REQ_COMPLETED"),
    ("TCP_REQ_TRANSFER_C2H", "TCP_REQ_AWAIT_ZCPY_RLS"),
    // Completions of the queue pair (`nvmf_rdma_poller_poll`).
    ("RDMA_REQ_TX_H2C", "RDMA_REQ_RDY_TO_EXECUTE"),
    ("RDMA_REQ_COMPLETING_C2H", "RDMA_REQ_COMPLETED"),
    ("RDMA_REQ_COMPLETING", "RDMA_REQ_COMPLETED"),
    // lib/bdev/bdev.c, module/bdev/nvme/bdev_nvme.c, module/bdev/raid/bdev_raid.c: a callback of
    // the device's poller. An I/O that completes at once is found at once.
    ("BDEV_IO_START", "BDEV_IO_DONE"),
    ("BDEV_NVME_IO_START", "BDEV_NVME_IO_DONE"),
    ("BDEV_RAID_IO_START", "BDEV_RAID_IO_DONE"),
    // lib/nvme: the completion queue, the socket.
    ("NVME_PCIE_SUBMIT", "NVME_PCIE_COMPLETE"),
    ("NVME_TCP_SUBMIT", "NVME_TCP_COMPLETE"),
    // module/accel/dsa, module/accel/iaa: the completion record of the accelerator.
    ("DSA_OP_SUBMIT", "DSA_OP_COMPLETE"),
    ("IAA_OP_SUBMIT", "IAA_OP_COMPLETE"),
];

/// Tracepoints after which an object is done and its address is free, with all eras' names:
/// `nvmf_tcp_request_free`, `nvmf_rdma_request_free`, `bdev_io_complete`, `iscsi_task_cpl`,
/// `bs_request_set_complete`, `spdk_sock_request_complete`, ... For Fibre Channel, a response is
/// the last record with the request's address (`nvmf_fc_request_set_state`).
const LAST_TRACEPOINTS: [&str; 17] = [
    "TCP_REQ_COMPLETED",
    "RDMA_REQ_COMPLETED",
    "FC_READ_RSP",
    "FC_WRITE_RSP",
    "FC_NONE_RSP",
    "BDEV_IO_DONE",
    "BDEV_NVME_IO_DONE",
    "BDEV_RAID_IO_DONE",
    "NVME_PCIE_COMPLETE",
    "NVME_TCP_COMPLETE",
    "DSA_OP_COMPLETE",
    "IAA_OP_COMPLETE",
    "ISCSI_PDU_COMPLETED",
    "ISCSI_TASK_DONE",
    "ISCSI_WRITE_DONE",
    "SOCK_REQ_COMPLETE",
    "BLOB_REQ_SET_COMPLETE",
];

/// Prefixes of the tracepoints of a host's requests, by transport.
const HOST_REQUESTS: [&str; 3] = ["TCP_REQ_", "RDMA_REQ_", "FC_"];

/// Tracepoints after which an object may be done, or may have further records: a PDU that is no
/// SCSI command is freed after execution (`iscsi_read_pdu`), the task of another transport than
/// iSCSI has no record of its own (`scsi_lun_complete_task`), and a Fibre Channel adapter can
/// respond by itself after the last data of a read. Whether a send was the last one of a reply shows
/// only with the next request.
const PERHAPS_LAST: [&str; 4] = [
    "ISCSI_TASK_EXECUTED",
    "SCSI_TASK_DONE",
    "FC_READ_XFER_DATA",
    sockets::REPLIED,
];

impl Ending {
    /// Returns the end of the stage between two tracepoints.
    pub fn between(from: &str, to: &str) -> Self {
        let is_own = |(prefix, stages): &(&str, &[(&str, &str)])| {
            let pair = from.strip_prefix(prefix).zip(to.strip_prefix(prefix));
            pair.is_some_and(|pair| stages.contains(&pair))
        };
        if OWN_WORK.iter().any(is_own) {
            Self::OwnWork
        } else if POLLED_STAGES.contains(&(from, to)) {
            Self::Found
        } else {
            Self::Either
        }
    }
}

/// Returns whether a tracepoint of this name belongs to the requests of a host of NVMe over
/// Fabrics.
pub fn is_host_request(name: &str) -> bool {
    HOST_REQUESTS
        .iter()
        .any(|transport| name.starts_with(transport))
}

/// Progress of a request of an NVMe-oF target, as far as it shows whether it was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Any other state.
    #[default]
    Other,
    /// Handed to the block device, if it has to work on it at all.
    Executing,
    /// Completed without having been executed. That happens if the queue pair goes away meanwhile
    /// (`nvmf_tcp_drain_state_queue`, lib/nvmf/tcp.c), most of all to a request for asynchronous
    /// events.
    Unanswered,
}

/// State of a request that a tracepoint stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Executing,
    Executed,
    Completed,
}

/// Roles of a trace's tracepoints in the lives of its objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    last: TpointSet,
    perhaps_last: TpointSet,
    /// States by tracepoint id.
    marks: Vec<Option<Mark>>,
    /// True once a request was executed: a trace that does not record executions does not show
    /// which requests had no answer.
    has_answers: bool,
}

impl Roles {
    /// Finds the roles by the names of these tracepoints.
    pub(crate) fn new(tpoints: &[Tpoint]) -> Self {
        let named = |names: &[&str]| {
            tpoints
                .iter()
                .filter(|tpoint| names.contains(&tpoint.name.as_str()))
                .collect()
        };
        let mut marks = Vec::new();
        for tpoint in tpoints {
            let is = |end: &str| tpoint.name.ends_with(end);
            let mark = if is("_REQ_EXECUTING") {
                Mark::Executing
            } else if is("_REQ_EXECUTED") {
                Mark::Executed
            } else if is("_REQ_COMPLETED") {
                Mark::Completed
            } else {
                continue;
            };
            let id = usize::from(tpoint.id);
            marks.resize(marks.len().max(id + 1), None);
            marks[id] = Some(mark);
        }
        Self {
            last: named(&LAST_TRACEPOINTS),
            perhaps_last: named(&PERHAPS_LAST),
            marks,
            has_answers: false,
        }
    }

    /// Returns whether a record of this tracepoint ends its object.
    pub(crate) fn is_last(&self, tpoint: u16) -> bool {
        self.last.contains(tpoint)
    }

    /// Returns whether a record of this tracepoint may end its object.
    pub(crate) fn is_perhaps_last(&self, tpoint: u16) -> bool {
        self.last.contains(tpoint) || self.perhaps_last.contains(tpoint)
    }

    /// Advances a request to the state of this tracepoint.
    pub(crate) fn advance(&mut self, progress: &mut Progress, tpoint: u16) {
        match self.marks.get(usize::from(tpoint)).copied().flatten() {
            None => {}
            Some(Mark::Executing) => *progress = Progress::Executing,
            Some(Mark::Executed) => {
                *progress = Progress::Other;
                self.has_answers = true;
            }
            Some(Mark::Completed) => {
                let is_unanswered = *progress == Progress::Executing && self.has_answers;
                *progress = if is_unanswered {
                    Progress::Unanswered
                } else {
                    Progress::Other
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_are_left_at_once_are_own_work() {
        for (from, to, ending) in [
            (
                "TCP_REQ_EXECUTED",
                "TCP_REQ_RDY_TO_COMPLETE",
                Ending::OwnWork,
            ),
            ("TCP_REQ_EXECUTING", "TCP_REQ_EXECUTED", Ending::Found),
            (
                "RDMA_REQ_EXECUTED",
                "RDMA_REQ_TX_PENDING_C2H",
                Ending::OwnWork,
            ),
            // It may wait for a buffer, or in line.
            ("TCP_REQ_NEED_BUFFER", "TCP_REQ_HAVE_BUFFER", Ending::Either),
            (
                "RDMA_REQ_TX_PENDING_C2H",
                "RDMA_REQ_RDY_TO_COMPL",
                Ending::Either,
            ),
            // A queue pair that goes away ends any state.
            ("TCP_REQ_EXECUTING", "TCP_REQ_COMPLETED", Ending::Either),
            // Names of different transports make no stage.
            ("TCP_REQ_NEW", "RDMA_REQ_NEED_BUFFER", Ending::Either),
            ("SOME_START", "SOME_END", Ending::Either),
        ] {
            assert_eq!(Ending::between(from, to), ending, "{from} -> {to}");
        }
    }
}
