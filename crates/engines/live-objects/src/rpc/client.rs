//! Client of SPDK's JSON-RPC (`lib/jsonrpc`, doc/jsonrpc.md). Requests and answers are consecutive
//! JSON objects over a stream socket, without separators.
//!
//! The listener may be anybody, so reads are bounded in time and size.

use std::fmt;
use std::io::{self, BufReader, ErrorKind, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::de::DeserializeSeed as _;
use serde_json::de::IoRead;
use serde_json::{Deserializer, Value, json};
use text::printable::{self, path as printable};

use super::trimmed::{MAX_VALUES, TrimmedValue};

/// Time limit for all answers together.
const RPC_TIMEOUT: Duration = Duration::from_secs(10);
/// Size limit of all answers, in bytes: some tens of thousands of connections. SPDK itself sends at
/// most 32 MiB (`SPDK_JSONRPC_SEND_BUF_SIZE_MAX`).
const MAX_ANSWER_BYTES: u64 = 8 << 20;
/// Members of each answer.
const OF_ANSWERS: [&str; 5] = ["id", "result", "error", "message", "code"];
/// Limit on the characters shown of an error's text.
const MAX_MESSAGE_CHARS: usize = 200;

/// Connection to an application.
pub(crate) struct Client {
    answers: Deserializer<IoRead<BufReader<LimitedReader>>>,
    requests: UnixStream,
    last: u64,
    /// Number of values that may still be kept.
    left: u32,
}

/// Error reported by the application; other methods may still work.
#[derive(Debug)]
pub(crate) struct RpcError {
    method: &'static str,
    message: String,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.method, self.message)
    }
}

impl std::error::Error for RpcError {}

impl Client {
    /// Connects to the application that listens on this socket.
    pub(crate) fn connect(path: &Path) -> anyhow::Result<Self> {
        let name = || format!("--rpc {}", printable(path));
        let deadline = Instant::now() + RPC_TIMEOUT;
        let (sender, connected) = channel();
        let place = path.to_owned();
        // Connecting blocks if the listener does not accept. The caller may be gone by then.
        std::thread::spawn(move || drop(sender.send(UnixStream::connect(place))));
        let late = || io::Error::from(ErrorKind::TimedOut);
        let requests = connected
            .recv_timeout(RPC_TIMEOUT)
            .unwrap_or_else(|_| Err(late()))
            .with_context(name)?;
        requests
            .set_write_timeout(Some(RPC_TIMEOUT))
            .with_context(name)?;
        let stream = requests.try_clone().with_context(name)?;
        let answers = BufReader::new(LimitedReader {
            stream,
            left: MAX_ANSWER_BYTES,
            deadline,
        });
        Ok(Self {
            answers: Deserializer::from_reader(answers),
            requests,
            last: 0,
            left: MAX_VALUES,
        })
    }

    /// Calls a method and returns its result, with only the members of these names.
    ///
    /// # Errors
    /// Returns [`RpcError`] if the application reports an error; after any other error the
    /// connection is unusable.
    pub(crate) fn call(
        &mut self,
        method: &'static str,
        params: Option<Value>,
        names: &[&str],
    ) -> anyhow::Result<Value> {
        self.last += 1;
        let mut request = json!({ "jsonrpc": "2.0", "method": method, "id": self.last });
        if let Some(params) = params {
            request["params"] = params;
        }
        // As a cause of its own, a broken pipe would be taken for one of standard output.
        let sent = self
            .requests
            .write_all(request.to_string().as_bytes())
            .map_err(io::Error::other);
        sent.with_context(|| format!("the answer to {method}: the connection was closed"))?;
        let names = [names, &OF_ANSWERS].concat();
        let answer = match (TrimmedValue {
            names: &names,
            left: &mut self.left,
        })
        .deserialize(&mut self.answers)
        {
            Err(error) if error.is_eof() => {
                bail!("the answer to {method} is incomplete: the connection was closed")
            }
            answer => answer.with_context(|| format!("the answer to {method}"))?,
        };
        if answer["id"] != self.last {
            bail!("the answer to {method} belongs to another request: this is not SPDK's JSON-RPC");
        }
        if let Some(result) = answer.get("result") {
            return Ok(result.clone());
        }
        let error = &answer["error"];
        let text = error["message"]
            .as_str()
            .unwrap_or("no result and no error");
        let message: String = printable::text(text.as_bytes())
            .chars()
            .take(MAX_MESSAGE_CHARS)
            .collect();
        Err(RpcError {
            method,
            message: format!("{message} (code {})", error["code"].as_i64().unwrap_or(0)),
        }
        .into())
    }
}

/// Reader of the socket, limited in time and size.
struct LimitedReader {
    stream: UnixStream,
    left: u64,
    deadline: Instant,
}

impl Read for LimitedReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let late = || {
            io::Error::new(
                ErrorKind::TimedOut,
                format!("not there within {} s", RPC_TIMEOUT.as_secs()),
            )
        };
        let left = self
            .deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero());
        self.stream.set_read_timeout(Some(left.ok_or_else(late)?))?;
        if self.left == 0 {
            return Err(io::Error::other(format!(
                "longer than {} MiB",
                MAX_ANSWER_BYTES >> 20
            )));
        }
        let room = buf
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = loop {
            match self.stream.read(&mut buf[..room]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) =>
                {
                    return Err(late());
                }
                done => break done?,
            }
        };
        self.left -= read as u64;
        Ok(read)
    }
}
