//! `datapath`: an Open vSwitch datapath of the kernel, without Open vSwitch.
//!
//! `datapath COMMAND ARG...` loads the modules that are in the guest, and runs a command. `datapath` alone creates a datapath
//! without flows, sends packets into it, each of which is an upcall, and writes down the kernel's counters.

use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{RecvFlags, netlink};
use rustix::system::finit_module;
use xtask::{DatapathTruth, MODULES, TRUTH_OF_DATAPATH};

use crate::netlink::{Message, Socket, attribute};

/// What the modules are for.
const LOADED: &str = "/sys/module/openvswitch";
/// `MODULE_INIT_COMPRESSED_FILE` of `linux/module.h`: the kernel unpacks it.
const COMPRESSED: i32 = 4;

/// The datapath's own port, with an address for documentation (RFC 5737) and that of all in its net.
const PORT: &str = "dptrace-dp";
const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ALL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 255);
const PREFIX: u8 = 24;

/// How many packets are sent while somebody listens, and then to nobody. The listener reads none until the first are sent,
/// and has room for some only.
const HEARD: u64 = 300;
const UNHEARD: u64 = 7;
const LISTENERS_ROOM: usize = 16 << 10;

/// The controller of generic netlink's families (`linux/genetlink.h`): its own number, `CTRL_CMD_GETFAMILY`,
/// `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`; and the size of the header, which is command, version and two zeros.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GENERIC_HEADER: usize = 4;

/// Datapaths (`linux/openvswitch.h`): `OVS_DATAPATH_FAMILY`, its version, `OVS_DP_CMD_NEW`, `OVS_DP_CMD_DEL` and
/// `OVS_DP_CMD_GET`, `OVS_DP_ATTR_NAME`, `OVS_DP_ATTR_UPCALL_PID`, `OVS_DP_ATTR_STATS`. Behind the generic header stands
/// an interface's number, 0 where it is named.
const DATAPATHS: &str = "ovs_datapath";
const VERSION: u8 = 2;
const NEW: u8 = 1;
const DELETE: u8 = 2;
const GET: u8 = 3;
const NAME: u16 = 1;
const UPCALL_SOCKET: u16 = 2;
const STATISTICS: u16 = 3;

/// Interfaces and their addresses (`linux/rtnetlink.h`, `linux/if_addr.h`): `RTM_NEWLINK`, `RTM_NEWADDR`, `IFA_LOCAL`,
/// `IFA_BROADCAST`, `IFF_UP`, `AF_INET`.
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const LOCAL: u16 = 2;
const BROADCAST: u16 = 4;
const UP: u32 = 1;
const INET: u8 = 2;

/// Loads the modules, in the order of their names, and becomes the command.
pub(crate) fn with_modules(command: &[String]) -> anyhow::Result<()> {
    // On a machine that has Open vSwitch, a datapath of ours would be in the way of what it is there for.
    let Ok(found) = fs::read_dir(MODULES) else {
        eprintln!("error: Open vSwitch's module is loaded in the guests only");
        std::process::exit(3);
    };
    let mut modules: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
    modules.sort();
    if !Path::new(LOADED).exists() {
        for module in &modules {
            let flags = if module.extension().is_some_and(|ending| ending == "xz") { COMPRESSED } else { 0 };
            let file = File::open(module).with_context(|| format!("opening {}", module.display()))?;
            finit_module(file, c"", flags).with_context(|| format!("loading {}", module.display()))?;
        }
    }
    // That of an earlier check is not this one's.
    let _ = fs::remove_file(TRUTH_OF_DATAPATH);
    let (program, arguments) = command.split_first().context("no command")?;
    Err(Command::new(program).args(arguments).exec()).with_context(|| format!("running {program}"))
}

