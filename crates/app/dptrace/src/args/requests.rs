//! Options that choose where requests come from, the same for all commands.

use capture_recorder::RequestSource;
use clap::{Args, ValueEnum};

/// Source of requests, as typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct RequestArgs {
    /// Take requests from this source instead of the process's SPDK trace
    ///
    /// sockets: requests of any server that gets them at TCP or Unix sockets. A request begins when
    /// data arrives on a connection after the last reply, and ends with the last send before the
    /// next data arrives. The processes that the server starts belong to it.
    #[arg(long = "requests", value_name = "SOURCE")]
    source: Option<TypedSource>,
}

/// Source of requests besides an SPDK trace.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedSource {
    Sockets,
}

impl RequestArgs {
    /// Returns the source.
    pub(crate) fn source(&self) -> RequestSource {
        match self.source {
            Some(TypedSource::Sockets) => RequestSource::Sockets,
            None => RequestSource::Trace,
        }
    }
}
