//! Requests that are seen at a server's sockets: names of their records, in the traces that
//! `dptrace` itself writes of them.
//!
//! A request begins when data arrives on a connection after the last reply, and ends with the last
//! send before the next data arrives. Its records are, in this order: [`QUEUED`] and [`RECEIVED`],
//! or [`NEW`] if the arrival was not seen; then [`REPLIED`], for a long reply several times. The
//! owner of each is the connection.

use spdk_trace::{ArgValue, Record, Tpoint};

/// Data arrived on a connection, and waits to be received. Begins a request.
pub const QUEUED: &str = "SOCK_REQ_QUEUED";
/// The server received the data.
pub const RECEIVED: &str = "SOCK_REQ_RECEIVED";
/// The server received data that was not seen to arrive. Begins a request.
pub const NEW: &str = "SOCK_REQ_NEW";
/// The server sent data.
pub const REPLIED: &str = "SOCK_REQ_REPLIED";

/// Argument of all records: the number of the thread that received or sent, in the first PID
/// namespace. 0 for [`QUEUED`].
pub const THREAD: &str = "tid";
/// Argument of [`RECEIVED`] and [`NEW`]: the operation by the first bytes received; empty if it is
/// not known.
pub const OPERATION: &str = "op";

/// Field with the operation.
pub const OPERATION_FIELD: &str = "arg.op";

/// Letter of owners that are connections: see [`records::CONNECTION_LETTER`].
pub const CONNECTION_LETTER: u8 = records::CONNECTION_LETTER as u8;

/// Returns whether a trace with these tracepoints has requests of sockets. Then each record states
/// its thread.
pub fn are_in(tpoints: &[Tpoint]) -> bool {
    let is_of_connection =
        |tpoint: &Tpoint| tpoint.owner_prefix == Some(records::CONNECTION_LETTER);
    tpoints
        .iter()
        .any(|tpoint| is_of_connection(tpoint) && tpoint.name == REPLIED)
}

/// Returns the thread that wrote a record of a request of sockets. `None` for other records, and if
/// no thread did.
pub fn thread(record: &Record<'_>) -> Option<u32> {
    if record.tpoint.owner_prefix != Some(records::CONNECTION_LETTER) {
        return None;
    }
    let (spec, value) = record.args.iter().next()?;
    match value {
        ArgValue::Int(tid) if spec.name == THREAD => u32::try_from(tid).ok().filter(|tid| *tid > 0),
        _ => None,
    }
}
