//! Sockets of processes: which ones they have open, and the ports on which they listen.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::{folder, text};
use crate::capabilities::with_file_access;
use crate::process::Pid;

/// State of a socket that listens (`TCP_LISTEN` of `include/net/tcp_states.h`).
const LISTEN: u8 = 10;

/// Port of TCP on which something listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListeningPort {
    /// Port.
    pub port: u16,
    /// Inode of the socket.
    pub inode: u64,
}

/// Returns the inodes of the sockets that a process has open.
///
/// # Errors
///
/// Returns an error if the process does not exist, or we may not see its open files.
pub fn socket_inodes(pid: Pid) -> io::Result<HashSet<u64>> {
    let links = folder(pid).join("fd");
    with_file_access(|| {
        let links = fs::read_dir(links)?
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok());
        Ok(links.filter_map(|link| inode(&link)).collect())
    })
}

/// Parses the inode in `socket:[131850]`.
fn inode(link: &Path) -> Option<u64> {
    link.to_str()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// Returns the ports of TCP on which something listens in the network of a process. Empty if the
/// kernel's list can't be read.
pub fn listening_ports(pid: Pid) -> Vec<ListeningPort> {
    let net = folder(pid).join("net");
    let lists = ["tcp", "tcp6"].map(|name| text(net.join(name)).unwrap_or_default());
    lists.iter().flat_map(|list| listening(list)).collect()
}

/// Returns the ports of a list of sockets (`get_tcp4_sock` of `net/ipv4/tcp_ipv4.c`).
fn listening(list: &str) -> impl Iterator<Item = ListeningPort> {
    list.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (_, port) = words.next()?.rsplit_once(':')?;
        let state = words.nth(1)?;
        let inode = words.nth(5)?.parse().ok()?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let is_listening = u8::from_str_radix(state, 16).ok()? == LISTEN;
        is_listening.then_some(ListeningPort { port, inode })
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn only_sockets_that_listen_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let own = Pid(std::process::id());
        let found = |port: u16| {
            let ports = listening_ports(own);
            ports.into_iter().find(|found| found.port == port)
        };
        let inode = found(address.port()).unwrap().inode;
        assert!(socket_inodes(own).unwrap().contains(&inode));
        assert_eq!(found(client.local_addr().unwrap().port()), None);
        drop(listener);
        assert_eq!(found(address.port()), None);
    }

    #[test]
    fn lines_of_a_list_are_parsed_as_far_as_they_are_whole() {
        let list = "  sl  local_address rem_address   st\n\
                    0: x\n\
                    1: 00000000:1538 00000000:0000 0A 0:0 00:0 0 103 0 777 1\n\
                    2: 00000000:1539 0A00000A:0001 01 0:0 00:0 0 103 0 778 1\n\
                    3: 00000000:153A 00000000:0000 0A 0:0\n";
        let found: Vec<_> = listening(list).collect();
        let expected = ListeningPort {
            port: 0x1538,
            inode: 777,
        };
        assert_eq!(found, [expected]);
        assert_eq!(inode(Path::new("socket:[131850]")), Some(131_850));
        assert_eq!(inode(Path::new("pipe:[131850]")), None);
    }
}
