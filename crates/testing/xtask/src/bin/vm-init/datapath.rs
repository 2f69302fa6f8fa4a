//! `datapath`: an Open vSwitch datapath of the kernel, without Open vSwitch.
//!
//! `datapath COMMAND ARG...` loads the guest's modules, and runs a command. `datapath` alone
//! creates a datapath without flows, sends packets into it, each of which is an upcall, and writes
//! down the kernel's counters.

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

/// Folder that exists once the modules are loaded.
const LOADED: &str = "/sys/module/openvswitch";
/// `MODULE_INIT_COMPRESSED_FILE` of `linux/module.h`: the kernel unpacks the module.
const COMPRESSED: i32 = 4;

/// Name of the datapath's own port.
const PORT: &str = "dptrace-dp";
/// Address of the port, from a net for documentation (RFC 5737).
const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Broadcast address of that net.
const ALL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 255);
/// Length of the net's prefix, in bits.
const PREFIX: u8 = 24;

/// Number of packets that are sent while a listener exists. It reads none until all of these are
/// sent.
const HEARD: u64 = 300;
/// Number of packets that are sent when nobody listens.
const UNHEARD: u64 = 7;
/// Size of the listener's buffer in bytes, which holds only some of the packets.
const LISTENER_BUFFER_BYTES: usize = 16 << 10;

