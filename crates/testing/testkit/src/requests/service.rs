//! The work of the server: requests in, waits, replies out. All models share it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::thread::{NanosleepRelativeResult, Timespec, nanosleep};
use sys::clock::{boot_nanos, thread_ran};

use super::{Cause, DONE, LAST_PART, PART, ReceiveCall, Request, SendCall, ServerOptions, Wait};

/// Bytes that one system call may receive.
const RECEIVE_BYTES: usize = 4_096;
/// Limit on the bytes of a line.
const MAX_LINE: usize = 64 << 10;

/// A connection of the server, with what it has received of the next request.
pub(super) struct Connection {
    pub(super) stream: Arc<OwnedFd>,
    pub(super) number: u32,
    /// Requests that were received.
    requests: u32,
    pending: Vec<u8>,
}

/// Requests of one connection that were received together.
pub(super) struct Batch {
    pub(super) stream: Arc<OwnedFd>,
    pub(super) connection: u32,
    /// Number of the first request.
    first: u32,
    lines: Vec<String>,
}

impl Connection {
    pub(super) fn new(stream: OwnedFd, number: u32) -> Self {
        Self {
            stream: Arc::new(stream),
            number,
            requests: 0,
            pending: Vec::new(),
        }
    }

    /// Receives once, and returns the requests that are whole. `None` at the end of the connection.
    pub(super) fn receive(&mut self, call: ReceiveCall) -> Option<Batch> {
        let mut buffer = [0; RECEIVE_BYTES];
        let received = match call.receive(self.stream.as_fd(), &mut buffer) {
            Err(error) if is_temporary(&error) => return Some(self.batch(Vec::new())),
            // A client that resets its connection is gone, too.
            Ok(0) | Err(_) => return None,
            Ok(received) => received,
        };
        self.pending
            .extend_from_slice(buffer.get(..received).unwrap_or_default());
        let mut lines = Vec::new();
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        (self.pending.len() <= MAX_LINE).then(|| self.batch(lines))
    }

    fn batch(&mut self, lines: Vec<String>) -> Batch {
        let first = self.requests + 1;
        self.requests += lines.len() as u32;
        Batch {
            stream: Arc::clone(&self.stream),
            connection: self.number,
            first,
            lines,
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Wish that the holder take the mutex for a time; it answers when it has it.
type Hold = (Duration, Sender<()>);

/// Work of the server, with its truth.
pub(super) struct Service {
    pub(super) receive: ReceiveCall,
    send: SendCall,
    waits: Mutex<Vec<Wait>>,
    contended: Arc<Mutex<()>>,
    holder: Sender<Hold>,
}

impl Service {
    /// Starts the holder of the mutex, too.
    pub(super) fn start(options: &ServerOptions) -> io::Result<Self> {
        let contended = Arc::new(Mutex::new(()));
        let (holder, wishes) = channel::<Hold>();
        let mutex = Arc::clone(&contended);
        let hold = move || {
            for (time, has_it) in wishes {
                let _held = lock(&mutex);
                // Who asked may be gone.
                let _ = has_it.send(());
                sleep(time);
            }
        };
        std::thread::Builder::new()
            .name("holder".to_owned())
            .spawn(hold)?;
        Ok(Self {
            receive: options.receive,
            send: options.send,
            waits: Mutex::default(),
            contended,
            holder,
        })
    }

    /// Serves a blocking connection to its end.
    pub(super) fn serve(&self, mut connection: Connection) {
        while let Some(batch) = connection.receive(self.receive) {
            if self.reply(&batch).is_err() {
                return;
            }
        }
    }

    /// Replies to all requests of a batch.
    pub(super) fn reply(&self, batch: &Batch) -> io::Result<()> {
        for (number, line) in (batch.first..).zip(&batch.lines) {
            let place = Place {
                service: self,
                stream: batch.stream.as_fd(),
                connection: batch.connection,
                request: number,
            };
            place.reply(line)?;
        }
        Ok(())
    }

    /// Prints the waits up to now. Each line is one write(2), since processes may share the output.
    pub(super) fn print_waits(&self) {
        for wait in lock(&self.waits).iter() {
            println!("{wait}");
        }
    }
}

/// A request that is being served.
struct Place<'a> {
    service: &'a Service,
    stream: BorrowedFd<'a>,
    connection: u32,
    request: u32,
}

impl Place<'_> {
    fn reply(&self, line: &str) -> io::Result<()> {
        let done = |cause, wait: &dyn Fn()| {
            self.wait(cause, wait);
            DONE.to_owned()
        };
        let reply = match line.parse() {
            Err(error) => format!("refused: {error}\n"),
            Ok(Request::Echo(bytes)) => "x".repeat(bytes - 1) + "\n",
            Ok(Request::Sleep(time)) => done(Cause::Sleep, &|| sleep(time)),
            Ok(Request::Spin(time)) => done(Cause::Spin, &|| spin(time)),
            Ok(Request::Lock(time)) => done(Cause::Lock, &|| self.contend(time)),
            Ok(Request::Read(path)) => match self.wait(Cause::Read, || std::fs::read(&path)) {
                Ok(bytes) => format!("{}\n", bytes.len()),
                Err(error) => format!("refused: {error}\n"),
            },
            Ok(Request::Parts(parts, gap)) => {
                for _ in 1..parts {
                    self.send(PART)?;
                    self.wait(Cause::Gap, || sleep(gap));
                }
                LAST_PART.to_owned()
            }
        };
        self.send(&reply)
    }

    fn send(&self, reply: &str) -> io::Result<()> {
        self.service.send.send(self.stream, reply.as_bytes())
    }

    /// Waits, and notes when. The note is made before the reply, so that whoever has the reply also
    /// finds the note.
    fn wait<T>(&self, cause: Cause, wait: impl FnOnce() -> T) -> T {
        let begin = boot_nanos();
        let result = wait();
        let end = boot_nanos();
        lock(&self.service.waits).push(Wait {
            connection: self.connection,
            request: self.request,
            pid: std::process::id(),
            tid: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            cause,
            begin,
            end,
        });
        result
    }

    fn contend(&self, time: Duration) {
        let (has_it, answer) = channel();
        // The holder lives as long as the service.
        let _ = self.service.holder.send((time, has_it));
        let _ = answer.recv();
        drop(lock(&self.service.contended));
    }
}

/// Locks a mutex. A thread that panicked while it had it has failed its own request only.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sleep(time: Duration) {
    let mut left = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}

fn spin(time: Duration) {
    let end = thread_ran() + time;
    while thread_ran() < end {
        std::hint::spin_loop();
    }
}