/// Makes a datapath, and sends packets that nobody has a flow for.
pub(crate) fn play() -> anyhow::Result<()> {
    let asking = Socket::open(Some(netlink::GENERIC))?;
    let listening = Socket::open(Some(netlink::GENERIC))?;
    set_socket_recv_buffer_size(listening.fd(), LISTENERS_ROOM).context("making the listener's room small")?;
    let family = family(&asking)?;
    let of_datapaths = |command| Message::new(family, &[command, VERSION, 0, 0, 0, 0, 0, 0]).with_name(NAME, PORT);
    let listener = listening.number()?.to_ne_bytes();
    asking.ask(of_datapaths(NEW).with(UPCALL_SOCKET, &listener), 0).context("making a datapath")?;
    bring_up()?;

    let socket = UdpSocket::bind((OWN, 0)).context("making a socket")?;
    socket.set_broadcast(true).context("permitting a broadcast")?;
    let send = |count: u64| (0..count).try_for_each(|_| socket.send_to(b"who has a flow?", (ALL, 9)).map(|_| ()));
    send(HEARD).context("sending packets")?;
    let received = drain(&listening);
    drop(listening);
    send(UNHEARD).context("sending packets")?;

    let answer = asking.ask(of_datapaths(GET), GENERIC_HEADER + 4).context("asking for statistics")?;
    let (missed, lost) = misses(attribute(&answer, STATISTICS)?)?;
    // A datapath stays when its maker ends.
    asking.ask(of_datapaths(DELETE), 0).context("removing the datapath")?;
    let truth = DatapathTruth { missed, lost, received, unheard: UNHEARD, port: PORT.into() };
    ensure!(truth.missed == HEARD + UNHEARD, "{truth:?}, but {} packets were sent", HEARD + UNHEARD);
    fs::write(TRUTH_OF_DATAPATH, serde_json::to_vec(&truth)?).context("writing the truth")
}

/// The number of the family of datapaths.
fn family(asking: &Socket) -> anyhow::Result<u16> {
    let question = Message::new(CONTROLLER, &[GET_FAMILY, 1, 0, 0]).with_name(FAMILY_NAME, DATAPATHS);
    let answer = asking.ask(question, GENERIC_HEADER).context(DATAPATHS)?;
    Ok(u16::from_ne_bytes(attribute(&answer, FAMILY_ID)?.try_into()?))
}

/// How many packets had no flow, and how many of them nobody got: the second and third number of `struct ovs_dp_stats`.
fn misses(statistics: &[u8]) -> anyhow::Result<(u64, u64)> {
    let number = |at: usize| -> anyhow::Result<u64> {
        let bytes = statistics.get(8 * at..8 * at + 8).context("the statistics are cut off")?;
        Ok(u64::from_ne_bytes(bytes.try_into()?))
    };
    Ok((number(1)?, number(2)?))
}

/// Sets the port's address. IPv6 is off, because it would send additional packets.
fn bring_up() -> anyhow::Result<()> {
    let setting = format!("/proc/sys/net/ipv6/conf/{PORT}/disable_ipv6");
    fs::write(&setting, "1").context(setting)?;
    let interface = format!("/sys/class/net/{PORT}/ifindex");
    let interface: u32 = fs::read_to_string(&interface).context(interface)?.trim().parse()?;
    // Protocol 0 is `NETLINK_ROUTE`.
    let routing = Socket::open(None)?;
    let number = interface.to_ne_bytes();
    // `struct ifaddrmsg`: family, prefix, flags, scope, interface.
    let address = Message::new(NEW_ADDRESS, &[&[INET, PREFIX, 0, 0], &number[..]].concat());
    let address = address.with(LOCAL, &OWN.octets()).with(BROADCAST, &ALL.octets());
    routing.ask(address, 0).context("giving the port an address")?;
    // `struct ifinfomsg`: family and type, interface, flags, which of them change.
    let link = [&[0; 4], &number[..], &UP.to_ne_bytes(), &UP.to_ne_bytes()].concat();
    routing.ask(Message::new(NEW_LINK, &link), 0).context("bringing the port up")?;
    Ok(())
}

/// The number of upcalls that wait. If some were lost, the first call reports that as an error.
fn drain(listening: &Socket) -> u64 {
    let mut received = 0;
    loop {
        match listening.receive(RecvFlags::DONTWAIT) {
            Ok(_) => received += 1,
            Err(rustix::io::Errno::NOBUFS) => {}
            Err(_) => return received,
        }
    }
}
