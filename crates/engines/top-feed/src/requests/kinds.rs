//! Kinds of records, by their tracepoints.

use requests::is_host_request;
use spdk_trace::{ArgValue, Record, Tpoint};

/// Types of I/O that read or write (`enum spdk_bdev_io_type`, include/spdk/bdev.h).
const TRANSFERS: [u64; 2] = [1, 2];

/// Kind of a tracepoint's records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// True if its object is a request of a host, rather than something that works for one.
    pub(super) is_request: bool,
    /// True if it begins an I/O of a block device: its size is in blocks.
    pub(super) has_blocks: bool,
    /// Place of the argument that points to a connection.
    pub(super) pointer: Option<usize>,
    /// Place of the argument with the connection's queue depth.
    pub(super) depth: Option<usize>,
}

/// Returns the kind of a tracepoint's records; `None` if they have no object. Without a target of
/// NVMe over Fabrics in it, all objects of a trace are requests.
pub(super) fn kind(tpoint: &Tpoint, has_requests: bool) -> Option<Kind> {
    tpoint.object_prefix?;
    let name = tpoint.name.as_str();
    let is_request = !has_requests || is_host_request(name);
    let depth = tpoint.args.iter().position(|spec| spec.name == "qd");
    Some(Kind {
        is_request,
        has_blocks: name == "BDEV_IO_START",
        pointer: None,
        depth,
    })
}

/// Returns true if an I/O reads or writes, or its type is not recorded.
pub(super) fn is_transfer(record: &Record<'_>) -> bool {
    match record.args.by_name("type") {
        Some(ArgValue::Int(kind)) => TRANSFERS.contains(&kind),
        _ => true,
    }
}
