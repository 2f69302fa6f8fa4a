//! The system calls that receive and send.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, readv, write, writev};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, send, sendmsg,
};

use super::{ReceiveCall, SendCall};

impl ReceiveCall {
    /// Receives once, and returns the number of bytes.
    pub(super) fn receive(self, stream: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
        let received = match self {
            Self::Read => read(stream, into),
            // Without an address it is recvfrom(2).
            Self::Recvfrom => recv(stream, into, RecvFlags::empty()).map(|(bytes, _)| bytes),
            Self::Recvmsg => {
                let mut parts = [IoSliceMut::new(into)];
                let mut control = RecvAncillaryBuffer::default();
                recvmsg(stream, &mut parts, &mut control, RecvFlags::empty())
                    .map(|message| message.bytes)
            }
            Self::Readv => {
                let (first, rest) = into.split_at_mut(into.len() / 2);
                readv(stream, &mut [IoSliceMut::new(first), IoSliceMut::new(rest)])
            }
        };
        Ok(received?)
    }
}

impl SendCall {
    /// Sends all bytes. It waits if a non-blocking socket is full.
    pub(super) fn send(self, stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.send_once(stream, bytes) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(Errno::AGAIN) => {
                    poll(
                        &mut [PollFd::from_borrowed_fd(stream, PollFlags::OUT)],
                        None,
                    )?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn send_once(self, stream: BorrowedFd<'_>, bytes: &[u8]) -> rustix::io::Result<usize> {
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let parts = [IoSlice::new(first), IoSlice::new(rest)];
        match self {
            Self::Write => write(stream, bytes),
            // Without an address it is sendto(2).
            Self::Sendto => send(stream, bytes, SendFlags::NOSIGNAL),
            Self::Sendmsg => {
                let mut control = SendAncillaryBuffer::default();
                sendmsg(stream, &parts, &mut control, SendFlags::NOSIGNAL)
            }
            Self::Writev => writev(stream, &parts),
        }
    }
}
