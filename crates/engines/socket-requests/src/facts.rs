//! Facts of this kernel that the programs need.

use bpf_program::Member;
use sched_programs::{Facts, KernelTypes, SchedError, TaskFacts, member};
use typeinfo::{TypeError, TypeStore};
use uapi::Arch;

use crate::programs;

/// Members of sockets and registers, and tracepoints.
pub(crate) struct SocketFacts {
    /// Members of tasks, and tracepoints.
    pub(crate) kernel: Facts,
    /// Members of sockets.
    pub(crate) sock: SockFacts,
    /// Members of a system call's registers.
    pub(crate) call: CallFacts,
}

/// Members of `struct sock`, and of `struct unix_sock`, which begins with one.
#[derive(Clone, Copy)]
pub(crate) struct SockFacts {
    /// `SOCK_STREAM` and so on. A number of its own since Linux 5.6.
    pub(crate) kind: Member<u16>,
    pub(crate) family: Member<u16>,
    /// `TCP_ESTABLISHED` and so on.
    pub(crate) state: Member<u8>,
    pub(crate) peer4: Member<[u8; 4]>,
    pub(crate) own4: Member<[u8; 4]>,
    pub(crate) peer_port: Member<[u8; 2]>,
    pub(crate) own_port: Member<u16>,
    pub(crate) peer6: Member<[u8; 16]>,
    pub(crate) own6: Member<[u8; 16]>,
    /// Directions that are shut down (`sk_shutdown`). A number of its own since Linux 5.6.
    pub(crate) shutdown: Member<u8>,
    /// Address of a Unix socket, if this kernel has Unix sockets.
    pub(crate) unix_address: Option<Member<u64>>,
}

/// Members of `struct pt_regs`: a system call's number and its second argument.
#[derive(Clone, Copy)]
pub(crate) struct CallFacts {
    pub(crate) number: Member<u64>,
    pub(crate) second: Member<u64>,
}

impl SocketFacts {
    /// Reads the kernel's types, and finds the members in them.
    pub(crate) fn read() -> Result<Self, SchedError> {
        let bytes = KernelTypes::read()?;
        let (types, _) = bytes.parse()?;
        Ok(Self {
            kernel: Facts::find(&types, programs::tracepoints())?,
            sock: SockFacts::find(&types)?,
            call: CallFacts::find(&types)?,
        })
    }

    /// Returns the members of tasks.
    pub(crate) fn task(&self) -> TaskFacts {
        self.kernel.task
    }
}

impl SockFacts {
    fn find(types: &TypeStore<'_>) -> Result<Self, TypeError> {
        Ok(Self {
            kind: member(types, "sock", "sk_type")?,
            family: member(types, "sock", "__sk_common.skc_family")?,
            state: member(types, "sock", "__sk_common.skc_state")?,
            peer4: member(types, "sock", "__sk_common.skc_daddr")?,
            own4: member(types, "sock", "__sk_common.skc_rcv_saddr")?,
            peer_port: member(types, "sock", "__sk_common.skc_dport")?,
            own_port: member(types, "sock", "__sk_common.skc_num")?,
            peer6: member(types, "sock", "__sk_common.skc_v6_daddr")?,
            own6: member(types, "sock", "__sk_common.skc_v6_rcv_saddr")?,
            shutdown: member(types, "sock", "sk_shutdown")?,
            unix_address: member(types, "unix_sock", "addr").ok(),
        })
    }
}

impl CallFacts {
    fn find(types: &TypeStore<'_>) -> Result<Self, TypeError> {
        let [number, second] = match Arch::HOST {
            Arch::X86_64 => ["orig_ax", "si"],
            Arch::Aarch64 => ["syscallno", "regs[1]"],
        };
        Ok(Self {
            number: member(types, "pt_regs", number)?,
            second: member(types, "pt_regs", second)?,
        })
    }
}
