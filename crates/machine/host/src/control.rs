//! Unix sockets on which a process answers queries: the list of its listening sockets, and
//! connections with a time limit.
//!
//! A path is the one that the process has bound, so `foreign` resolves it below the process's root.
//! A connection uses the user's own rights: dptrace asks nothing that the user may not ask. The
//! process's owner chose the path and can put a link there that leads to somebody else's socket,
//! which root may use and he may not. So a socket is connected to only if it belongs to the user of
//! the process. Answers are untrusted all the same.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::capabilities::with_file_access;
use crate::foreign;
use crate::proc;
use crate::process::Pid;

/// Limit on an answer, in bytes: the history of a hundred polling threads has some 10 MiB.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Bytes that are received at once: more than a message of DPDK's telemetry has (16 KiB;
/// `MAX_OUTPUT_LEN`).
const RECEIVE_BYTES: usize = 256 << 10;
/// Flag of a listening socket in `/proc/net/unix` (`__SO_ACCEPTCON` in `include/uapi/linux/net.h`).
const ACCEPTS: u32 = 1 << 16;

/// Separation of messages on a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketKind {
    /// Bytes without separation: `SOCK_STREAM`.
    Stream,
    /// Each message is received on its own: `SOCK_SEQPACKET`.
    Packets,
}

/// Owner that a socket must have to be connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketOwner {
    /// The process itself: it listens there now.
    Process,
    /// The process's user: another process of that user may listen there, as the database of Open
    /// vSwitch does.
    User,
}

/// A listening socket of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListeningSocket {
    /// Path, as the process has bound it.
    pub path: PathBuf,
    /// Kind of the socket.
    pub kind: SocketKind,
}

/// Returns the sockets with a path on which a process listens: the ones that it has open, in its
/// network namespace.
///
/// # Errors
///
/// Returns an error if the process does not exist, or we may not see its open files.
pub fn listening(pid: Pid) -> io::Result<Vec<ListeningSocket>> {
    let folder = proc::folder(pid);
    let table = with_file_access(|| fs::read(folder.join("net/unix")))?;
    Ok(listed(&table, &proc::socket_inodes(pid)?))
}

/// Returns the listening sockets of these inodes in `/proc/net/unix`: `Num RefCount Protocol Flags
/// Type St Inode Path`.
fn listed(table: &[u8], open: &HashSet<u64>) -> Vec<ListeningSocket> {
    let lines = table.split(|&byte| byte == b'\n');
    lines.filter_map(|line| socket(line, open)).collect()
}

fn socket(line: &[u8], open: &HashSet<u64>) -> Option<ListeningSocket> {
    let mut fields = line.splitn(8, |&byte| byte == b' ').skip(3);
    // The inode's field is padded to five columns.
    let mut next = || std::str::from_utf8(fields.next()?).ok();
    let flags = u32::from_str_radix(next()?, 16).ok()?;
    let kind = match next()? {
        "0001" => SocketKind::Stream,
        "0005" => SocketKind::Packets,
        _ => return None,
    };
    next()?;
    let rest = line
        .splitn(7, |&byte| byte == b' ')
        .nth(6)?
        .trim_ascii_start();
    let end = rest.iter().position(|&byte| byte == b' ')?;
    let inode: u64 = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    let path = Path::new(OsStr::from_bytes(&rest[end + 1..]));
    // A name that begins with @ has no file.
    let is_wanted = flags & ACCEPTS != 0 && open.contains(&inode) && path.is_absolute();
    is_wanted.then(|| ListeningSocket {
        path: path.to_owned(),
        kind,
    })
}

/// A connection with a deadline.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    kind: SocketKind,
    until: Instant,
}

impl Connection {
    /// Connects to a socket by its path below the process's root.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such socket, it belongs to somebody else, the user may not
    /// connect to it, or nobody accepts in time.
    pub fn open(
        pid: Pid,
        path: &Path,
        kind: SocketKind,
        whose: SocketOwner,
        limit: Duration,
    ) -> io::Result<Self> {
        let until = Instant::now() + limit;
        let folder = proc::folder(pid);
        if whose == SocketOwner::Process
            && !listening(pid)?
                .iter()
                .any(|socket| socket.path == path && socket.kind == kind)
        {
            return Err(refused(pid, "does not listen there"));
        }
        let (held, owner) = with_file_access(|| foreign::socket_below(&folder.join("root"), path))?;
        // The kernel makes the file for the user who binds the socket (unix(7)).
        if proc::effective_user(&folder)? != owner {
            return Err(refused(pid, "does not belong to the socket's user"));
        }
        let socket_type = if kind == SocketKind::Stream {
            SocketType::STREAM
        } else {
            SocketType::SEQPACKET
        };
        let socket =
            net::socket_with(AddressFamily::UNIX, socket_type, SocketFlags::CLOEXEC, None)?;
        let connection = Self {
            socket,
            kind,
            until,
        };
        connection.limit(Timeout::Send)?;
        // The link leads to the socket that is held, and is never too long for an address.
        let address = SocketAddrUnix::new(proc::own_descriptor(held.as_fd()))?;
        net::connect(&connection.socket, &address).map_err(late)?;
        Ok(connection)
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the other side is gone, or does not read in time.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut rest = message;
        while !rest.is_empty() {
            self.limit(Timeout::Send)?;
            match net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(late(error)),
            }
        }
        Ok(())
    }

    /// Receives the next message, or the next piece of a stream. Returns 0 at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing comes in time, or more than [`MAX_ANSWER_BYTES`] in all.
    pub fn receive(&self, into: &mut Vec<u8>) -> io::Result<usize> {
        if into.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::new(
                ErrorKind::FileTooLarge,
                "the answer has more than 32 MiB",
            ));
        }
        let start = into.len();
        into.resize(start + RECEIVE_BYTES, 0);
        let received = loop {
            self.limit(Timeout::Recv)?;
            match net::recv(&self.socket, into[start..].as_mut(), RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                received => break received,
            }
        };
        into.truncate(start + received.as_ref().map_or(0, |(count, _)| *count));
        received.map(|(count, _)| count).map_err(late)
    }

    /// Returns how messages are separated.
    pub fn kind(&self) -> SocketKind {
        self.kind
    }

    /// Limits the next call to the remaining time.
    fn limit(&self, what: Timeout) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late(Errno::AGAIN));
        }
        Ok(set_socket_timeout(&self.socket, what, Some(left))?)
    }
}