/// Number of the controller of generic netlink's families (`linux/genetlink.h`).
const CONTROLLER: u16 = 16;
/// `CTRL_CMD_GETFAMILY`.
const GET_FAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`.
const FAMILY_ID: u16 = 1;
/// `CTRL_ATTR_FAMILY_NAME`.
const FAMILY_NAME: u16 = 2;
/// Size of the generic header: command, version and two zeros.
const GENERIC_HEADER: usize = 4;

/// Name of the family of datapaths, `OVS_DATAPATH_FAMILY` (`linux/openvswitch.h`). In its messages,
/// an interface's number follows the generic header, 0 if a name selects it.
const DATAPATHS: &str = "ovs_datapath";
/// Version of the family.
const VERSION: u8 = 2;
/// `OVS_DP_CMD_NEW`.
const NEW: u8 = 1;
/// `OVS_DP_CMD_DEL`.
const DELETE: u8 = 2;
/// `OVS_DP_CMD_GET`.
const GET: u8 = 3;
/// `OVS_DP_ATTR_NAME`.
const NAME: u16 = 1;
/// `OVS_DP_ATTR_UPCALL_PID`.
const UPCALL_SOCKET: u16 = 2;
/// `OVS_DP_ATTR_STATS`.
const STATISTICS: u16 = 3;

/// `RTM_NEWLINK` (`linux/rtnetlink.h`).
const NEW_LINK: u16 = 16;
/// `RTM_NEWADDR` (`linux/rtnetlink.h`).
const NEW_ADDRESS: u16 = 20;
/// `IFA_LOCAL` (`linux/if_addr.h`).
const LOCAL: u16 = 2;
/// `IFA_BROADCAST` (`linux/if_addr.h`).
const BROADCAST: u16 = 4;
/// `IFF_UP`.
const UP: u32 = 1;
/// `AF_INET`.
const INET: u8 = 2;

/// Loads the modules in the order of their names, and becomes the command.
pub(crate) fn with_modules(command: &[String]) -> anyhow::Result<()> {
    // On a machine with Open vSwitch, our datapath would get in its way.
    let Ok(found) = fs::read_dir(MODULES) else {
        eprintln!("error: Open vSwitch's module is loaded in the guests only");
        std::process::exit(3);
    };
    let mut modules: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
    modules.sort();
    if !Path::new(LOADED).exists() {
        for module in &modules {
            let flags = if module.extension().is_some_and(|ending| ending == "xz") {
                COMPRESSED
            } else {
                0
            };
            let file =
                File::open(module).with_context(|| format!("opening {}", module.display()))?;
            finit_module(file, c"", flags)
                .with_context(|| format!("loading {}", module.display()))?;
        }
    }
    // Removes the truth of an earlier check.
    let _ = fs::remove_file(TRUTH_OF_DATAPATH);
    let (program, arguments) = command.split_first().context("no command")?;
    Err(Command::new(program).args(arguments).exec()).with_context(|| format!("running {program}"))
}

/// Creates a datapath, and sends packets that have no flow.
pub(crate) fn play() -> anyhow::Result<()> {
    let asking = Socket::open(Some(netlink::GENERIC))?;
    let listening = Socket::open(Some(netlink::GENERIC))?;
    set_socket_recv_buffer_size(listening.fd(), LISTENER_BUFFER_BYTES)
        .context("making the listener's room small")?;
    let family = family(&asking)?;
    let of_datapaths =
        |command| Message::new(family, &[command, VERSION, 0, 0, 0, 0, 0, 0]).with_name(NAME, PORT);
    let listener = listening.number()?.to_ne_bytes();
    asking
        .ask(of_datapaths(NEW).with(UPCALL_SOCKET, &listener), 0)
        .context("making a datapath")?;
    bring_up()?;

    let socket = UdpSocket::bind((OWN, 0)).context("making a socket")?;
    socket
        .set_broadcast(true)
        .context("permitting a broadcast")?;
    let send = |count: u64| {
        (0..count).try_for_each(|_| socket.send_to(b"who has a flow?", (ALL, 9)).map(|_| ()))
    };
    send(HEARD).context("sending packets")?;
    let received = drain(&listening);
    drop(listening);
    send(UNHEARD).context("sending packets")?;

    let answer = asking
        .ask(of_datapaths(GET), GENERIC_HEADER + 4)
        .context("asking for statistics")?;
    let (missed, lost) = misses(attribute(&answer, STATISTICS)?)?;
    // A datapath outlives its creator.
    asking
        .ask(of_datapaths(DELETE), 0)
        .context("removing the datapath")?;
    let truth = DatapathTruth {
        missed,
        lost,
        received,
        unheard: UNHEARD,
        port: PORT.into(),
    };
    ensure!(
        truth.missed == HEARD + UNHEARD,
        "{truth:?}, but {} packets were sent",
        HEARD + UNHEARD
    );
    fs::write(TRUTH_OF_DATAPATH, serde_json::to_vec(&truth)?).context("writing the truth")
}

/// Returns the number of the family of datapaths.
fn family(asking: &Socket) -> anyhow::Result<u16> {
    let question =
        Message::new(CONTROLLER, &[GET_FAMILY, 1, 0, 0]).with_name(FAMILY_NAME, DATAPATHS);
    let answer = asking.ask(question, GENERIC_HEADER).context(DATAPATHS)?;
    Ok(u16::from_ne_bytes(
        attribute(&answer, FAMILY_ID)?.try_into()?,
    ))
}

/// Returns the number of packets without a flow, and of those that nobody received: the second and
/// third number of `struct ovs_dp_stats`.
fn misses(statistics: &[u8]) -> anyhow::Result<(u64, u64)> {
    let number = |at: usize| -> anyhow::Result<u64> {
        let bytes = statistics
            .get(8 * at..8 * at + 8)
            .context("the statistics are cut off")?;
        Ok(u64::from_ne_bytes(bytes.try_into()?))
    };
    Ok((number(1)?, number(2)?))
}

/// Sets the port's address and brings the port up. IPv6 is off, because it would send additional
/// packets.
fn bring_up() -> anyhow::Result<()> {
    let setting = format!("/proc/sys/net/ipv6/conf/{PORT}/disable_ipv6");
    fs::write(&setting, "1").context(setting)?;
    let interface = format!("/sys/class/net/{PORT}/ifindex");
    let interface: u32 = fs::read_to_string(&interface)
        .context(interface)?
        .trim()
        .parse()?;
    // Protocol 0 is `NETLINK_ROUTE`.
    let routing = Socket::open(None)?;
    let number = interface.to_ne_bytes();
    // `struct ifaddrmsg`: family, prefix, flags, scope, interface.
    let address = Message::new(NEW_ADDRESS, &[&[INET, PREFIX, 0, 0], &number[..]].concat());
    let address = address
        .with(LOCAL, &OWN.octets())
        .with(BROADCAST, &ALL.octets());
    routing
        .ask(address, 0)
        .context("giving the port an address")?;
    // `struct ifinfomsg`: family and type, interface, flags, mask of the flags to change.
    let link = [&[0; 4], &number[..], &UP.to_ne_bytes(), &UP.to_ne_bytes()].concat();
    routing
        .ask(Message::new(NEW_LINK, &link), 0)
        .context("bringing the port up")?;
    Ok(())
}

/// Drains the waiting upcalls and returns their number. If some were lost, the first call reports
/// that as an error.
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
