//! Requests of any server, seen at its sockets: no symbols, no probes, no change of the server.
//!
//! A request begins when data arrives on a connection after the last reply, and ends with the last
//! send before the next data arrives. Programs on the tracepoints of the kernel's socket layer show
//! both; [`SocketRequests`] writes them to a trace in memory, in the format of SPDK's traces, so
//! that all commands read, follow and capture them as they do those.
//!
//! Connections that the process opened to other servers are left out: what it receives there is no
//! request. A connection is a server's if something listens on its port, or if it is a Unix socket
//! with an address.
//!
//! | module | holds |
//! |---|---|
//! | `layout` | layout of the ring and of the maps |
//! | `facts` | members of the kernel's structures |
//! | `programs` | the programs |
//! | `operation` | kind of a request by its first bytes |
//! | `connections` | from events to records |
//! | `listening` | ports of a server |
//! | `trace` | the trace in memory |
//! | `recorder` | the thread that writes it |
#![forbid(unsafe_code)]

mod connections;
mod error;
mod facts;
mod layout;
mod listening;
mod operation;
mod programs;
mod recorder;
mod trace;

pub use connections::Totals;
pub use error::SocketError;
pub use recorder::SocketRequests;
