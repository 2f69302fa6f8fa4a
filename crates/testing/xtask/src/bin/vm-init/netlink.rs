//! Netlink messages that the guest needs: building and sending them, and reading the answers.
//!
//! A message is a header (`struct nlmsghdr` of `linux/netlink.h`), the header of its family, and
//! attributes (`struct nlattr`: length including the header, kind), each padded to 4 bytes.

use std::io;
use std::os::fd::OwnedFd;

use anyhow::{Context as _, bail, ensure};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, getsockname, recv, send, socket_with};

/// Size of a message's header.
const HEADER: usize = 16;
/// Size of an attribute's header.
const ATTRIBUTE: usize = 4;
/// `NLM_F_REQUEST`: the message is a request.
const REQUEST: u16 = 1;
/// `NLM_F_ACK`: the kernel reports the result.
const ACK: u16 = 4;
/// `NLMSG_ERROR`: an error number, or 0 for success.
const ERROR: u16 = 2;
/// Limit on the size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// Message under construction.
#[derive(Clone, Debug)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Makes a request of a kind, with the header of its family.
    pub(crate) fn new(kind: u16, family_header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(REQUEST | ACK).to_ne_bytes());
        bytes.extend(family_header);
        Self(bytes)
    }

    /// Appends an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0
            .extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute with a name, which ends with a zero byte.
    pub(crate) fn with_name(self, kind: u16, name: &str) -> Self {
        self.with(kind, &[name.as_bytes(), b"\0"].concat())
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// Netlink socket.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket. The kernel assigns its number, by which others send to it.
    pub(crate) fn open(protocol: Option<Protocol>) -> anyhow::Result<Self> {
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        );
        let fd = fd.context("opening a netlink socket")?;
        bind(&fd, &SocketAddrNetlink::new(0, 0)).context("binding a netlink socket")?;
        Ok(Self(fd))
    }

    /// Returns the socket's number.
    pub(crate) fn number(&self) -> anyhow::Result<u32> {
        let address = getsockname(&self.0).context("asking for a netlink socket's number")?;
        Ok(SocketAddrNetlink::try_from(address)
            .context("a netlink socket has another address")?
            .pid())
    }

    /// Returns the file descriptor.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Sends a request; returns the answer's bytes behind the headers of netlink and its family,
    /// empty if there is no answer.
    pub(crate) fn ask(&self, message: Message, family_header: usize) -> anyhow::Result<Vec<u8>> {
        send(&self.0, &message.finish(), SendFlags::empty()).context("asking the kernel")?;
        let mut answer = Vec::new();
        loop {
            let bytes = self
                .receive(RecvFlags::empty())
                .context("waiting for the kernel's answer")?;
            let kind = bytes
                .get(4..6)
                .and_then(|bytes| bytes.try_into().ok())
                .map(u16::from_ne_bytes);
            if kind != Some(ERROR) {
                answer = bytes
                    .get(HEADER + family_header..)
                    .unwrap_or_default()
                    .to_vec();
                continue;
            }
            let code = bytes
                .get(HEADER..HEADER + 4)
                .and_then(|bytes| bytes.try_into().ok())
                .map(i32::from_ne_bytes);
            match code {
                Some(0) => return Ok(answer),
                Some(code) => return Err(io::Error::from_raw_os_error(-code).into()),
                None => bail!("the kernel's answer is cut off"),
            }
        }
    }

    /// Receives the next datagram.
    pub(crate) fn receive(&self, flags: RecvFlags) -> rustix::io::Result<Vec<u8>> {
        let mut bytes = vec![0; MAX_ANSWER_BYTES];
        let length = recv(&self.0, &mut bytes[..], flags)?.1;
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// Returns the value of the attribute of a kind.
pub(crate) fn attribute(mut bytes: &[u8], wanted: u16) -> anyhow::Result<&[u8]> {
    while let [a, b, c, d, rest @ ..] = bytes {
        let (length, kind) = (
            usize::from(u16::from_ne_bytes([*a, *b])),
            u16::from_ne_bytes([*c, *d]),
        );
        ensure!(length >= ATTRIBUTE, "an attribute of {length} bytes");
        let value = rest
            .get(..length - ATTRIBUTE)
            .context("an attribute is cut off")?;
        if kind == wanted {
            return Ok(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    bail!("the kernel's answer has no attribute {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_behind_padding() {
        let message = Message::new(7, &[1, 2, 3, 4])
            .with_name(1, "ab")
            .with(2, &9u32.to_ne_bytes())
            .finish();
        assert_eq!(message.len(), HEADER + 4 + 8 + 8);
        assert_eq!(message[..4], (message.len() as u32).to_ne_bytes());
        let attributes = &message[HEADER + 4..];
        assert_eq!(attribute(attributes, 1).unwrap(), b"ab\0");
        assert_eq!(attribute(attributes, 2).unwrap(), 9u32.to_ne_bytes());
        assert!(attribute(attributes, 3).is_err());
        assert!(attribute(&attributes[..6], 1).is_err() && attribute(&[1, 0, 1, 0], 1).is_err());
    }

    /// Every machine's kernel knows its own controller of families.
    #[test]
    fn the_kernel_answers_and_refuses() {
        let socket = Socket::open(Some(rustix::net::netlink::GENERIC)).unwrap();
        assert_ne!(socket.number().unwrap(), 0);
        let family = |name| socket.ask(Message::new(16, &[3, 1, 0, 0]).with_name(2, name), 4);
        assert_eq!(
            attribute(&family("nlctrl").unwrap(), 1).unwrap(),
            16u16.to_ne_bytes()
        );
        assert!(
            family("no such family")
                .unwrap_err()
                .to_string()
                .contains("No such file")
        );
    }
}
