//! Operations of the compiler that are not written in the language.

use crate::ty::Space;
use bt_abi::Clock;

/// Value computed at run time by a helper or by code of its own. The expression holds the
/// arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Intrinsic {
    Pid,
    Tid,
    /// Process and thread in one word, in the kernel's form.
    PidTid,
    Uid,
    Gid,
    Cpu,
    Comm,
    Now(Clock),
    /// `CLOCK_MONOTONIC_COARSE`, which has no helper of its own in old kernels: jiffies.
    Jiffies,
    CurTask,
    Cgroup,
    Random,
    NumaNode,
    Context,
    /// Address of the probed function (`bpf_get_func_ip`).
    FuncIp,
    /// `str(addr[, length])`: reads a string.
    ReadStr(Space),
    /// `str(bytes[, length])`: cuts a value in memory.
    CutStr,
    /// `buf(addr, length)`
    ReadBuf(Space),
    Stack,
    /// `usym(addr)`
    Usym,
    /// `ntop(number)`
    Inet4,
    /// `ntop(bytes)`: 4 or 16 of them.
    InetBytes,
    /// `ntop(family, value)`
    InetFamily,
    Mac(Space),
    Bswap(u8),
    Signal,
    SignalThread,
    StrLen,
    /// `strcontains(text, part)`
    Contains,
    /// `strstr(text, part)`: the offset of the part, or -1.
    Find,
    /// `str_concat(a, b)`
    Concat,
    /// `memcmp(a, b, count)`
    MemCmp,
    /// `write_user(address, value, count)`: returns whether it worked.
    WriteUser,
    /// True if a perf sample was taken in user code.
    UserMode,
    /// `path(place)`: the full path of a `struct path`.
    Path,
    /// `socket_cookie(socket)`
    SocketCookie,
}
