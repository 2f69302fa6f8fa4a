//! Ports on which something listens.

use std::collections::BTreeSet;

use super::{folder, text};
use crate::process::Pid;

/// State of a socket that listens (`TCP_LISTEN` of `include/net/tcp_states.h`).
const LISTEN: u8 = 10;

/// Returns the ports of TCP on which something listens in the network of a process. Empty if the
/// kernel's list can't be read.
pub fn listening_ports(pid: Pid) -> BTreeSet<u16> {
    let net = folder(pid).join("net");
    let lists = ["tcp", "tcp6"].map(|name| text(net.join(name)).unwrap_or_default());
    lists.iter().flat_map(|list| listening(list)).collect()
}

/// Returns the ports of a list of sockets (`get_tcp4_sock` of `net/ipv4/tcp_ipv4.c`).
fn listening(list: &str) -> impl Iterator<Item = u16> {
    list.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (_, port) = words.next()?.rsplit_once(':')?;
        let state = words.nth(1)?;
        let is_listening = u8::from_str_radix(state, 16).ok()? == LISTEN;
        u16::from_str_radix(port, 16).ok().filter(|_| is_listening)
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
        let ports = listening_ports(Pid(std::process::id()));
        assert!(ports.contains(&address.port()));
        assert!(!ports.contains(&client.local_addr().unwrap().port()));
        drop(listener);
        assert!(!listening_ports(Pid(std::process::id())).contains(&address.port()));
    }

    #[test]
    fn broken_lists_have_no_ports() {
        let list = "  sl  local_address\n 0: x\n 1: 00000000:1538 00000000:0000 0A\n 2: :1 : 0A\n";
        assert_eq!(listening(list).collect::<Vec<_>>(), [0x1538, 1]);
    }
}
