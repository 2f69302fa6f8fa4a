//! Soft interrupts: broadcasts over the loopback interface, each of which goes to a crowd of
//! sockets.
//!
//! The sender's CPU also receives them: `NET_RX` runs as soon as the send has handed the packet
//! over (`__dev_queue_xmit`, `netif_rx`, `net/core/dev.c`), with the sender as the CPU's task. The
//! kernel copies a broadcast to each socket of its port (`__udp4_lib_mcast_deliver`,
//! `net/ipv4/udp.c`), all in the soft interrupt: the send itself takes 1 to 2 %. The first one
//! after a while takes several times as long, because the caches are cold. So one is sent to nobody
//! before.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use super::schedule::allow_files;
use super::watch::Watch;

/// Number of sockets that receive each packet.
const RECEIVERS: usize = 1_500;
/// Broadcast address of the loopback interface, which the kernel adds with 127.0.0.1/8.
const BROADCAST: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);
/// Port of the service `discard` (RFC 863), which nobody offers any more.
const DISCARD: u16 = 9;

/// Sockets for all reactors: only one sends at a time.
#[derive(Debug)]
pub(crate) struct Packets {
    sender: UdpSocket,
    /// Socket that sends to a port that nobody has.
    to_nobody: UdpSocket,
    /// Receivers, kept open. They receive until their buffers are full, and nobody reads.
    _crowd: Vec<OwnedFd>,
}

impl Packets {
    /// Opens the sockets, all on one port of the kernel's choice.
    pub(crate) fn prepare() -> io::Result<Self> {
        allow_files();
        let first = receiver(0)?;
        let port = UdpSocket::from(first.try_clone()?).local_addr()?.port();
        let others = (1..RECEIVERS)
            .map(|_| receiver(port))
            .collect::<io::Result<Vec<_>>>()?;
        let (sender, to_nobody) = (sender_to(port)?, sender_to(DISCARD)?);
        sender.send(&[0])?;
        Ok(Self {
            sender,
            to_nobody,
            _crowd: std::iter::once(first).chain(others).collect(),
        })
    }

    /// Sends until the ticks `end`; returns the number of calls. Each send makes a gap.
    pub(crate) fn send(&self, watch: &mut Watch, end: u64) -> io::Result<u32> {
        let mut calls = 1;
        self.to_nobody.send(&[0])?;
        watch.resume();
        while watch.look() < end {
            self.sender.send(&[0])?;
            calls += 1;
        }
        Ok(calls)
    }
}

/// Opens a socket that sends broadcasts to this port.
fn sender_to(port: u16) -> io::Result<UdpSocket> {
    let sender = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    sender.set_broadcast(true)?;
    sender.connect((BROADCAST, port))?;
    Ok(sender)
}

/// Opens a socket that receives broadcasts to this port, as others do. Its buffer is small, since
/// it is usually full.
fn receiver(port: u16) -> io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_recv_buffer_size(&socket, 0)?;
    bind(&socket, &SocketAddr::from((BROADCAST, port)))?;
    Ok(socket)
}
