//! A small server and its client, which together know the truth about each request: when the client
//! sent it and had the whole reply, and when which thread of the server waited for it, and why.
//!
//! A test starts the server in its own process with [`Server::start`]: the test program again, with
//! an ignored test that calls [`serve_if_started`]. `request-server` is the same server by hand. A
//! request is one line, and so is its reply ([`Request`]).

mod calls;
mod client;
mod listener;
mod process;
mod server;
mod service;
mod wait;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Parser, ValueEnum};

pub use client::{Answer, Client};
pub use process::{Server, serve_if_started};
pub use server::serve;
pub use wait::{Cause, Wait};

/// Options of the server.
#[derive(Clone, Debug, Parser)]
pub struct ServerOptions {
    /// Division of the work among threads and processes.
    #[arg(long, value_enum, default_value = "thread")]
    pub model: Model,
    /// Path of a Unix stream socket, which must not exist yet. Default: a free TCP port of loopback.
    #[arg(long)]
    pub unix: Option<PathBuf>,
    /// System call that receives.
    #[arg(long, value_enum, default_value = "read")]
    pub receive: ReceiveCall,
    /// System call that sends.
    #[arg(long, value_enum, default_value = "write")]
    pub send: SendCall,
    /// Lifetime in seconds; the end of standard input, or a byte there, ends the server earlier.
    #[arg(long = "for", default_value_t = 60)]
    pub seconds: u32,
}

impl ServerOptions {
    /// Returns the options of a server of this model, with the defaults of all others.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            model,
            unix: None,
            receive: ReceiveCall::Read,
            send: SendCall::Write,
            seconds: 60,
        }
    }
}

/// Division of a server's work among threads and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// One thread per connection, which blocks.
    Thread,
    /// One thread with level-triggered epoll and non-blocking sockets.
    Epoll,
    /// One thread that receives as with `epoll`, and two workers that do the work and reply.
    Pool,
    /// One process per connection. It executes the program again: only `sys` has unsafe code, and
    /// a mere fork is unsafe.
    Fork,
}

/// System call that receives from a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "each is named as its call")]
pub enum ReceiveCall {
    Read,
    Recvfrom,
    Recvmsg,
    Readv,
}

/// System call that sends on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "each is named as its call")]
pub enum SendCall {
    Write,
    Sendto,
    Sendmsg,
    Writev,
}

/// Returns an option's value as the command line has it.
fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Limit on the bytes of an echo.
const MAX_ECHO: usize = 16 << 20;
/// Limit on the parts of a reply.
const MAX_PARTS: u32 = 1_000;
/// Limit on a wait; that on CPU time protects small machines.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Limit on the CPU time of a request.
const MAX_SPIN: Duration = Duration::from_millis(50);

/// A request. Its text is the line that is sent, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reply with as many bytes, the newline included: `echo N`.
    Echo(usize),
    /// nanosleep(2): `sleep MS`.
    Sleep(Duration),
    /// CPU time of the thread, up to 50 ms: `spin MS`.
    Spin(Duration),
    /// A mutex that the thread `holder` of the same process holds for this time: `lock MS`.
    Lock(Duration),
    /// Read of a whole file; the reply is its size: `read PATH`.
    Read(PathBuf),
    /// A reply in as many sends, with a nanosleep(2) between two: `parts N MS`.
    Parts(u32, Duration),
}

/// Reply to a request that only takes time.
const DONE: &str = "done\n";
/// Part of a reply in parts.
const PART: &str = "part ";
/// Last part of such a reply, as long as the others.
const LAST_PART: &str = "part\n";

impl Request {
    /// Returns the number of bytes in the reply. `None` for that with the size of a file.
    #[must_use]
    pub fn reply_length(&self) -> Option<usize> {
        match self {
            Self::Echo(bytes) => Some(*bytes),
            Self::Sleep(_) | Self::Spin(_) | Self::Lock(_) => Some(DONE.len()),
            Self::Read(_) => None,
            Self::Parts(parts, _) => Some(*parts as usize * PART.len()),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo(bytes) => write!(f, "echo {bytes}"),
            Self::Sleep(time) => write!(f, "sleep {}", time.as_millis()),
            Self::Spin(time) => write!(f, "spin {}", time.as_millis()),
            Self::Lock(time) => write!(f, "lock {}", time.as_millis()),
            Self::Read(path) => write!(f, "read {}", path.display()),
            Self::Parts(parts, time) => write!(f, "parts {parts} {}", time.as_millis()),
        }
    }
}

impl FromStr for Request {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = line.split_once(' ').ok_or("no argument")?;
        let time = |text: &str, limit: Duration| {
            let time = text.parse().map(Duration::from_millis).ok();
            time.filter(|time| *time <= limit)
                .ok_or("no time within the limits")
        };
        let count = |text: &str, limit: usize| {
            let count = text.parse().ok();
            count
                .filter(|count| (1..=limit).contains(count))
                .ok_or("no number within the limits")
        };
        Ok(match kind {
            "echo" => Self::Echo(count(rest, MAX_ECHO)?),
            "sleep" => Self::Sleep(time(rest, MAX_WAIT)?),
            "spin" => Self::Spin(time(rest, MAX_SPIN)?),
            "lock" => Self::Lock(time(rest, MAX_WAIT)?),
            "read" => Self::Read(rest.into()),
            "parts" => {
                let (parts, gap) = rest.split_once(' ').ok_or("no time")?;
                let parts = count(parts, MAX_PARTS as usize)?;
                Self::Parts(parts as u32, time(gap, MAX_WAIT)?)
            }
            _ => return Err("unknown request"),
        })
    }
}
