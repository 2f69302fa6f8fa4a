//! The truth of the server: its waits.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

use super::word;

/// Cause of a wait, or of CPU time, that a request had asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cause {
    /// nanosleep(2).
    Sleep,
    /// CPU time of the thread itself.
    Spin,
    /// A mutex that another thread of the server held.
    Lock,
    /// Read of a file.
    Read,
    /// nanosleep(2) between two sends of one reply.
    Gap,
}

/// A wait of the server for a request. Its text is the line that the server prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Connection of the request: the peer's port, or the number of the connection on a Unix
    /// socket, from 1.
    pub connection: u32,
    /// Number of the request on its connection, from 1.
    pub request: u32,
    /// Process that waited.
    pub pid: u32,
    /// Thread that waited.
    pub tid: u32,
    /// Cause of the wait.
    pub cause: Cause,
    /// Begin, in nanoseconds of `CLOCK_BOOTTIME`.
    pub begin: u64,
    /// End, in nanoseconds of `CLOCK_BOOTTIME`.
    pub end: u64,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connection,
            request,
            pid,
            tid,
            cause,
            begin,
            end,
        } = self;
        let cause = word(cause);
        write!(
            f,
            "wait {connection} {request} {pid} {tid} {cause} {begin} {end}"
        )
    }
}

impl FromStr for Wait {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        const NUMBER: &str = "a wait needs six numbers";
        let words: Vec<_> = line.split(' ').collect();
        let ["wait", connection, request, pid, tid, cause, begin, end] = words[..] else {
            return Err("no line of a wait");
        };
        Ok(Self {
            connection: connection.parse().map_err(|_| NUMBER)?,
            request: request.parse().map_err(|_| NUMBER)?,
            pid: pid.parse().map_err(|_| NUMBER)?,
            tid: tid.parse().map_err(|_| NUMBER)?,
            cause: Cause::from_str(cause, false).map_err(|_| "unknown cause")?,
            begin: begin.parse().map_err(|_| NUMBER)?,
            end: end.parse().map_err(|_| NUMBER)?,
        })
    }
}
