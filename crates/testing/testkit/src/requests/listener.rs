//! Addresses, and the sockets of both sides.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that a client waits for a part of a reply: longer than anything here takes.
const CLIENT_TIMEOUT: Duration = Duration::from_mins(1);

/// Address of a server.
#[derive(Clone, Debug)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Unix(text.into()), Self::Tcp)
    }
}

/// Byte stream of a client.
pub(super) trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

impl Address {
    /// Connects; returns the own port, which a Unix socket does not have.
    pub(super) fn connect(&self) -> io::Result<(Option<u16>, Box<dyn Stream>)> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
                Ok((Some(stream.local_addr()?.port()), Box::new(stream)))
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
                Ok((None, Box::new(stream)))
            }
        }
    }
}

/// Listening socket.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on this path, or on a free port of loopback.
    pub(super) fn bind(path: Option<&Path>) -> io::Result<Self> {
        Ok(match path {
            Some(path) => Self::Unix(UnixListener::bind(path)?, path.to_owned()),
            None => Self::Tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?),
        })
    }

    pub(super) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            Self::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// Accepts a connection; returns the peer's port, which a Unix socket does not have.
    pub(super) fn accept(&self) -> io::Result<(Option<u16>, OwnedFd)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                // Each send of a reply is to arrive when it was sent.
                stream.set_nodelay(true)?;
                Ok((Some(peer.port()), stream.into()))
            }
            Self::Unix(listener, _) => Ok((None, listener.accept()?.0.into())),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}
