//! Layout of the ring and of the maps: programs take offsets from these structures, readers get the
//! structures themselves.

use bpf_insn::{MapDef, MapKind};
use bpf_program::{bytes_of, event};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes kept of the first data of a receive: enough for the method and the path of most requests.
pub(crate) const TEXT_BYTES: usize = 48;

/// Event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Event {
    /// Time, in nanoseconds of `CLOCK_BOOTTIME`.
    pub(crate) at: u64,
    /// Number of the socket, unique since boot (`bpf_get_socket_cookie`).
    pub(crate) cookie: u64,
    /// Thread that received or sent; 0 for [`kind::ARRIVED`].
    pub(crate) tid: u32,
    /// Bytes received or sent; 0 for [`kind::ARRIVED`].
    pub(crate) bytes: u32,
    /// Kind: one of [`kind`].
    pub(crate) kind: u32,
    /// Number of valid bytes in `text`.
    pub(crate) text_bytes: u32,
    /// Ends of the connection.
    pub(crate) ends: Ends,
    /// First bytes of what was received.
    pub(crate) text: [u8; TEXT_BYTES],
}

/// Ends of a connection, as the kernel has them (`struct sock_common`). All 0 for [`kind::SENT`], and
/// if data arrived on a socket that is known from an event before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Ends {
    /// Address of the peer, for IPv6.
    pub(crate) peer6: [u8; 16],
    /// Own address, for IPv6.
    pub(crate) own6: [u8; 16],
    /// Address of the peer, for IPv4.
    pub(crate) peer4: [u8; 4],
    /// Own address, for IPv4.
    pub(crate) own4: [u8; 4],
    /// Port of the peer, in the order of the network.
    pub(crate) peer_port: [u8; 2],
    /// Own port, in the order of the machine.
    pub(crate) own_port: u16,
    /// Address family: one of [`family`].
    pub(crate) family: u16,
    /// Nonzero if a Unix socket has an address: that of the listening socket that accepted it.
    pub(crate) is_named: u16,
}

/// Kinds of events.
pub(crate) mod kind {
    /// Data arrived on a connection of which all data was received before.
    pub(crate) const ARRIVED: u32 = 1;
    /// The process received data.
    pub(crate) const RECEIVED: u32 = 2;
    /// The process sent data.
    pub(crate) const SENT: u32 = 3;
}

/// Address families (`include/linux/socket.h`).
pub(crate) mod family {
    pub(crate) const UNIX: u16 = 1;
    pub(crate) const INET: u16 = 2;
    pub(crate) const INET6: u16 = 10;
}

/// Value of the map [`SOCKETS`].
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct SocketState {
    /// Number of the socket: its address may be another socket's by now.
    pub(crate) cookie: u64,
    /// 1 if data has arrived since the last receive, else 0.
    pub(crate) has_arrived: u64,
}

/// Name of the map from the address of a `struct sock` of the process to its [`SocketState`].
pub(crate) const SOCKETS: &str = "sockets";
/// Limit on its sockets. The least recently used ones are forgotten; then the time at which data
/// arrived is unknown.
const MAX_SOCKETS: u32 = 1 << 16;

/// Name of the map of the ports on which the processes listen: a `u32` each, with 1.
pub(crate) const PORTS: &str = "ports";
/// Limit on these ports.
pub(crate) const MAX_PORTS: u32 = 1 << 10;

/// Returns the maps, for a ring of `ring_bytes` bytes (a power of two, and a multiple of the page
/// size).
pub(crate) fn maps(ring_bytes: u32) -> Vec<MapDef> {
    let mut maps = event::maps(ring_bytes);
    maps.push(MapDef::new(
        SOCKETS,
        MapKind::LruHash,
        8,
        bytes_of!(SocketState).cast_unsigned().into(),
        MAX_SOCKETS,
    ));
    maps.push(MapDef::new(PORTS, MapKind::Hash, 4, 4, MAX_PORTS));
    maps
}