fn refused(pid: Pid, why: &str) -> io::Error {
    io::Error::new(
        ErrorKind::PermissionDenied,
        format!("process {} {why}: not connecting to it", pid.0),
    )
}

/// Converts an error; a call that ran out of time fails with `EAGAIN`.
fn late(error: Errno) -> io::Error {
    match error {
        Errno::AGAIN => io::Error::new(ErrorKind::TimedOut, "no answer in time"),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_table_is_read_by_its_fields() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            00000000be347be4: 00000003 00000000 00000000 0001 03 131854\n\
            00000000861cef5d: 00000002 00000000 00010000 0005 01 130456 /var/run/dpdk/a b/dpdk_telemetry.v2\n\
            0000000061e7c2b7: 00000002 00000000 00010000 0001 01   850 /run/v.ctl\n\
            0000000061e7c2b8: 00000002 00000000 00010000 0001 01 131851 @abstract\n\
            0000000061e7c2b9: 00000002 00000000 00010000 0001 01 131852 /of/another\n";
        let found = listed(table, &HashSet::from([850, 130_456, 131_851, 131_854]));
        let expected = [
            ("/var/run/dpdk/a b/dpdk_telemetry.v2", SocketKind::Packets),
            ("/run/v.ctl", SocketKind::Stream),
        ];
        assert_eq!(
            found,
            expected.map(|(path, kind)| ListeningSocket {
                path: path.into(),
                kind
            })
        );
        assert_eq!(listed(b"\n 1 2\n\xff\xff", &HashSet::new()), []);
    }

    #[test]
    fn a_socket_is_found_and_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ctl");
        let listener = UnixListener::bind(&path).unwrap();
        let own = Pid(std::process::id());
        let found = listening(own).unwrap();
        assert!(
            found.contains(&ListeningSocket {
                path: path.clone(),
                kind: SocketKind::Stream
            }),
            "{found:?}"
        );
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut question = [0; 4];
            client.read_exact(&mut question).unwrap();
            client.write_all(b"answer").unwrap();
            question
        });
        let connection = Connection::open(
            own,
            &path,
            SocketKind::Stream,
            SocketOwner::Process,
            Duration::from_mins(1),
        )
        .unwrap();
        connection.send(b"ask?").unwrap();
        assert_eq!(server.join().unwrap(), *b"ask?");
        let mut answer = Vec::new();
        while connection.receive(&mut answer).unwrap() > 0 {}
        assert_eq!(answer, b"answer");
    }

    #[test]
    fn a_silent_peer_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ctl");
        let _listener = UnixListener::bind(&path).unwrap();
        let own = Pid(std::process::id());
        // The time may be over before it is open.
        let connection = Connection::open(
            own,
            &path,
            SocketKind::Stream,
            SocketOwner::User,
            Duration::from_millis(50),
        );
        let error = connection
            .and_then(|connection| connection.receive(&mut Vec::new()))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // A regular file is not connected to.
        fs::write(folder.path().join("file"), "").unwrap();
        let file = folder.path().join("file");
        assert!(
            Connection::open(
                own,
                &file,
                SocketKind::Stream,
                SocketOwner::User,
                Duration::from_secs(1)
            )
            .is_err()
        );
    }

    /// A hostile process names somebody else's socket, or replaces its own by a link to one.
    #[test]
    fn a_socket_of_somebody_else_is_not_connected_to() {
        let folder = tempfile::tempdir().unwrap();
        let [mine, theirs] = ["mine.ctl", "theirs.sock"].map(|name| folder.path().join(name));
        let listener = UnixListener::bind(&theirs).unwrap();
        listener.set_nonblocking(true).unwrap();
        let connect = |pid, path: &Path, whose| {
            let error =
                Connection::open(pid, path, SocketKind::Stream, whose, Duration::from_secs(1))
                    .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
            error.to_string()
        };
        // A process that listens nowhere.
        let mut other = testkit::command("sleep").arg("60").spawn().unwrap();
        let message = connect(Pid(other.id()), &theirs, SocketOwner::Process);
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(message.contains("does not listen there"), "{message}");
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // We listen on a path that is now a link to a socket of another user.
        let _own = UnixListener::bind(&mine).unwrap();
        fs::remove_file(&mine).unwrap();
        std::os::unix::fs::symlink(&theirs, &mine).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
        for whose in [SocketOwner::Process, SocketOwner::User] {
            let message = connect(Pid(std::process::id()), &mine, whose);
            assert!(
                message.contains("does not belong to the socket's user"),
                "{message}"
            );
        }
    }
}
