//! Constants of C's headers that no type information has, since they are macros. A script that includes a header has them
//! all: headers include one another, and which one has a name differs between the C library and the kernel.

use bt_abi::signals;

/// A header's constants.
type Header = (&'static str, &'static [(&'static str, i64)]);

/// By header: those numbers that x86-64 and arm64 have in common (`include/uapi` of Linux).
#[rustfmt::skip]
const HEADERS: &[Header] = &[
    ("errno.h", &[
        ("EPERM", 1), ("ENOENT", 2), ("ESRCH", 3), ("EINTR", 4), ("EIO", 5), ("ENXIO", 6), ("E2BIG", 7),
        ("ENOEXEC", 8), ("EBADF", 9), ("ECHILD", 10), ("EAGAIN", 11), ("ENOMEM", 12), ("EACCES", 13),
        ("EFAULT", 14), ("ENOTBLK", 15), ("EBUSY", 16), ("EEXIST", 17), ("EXDEV", 18), ("ENODEV", 19),
        ("ENOTDIR", 20), ("EISDIR", 21), ("EINVAL", 22), ("ENFILE", 23), ("EMFILE", 24), ("ENOTTY", 25),
        ("ETXTBSY", 26), ("EFBIG", 27), ("ENOSPC", 28), ("ESPIPE", 29), ("EROFS", 30), ("EMLINK", 31),
        ("EPIPE", 32), ("EDOM", 33), ("ERANGE", 34), ("EDEADLOCK", 35), ("ENAMETOOLONG", 36), ("ENOLCK", 37),
        ("ENOSYS", 38), ("ENOTEMPTY", 39), ("ELOOP", 40), ("ENOMSG", 42), ("EIDRM", 43), ("ECHRNG", 44),
        ("EL2NSYNC", 45), ("EL3HLT", 46), ("EL3RST", 47), ("ELNRNG", 48), ("EUNATCH", 49), ("ENOCSI", 50),
        ("EL2HLT", 51), ("EBADE", 52), ("EBADR", 53), ("EXFULL", 54), ("ENOANO", 55), ("EBADRQC", 56),
        ("EBADSLT", 57), ("EBFONT", 59), ("ENOSTR", 60), ("ENODATA", 61), ("ETIME", 62), ("ENOSR", 63),
        ("ENONET", 64), ("ENOPKG", 65), ("EREMOTE", 66), ("ENOLINK", 67), ("EADV", 68), ("ESRMNT", 69),
        ("ECOMM", 70), ("EPROTO", 71), ("EMULTIHOP", 72), ("EDOTDOT", 73), ("EBADMSG", 74), ("EOVERFLOW", 75),
        ("ENOTUNIQ", 76), ("EBADFD", 77), ("EREMCHG", 78), ("ELIBACC", 79), ("ELIBBAD", 80), ("ELIBSCN", 81),
        ("ELIBMAX", 82), ("ELIBEXEC", 83), ("EILSEQ", 84), ("ERESTART", 85), ("ESTRPIPE", 86), ("EUSERS", 87),
        ("ENOTSOCK", 88), ("EDESTADDRREQ", 89), ("EMSGSIZE", 90), ("EPROTOTYPE", 91), ("ENOPROTOOPT", 92),
        ("EPROTONOSUPPORT", 93), ("ESOCKTNOSUPPORT", 94), ("ENOTSUP", 95), ("EPFNOSUPPORT", 96),
        ("EAFNOSUPPORT", 97), ("EADDRINUSE", 98), ("EADDRNOTAVAIL", 99), ("ENETDOWN", 100), ("ENETUNREACH", 101),
        ("ENETRESET", 102), ("ECONNABORTED", 103), ("ECONNRESET", 104), ("ENOBUFS", 105), ("EISCONN", 106),
        ("ENOTCONN", 107), ("ESHUTDOWN", 108), ("ETOOMANYREFS", 109), ("ETIMEDOUT", 110), ("ECONNREFUSED", 111),
        ("EHOSTDOWN", 112), ("EHOSTUNREACH", 113), ("EALREADY", 114), ("EINPROGRESS", 115), ("ESTALE", 116),
        ("EUCLEAN", 117), ("ENOTNAM", 118), ("ENAVAIL", 119), ("EISNAM", 120), ("EREMOTEIO", 121), ("EDQUOT", 122),
        ("ENOMEDIUM", 123), ("EMEDIUMTYPE", 124), ("ECANCELED", 125), ("ENOKEY", 126), ("EKEYEXPIRED", 127),
        ("EKEYREVOKED", 128), ("EKEYREJECTED", 129), ("EOWNERDEAD", 130), ("ENOTRECOVERABLE", 131),
        ("ERFKILL", 132), ("EWOULDBLOCK", 11),
    ]),
    ("fcntl.h", &[
        ("O_RDONLY", 0), ("O_WRONLY", 1), ("O_RDWR", 2), ("O_ACCMODE", 3), ("O_CREAT", 0o100), ("O_EXCL", 0o200),
        ("O_NOCTTY", 0o400), ("O_TRUNC", 0o1000), ("O_APPEND", 0o2000), ("O_NONBLOCK", 0o4000),
        ("O_DSYNC", 0o10000), ("O_SYNC", 0o4_010_000), ("O_CLOEXEC", 0o2_000_000), ("O_PATH", 0o10_000_000),
        ("O_NOATIME", 0o1_000_000), ("AT_FDCWD", -100),
    ]),
    ("in.h", &[
        ("IPPROTO_IP", 0), ("IPPROTO_ICMP", 1), ("IPPROTO_IGMP", 2), ("IPPROTO_TCP", 6), ("IPPROTO_UDP", 17),
        ("IPPROTO_IPV6", 41), ("IPPROTO_GRE", 47), ("IPPROTO_ESP", 50), ("IPPROTO_AH", 51), ("IPPROTO_ICMPV6", 58),
        ("IPPROTO_SCTP", 132), ("IPPROTO_UDPLITE", 136), ("IPPROTO_RAW", 255),
    ]),
    ("limits.h", &[
        ("NAME_MAX", 255), ("PATH_MAX", 4096), ("PIPE_BUF", 4096), ("CHAR_MAX", 127), ("INT_MAX", 2_147_483_647),
        ("INT_MIN", -2_147_483_648), ("UINT_MAX", 4_294_967_295), ("LONG_MAX", 9_223_372_036_854_775_807),
    ]),
    ("socket.h", &[
        ("AF_UNSPEC", 0), ("AF_UNIX", 1), ("AF_INET", 2), ("AF_INET6", 10), ("AF_NETLINK", 16), ("AF_PACKET", 17),
        ("AF_VSOCK", 40), ("AF_ALG", 38), ("AF_CAN", 29), ("AF_TIPC", 30), ("AF_QIPCRTR", 42), ("AF_LOCAL", 1),
        ("AF_XDP", 44),
    ]),
    ("socket.h", &[
        ("SOCK_STREAM", 1), ("SOCK_DGRAM", 2), ("SOCK_RAW", 3), ("SOCK_RDM", 4), ("SOCK_SEQPACKET", 5),
        ("SOCK_CLOEXEC", 0o2_000_000), ("SOCK_NONBLOCK", 0o4000),
    ]),
    // The kernel's own include/linux/sched.h: states of `task_struct`, the same from 4.14 on, and flags.
    ("sched.h", &[
        ("TASK_RUNNING", 0), ("TASK_INTERRUPTIBLE", 1), ("TASK_UNINTERRUPTIBLE", 2), ("TASK_NORMAL", 3),
        ("__TASK_STOPPED", 4), ("__TASK_TRACED", 8), ("EXIT_DEAD", 0x10), ("EXIT_ZOMBIE", 0x20),
        ("TASK_PARKED", 0x40), ("TASK_DEAD", 0x80), ("TASK_WAKEKILL", 0x100), ("TASK_WAKING", 0x200),
        ("TASK_NOLOAD", 0x400), ("TASK_NEW", 0x800), ("TASK_KILLABLE", 0x102), ("TASK_STOPPED", 0x104),
        ("TASK_IDLE", 0x402), ("PF_IDLE", 2), ("PF_EXITING", 4), ("PF_WQ_WORKER", 0x20), ("PF_KTHREAD", 0x20_0000),
    ]),
    ("stat.h", &[
        ("S_IFMT", 0o170_000), ("S_IFSOCK", 0o140_000), ("S_IFLNK", 0o120_000), ("S_IFREG", 0o100_000),
        ("S_IFBLK", 0o60000), ("S_IFDIR", 0o40000), ("S_IFCHR", 0o20000), ("S_IFIFO", 0o10000), ("S_ISUID", 0o4000),
        ("S_ISGID", 0o2000), ("S_ISVTX", 0o1000),
    ]),
];

/// The number of a constant, and the header that has it.
pub(crate) fn find(name: &str) -> Option<(&'static str, i64)> {
    if let Some(number) = name.strip_prefix("SIG").and_then(signals::number) {
        return Some(("signal.h", number.cast_signed()));
    }
    HEADERS.iter().find_map(|(header, names)| {
        names.iter().find(|(known, _)| *known == name).map(|(_, number)| (*header, *number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_by_name() {
        assert_eq!(find("EPERM"), Some(("errno.h", 1)));
        assert_eq!(find("SIGKILL"), Some(("signal.h", 9)));
        assert_eq!(find("O_CREAT"), Some(("fcntl.h", 0o100)));
        assert_eq!(find("EPER"), None);
    }

    #[test]
    fn no_name_is_there_twice() {
        let mut names: Vec<&str> = HEADERS.iter().flat_map(|(_, names)| names.iter().map(|(name, _)| *name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
