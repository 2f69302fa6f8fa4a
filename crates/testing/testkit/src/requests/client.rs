//! The client, which knows when each request began and ended for it.

use std::io;
use std::ops::Range;
use std::thread;

use sys::clock::boot_nanos;

use super::Request;
use super::listener::{Address, Stream};

/// Reply to a request, with the client's times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Connection: the own port, or the number of the connection on a Unix socket, from 1.
    pub connection: u32,
    /// Number of the request on its connection, from 1.
    pub request: u32,
    /// Time just before the request was written, in nanoseconds of `CLOCK_BOOTTIME`.
    pub begin: u64,
    /// Time just after the end of the reply was read, in nanoseconds of `CLOCK_BOOTTIME`.
    pub end: u64,
    /// Reply, with its newline.
    pub reply: Vec<u8>,
}

/// Connections to the server, which are closed when it is dropped.
pub struct Client {
    connections: Vec<ClientConnection>,
}

struct ClientConnection {
    stream: Box<dyn Stream>,
    number: u32,
    requests: u32,
    pending: Vec<u8>,
}

impl Client {
    /// Opens a connection for each number; these are those of Unix sockets.
    pub(super) fn connect(address: &Address, numbers: Range<u32>) -> io::Result<Self> {
        let connect = |number| {
            let (port, stream) = address.connect()?;
            Ok(ClientConnection {
                stream,
                number: port.map_or(number, u32::from),
                requests: 0,
                pending: Vec::new(),
            })
        };
        let connections = numbers.map(connect).collect::<io::Result<_>>()?;
        Ok(Self { connections })
    }

    /// Returns the connections: own ports, or numbers on a Unix socket.
    pub fn connections(&self) -> impl Iterator<Item = u32> {
        self.connections.iter().map(|connection| connection.number)
    }

    /// Sends the requests on all connections at once: on each, one after the other's reply. Returns
    /// the answers by connection, in the order of the requests.
    pub fn send(&mut self, requests: &[Request]) -> io::Result<Vec<Answer>> {
        self.send_pipelined(requests, 1)
    }

    /// Does the same with `depth` requests in each write.
    pub fn send_pipelined(
        &mut self,
        requests: &[Request],
        depth: usize,
    ) -> io::Result<Vec<Answer>> {
        let answers: Vec<_> = thread::scope(|scope| {
            let connections = self.connections.iter_mut();
            let running: Vec<_> = connections
                .map(|connection| scope.spawn(move || connection.send(requests, depth)))
                .collect();
            let lost = |_| Err(io::Error::other("a thread of the client panicked"));
            running
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(lost))
                .collect()
        });
        answers
            .into_iter()
            .collect::<io::Result<Vec<_>>>()
            .map(|answers| answers.concat())
    }
}

impl ClientConnection {
    fn send(&mut self, requests: &[Request], depth: usize) -> io::Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(requests.len());
        for together in requests.chunks(depth.max(1)) {
            let lines: Vec<_> = together.iter().map(Request::to_string).collect();
            let lines = lines.join("\n") + "\n";
            let begin = boot_nanos();
            self.stream.write_all(lines.as_bytes())?;
            for _ in together {
                let (reply, end) = self.reply()?;
                self.requests += 1;
                answers.push(Answer {
                    connection: self.number,
                    request: self.requests,
                    begin,
                    end,
                    reply,
                });
            }
        }
        Ok(answers)
    }

    /// Reads the next reply; returns it with the time of its end.
    fn reply(&mut self) -> io::Result<(Vec<u8>, u64)> {
        let (mut searched, mut end) = (0, boot_nanos());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let new = self.pending.get(searched..).unwrap_or_default();
            if let Some(length) = new.iter().position(|byte| *byte == b'\n') {
                return Ok((self.pending.drain(..=searched + length).collect(), end));
            }
            searched = self.pending.len();
            let read = self.stream.read(&mut buffer)?;
            end = boot_nanos();
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.pending
                .extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
    }
}
