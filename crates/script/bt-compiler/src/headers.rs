//! Constants of C's headers that are macros and therefore in no type information. A script that
//! includes any header has them all: headers include one another, and the C library and the kernel
//! define a name in different headers.

use bt_abi::signals;

/// Constants of a header.
type Header = (&'static str, &'static [(&'static str, i64)]);

/// Constants by header. They are the numbers that x86-64 and arm64 have in common (`include/uapi`
/// of Linux).
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
    // Those of the kernel's own include/linux/sched.h: states of `task_struct`, the same from 4.14
    // on, and flags.
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
    ("mman.h", &[
        ("MADV_NORMAL", 0), ("MADV_RANDOM", 1), ("MADV_SEQUENTIAL", 2), ("MADV_WILLNEED", 3), ("MADV_DONTNEED", 4),
        ("MADV_FREE", 8), ("MADV_REMOVE", 9), ("MADV_DONTFORK", 10), ("MADV_DOFORK", 11), ("MADV_MERGEABLE", 12),
        ("MADV_UNMERGEABLE", 13), ("MADV_HUGEPAGE", 14), ("MADV_NOHUGEPAGE", 15), ("MADV_DONTDUMP", 16),
        ("MADV_DODUMP", 17), ("MADV_WIPEONFORK", 18), ("MADV_KEEPONFORK", 19), ("MADV_COLD", 20), ("MADV_PAGEOUT", 21),
        ("MADV_POPULATE_READ", 22), ("MADV_POPULATE_WRITE", 23), ("MADV_DONTNEED_LOCKED", 24), ("MADV_COLLAPSE", 25),
        ("MADV_HWPOISON", 100), ("MADV_SOFT_OFFLINE", 101), ("MAP_SHARED", 1), ("MAP_PRIVATE", 2),
        ("MAP_SHARED_VALIDATE", 3), ("MAP_TYPE", 15), ("MAP_FIXED", 16), ("MAP_ANON", 32), ("MAP_ANONYMOUS", 32),
        ("MAP_GROWSDOWN", 256), ("MAP_DENYWRITE", 2048), ("MAP_LOCKED", 8192), ("MAP_NORESERVE", 16384),
        ("MAP_POPULATE", 32768), ("MAP_NONBLOCK", 65536), ("MAP_STACK", 131_072), ("MAP_HUGETLB", 262_144),
        ("MAP_SYNC", 524_288), ("MAP_FIXED_NOREPLACE", 1_048_576), ("MCL_CURRENT", 1), ("MCL_FUTURE", 2),
        ("MCL_ONFAULT", 4), ("MFD_CLOEXEC", 1), ("MFD_ALLOW_SEALING", 2), ("MFD_HUGETLB", 4), ("MREMAP_MAYMOVE", 1),
        ("MREMAP_FIXED", 2), ("MREMAP_DONTUNMAP", 4), ("MS_ASYNC", 1), ("MS_INVALIDATE", 2), ("MS_SYNC", 4),
        ("PROT_NONE", 0), ("PROT_READ", 1), ("PROT_WRITE", 2), ("PROT_EXEC", 4),
    ]),
    ("if_ether.h", &[
        ("ETH_P_802_3", 1), ("ETH_P_ALL", 3), ("ETH_P_802_2", 4), ("ETH_FCS_LEN", 4), ("ETH_ALEN", 6),
        ("ETH_P_CAN", 12), ("ETH_P_CANFD", 13), ("ETH_HLEN", 14), ("ETH_ZLEN", 60), ("ETH_P_LOOP", 96),
        ("ETH_P_PUP", 512), ("ETH_DATA_LEN", 1500), ("ETH_FRAME_LEN", 1514), ("ETH_P_IP", 2048), ("ETH_P_X25", 2053),
        ("ETH_P_ARP", 2054), ("ETH_P_ERSPAN2", 8939), ("ETH_P_BATMAN", 17157), ("ETH_P_TEB", 25944),
        ("ETH_P_RARP", 32821), ("ETH_P_8021Q", 33024), ("ETH_P_IPX", 33079), ("ETH_P_IPV6", 34525),
        ("ETH_P_PAUSE", 34824), ("ETH_P_SLOW", 34825), ("ETH_P_MPLS_UC", 34887), ("ETH_P_MPLS_MC", 34888),
        ("ETH_P_PPP_DISC", 34915), ("ETH_P_PPP_SES", 34916), ("ETH_P_PAE", 34958), ("ETH_P_PROFINET", 34962),
        ("ETH_P_AOE", 34978), ("ETH_P_ETHERCAT", 34980), ("ETH_P_8021AD", 34984), ("ETH_P_ERSPAN", 35006),
        ("ETH_P_TIPC", 35018), ("ETH_P_LLDP", 35020), ("ETH_P_MACSEC", 35045), ("ETH_P_1588", 35063),
        ("ETH_P_FCOE", 35078), ("ETH_P_FIP", 35092), ("ETH_P_IBOE", 35093), ("ETH_P_NSH", 35151),
        ("ETH_P_LOOPBACK", 36864),
    ]),
    ("poll.h", &[
        ("POLLERR", 8), ("POLLHUP", 16), ("POLLIN", 1), ("POLLMSG", 1024), ("POLLNVAL", 32), ("POLLOUT", 4),
        ("POLLPRI", 2), ("POLLRDBAND", 128), ("POLLRDHUP", 8192), ("POLLRDNORM", 64), ("POLLWRBAND", 512),
        ("POLLWRNORM", 256),
    ]),
    ("epoll.h", &[
        ("EPOLL_CTL_ADD", 1), ("EPOLL_CTL_DEL", 2), ("EPOLL_CTL_MOD", 3),
    ]),
    ("wait.h", &[
        ("WCONTINUED", 8), ("WEXITED", 4), ("WNOHANG", 1), ("WNOWAIT", 16_777_216), ("WSTOPPED", 2), ("WUNTRACED", 2),
    ]),
    ("linux/sched.h", &[
        ("CLONE_NEWTIME", 128), ("CLONE_VM", 256), ("CLONE_FS", 512), ("CLONE_FILES", 1024), ("CLONE_SIGHAND", 2048),
        ("CLONE_PIDFD", 4096), ("CLONE_PTRACE", 8192), ("CLONE_VFORK", 16384), ("CLONE_PARENT", 32768),
        ("CLONE_THREAD", 65536), ("CLONE_NEWNS", 131_072), ("CLONE_SYSVSEM", 262_144), ("CLONE_SETTLS", 524_288),
        ("CLONE_PARENT_SETTID", 1_048_576), ("CLONE_CHILD_CLEARTID", 2_097_152), ("CLONE_DETACHED", 4_194_304),
        ("CLONE_UNTRACED", 8_388_608), ("CLONE_CHILD_SETTID", 16_777_216), ("CLONE_NEWCGROUP", 33_554_432),
        ("CLONE_NEWUTS", 67_108_864), ("CLONE_NEWIPC", 134_217_728), ("CLONE_NEWUSER", 268_435_456),
        ("CLONE_NEWPID", 536_870_912), ("CLONE_NEWNET", 1_073_741_824), ("CLONE_IO", 2_147_483_648),
        ("CLONE_CLEAR_SIGHAND", 4_294_967_296), ("CLONE_INTO_CGROUP", 8_589_934_592), ("SCHED_NORMAL", 0),
        ("SCHED_FIFO", 1), ("SCHED_RR", 2), ("SCHED_BATCH", 3), ("SCHED_IDLE", 5), ("SCHED_DEADLINE", 6),
        ("SCHED_RESET_ON_FORK", 1_073_741_824),
    ]),
    ("fcntl.h", &[
        ("AT_SYMLINK_NOFOLLOW", 256), ("AT_REMOVEDIR", 512), ("AT_EACCESS", 512), ("AT_SYMLINK_FOLLOW", 1024),
        ("AT_NO_AUTOMOUNT", 2048), ("AT_EMPTY_PATH", 4096), ("AT_RECURSIVE", 32768), ("F_RDLCK", 0), ("F_DUPFD", 0),
        ("F_GETFD", 1), ("F_WRLCK", 1), ("F_UNLCK", 2), ("F_SETFD", 2), ("F_GETFL", 3), ("F_SETFL", 4), ("F_GETLK", 5),
        ("F_SETLK", 6), ("F_SETLKW", 7), ("F_SETOWN", 8), ("F_GETOWN", 9), ("F_SETSIG", 10), ("F_GETSIG", 11),
        ("F_OFD_GETLK", 36), ("F_OFD_SETLK", 37), ("F_OFD_SETLKW", 38), ("F_SETLEASE", 1024), ("F_GETLEASE", 1025),
        ("F_NOTIFY", 1026), ("F_DUPFD_CLOEXEC", 1030), ("F_SETPIPE_SZ", 1031), ("F_GETPIPE_SZ", 1032),
        ("F_ADD_SEALS", 1033), ("F_GET_SEALS", 1034),
    ]),
    ("stat.h", &[
        ("S_IXOTH", 1), ("S_IWOTH", 2), ("S_IROTH", 4), ("S_IRWXO", 7), ("S_IXGRP", 8), ("S_IWGRP", 16),
        ("S_IRGRP", 32), ("S_IRWXG", 56), ("S_IXUSR", 64), ("S_IWUSR", 128), ("S_IRUSR", 256), ("S_IRWXU", 448),
    ]),
    ("unistd.h", &[
        ("F_OK", 0), ("R_OK", 4), ("SEEK_SET", 0), ("SEEK_CUR", 1), ("SEEK_END", 2), ("SEEK_DATA", 3), ("SEEK_HOLE", 4),
        ("W_OK", 2), ("X_OK", 1),
    ]),
    ("if.h", &[
        ("IFF_UP", 1), ("IFF_BROADCAST", 2), ("IFF_LOOPBACK", 8), ("IFF_POINTOPOINT", 16), ("IFF_RUNNING", 64),
        ("IFF_NOARP", 128), ("IFF_PROMISC", 256), ("IFF_ALLMULTI", 512), ("IFF_MULTICAST", 4096), ("IFNAMSIZ", 16),
    ]),
    ("netlink.h", &[
        ("NETLINK_ROUTE", 0), ("NETLINK_USERSOCK", 2), ("NETLINK_SOCK_DIAG", 4), ("NETLINK_NFLOG", 5),
        ("NETLINK_XFRM", 6), ("NETLINK_SELINUX", 7), ("NETLINK_ISCSI", 8), ("NETLINK_AUDIT", 9),
        ("NETLINK_CONNECTOR", 11), ("NETLINK_NETFILTER", 12), ("NETLINK_KOBJECT_UEVENT", 15), ("NETLINK_GENERIC", 16),
        ("NETLINK_RDMA", 20), ("NETLINK_CRYPTO", 21),
    ]),
    ("tcp.h", &[
        ("SOL_TCP", 6), ("TCP_NODELAY", 1), ("TCP_MAXSEG", 2), ("TCP_CORK", 3), ("TCP_KEEPIDLE", 4),
        ("TCP_DEFER_ACCEPT", 9), ("TCP_INFO", 11), ("TCP_CONGESTION", 13), ("TCP_FASTOPEN", 23),
    ]),
    ("socket.h", &[
        ("AF_AX25", 3), ("AF_BRIDGE", 7), ("AF_X25", 9), ("AF_KEY", 15), ("AF_ROUTE", 16), ("AF_RDS", 21),
        ("AF_PPPOX", 24), ("AF_LLC", 26), ("AF_IB", 27), ("AF_MPLS", 28), ("AF_BLUETOOTH", 31), ("AF_NFC", 39),
        ("AF_KCM", 41), ("AF_SMC", 43), ("MSG_OOB", 1), ("MSG_PEEK", 2), ("MSG_DONTROUTE", 4), ("MSG_TRUNC", 32),
        ("MSG_DONTWAIT", 64), ("MSG_EOR", 128), ("MSG_WAITALL", 256), ("MSG_FIN", 512), ("MSG_SYN", 1024),
        ("MSG_RST", 4096), ("MSG_ERRQUEUE", 8192), ("MSG_NOSIGNAL", 16384), ("MSG_MORE", 32768),
        ("MSG_ZEROCOPY", 67_108_864), ("MSG_FASTOPEN", 536_870_912), ("MSG_CMSG_CLOEXEC", 1_073_741_824),
        ("PF_UNSPEC", 0), ("PF_UNIX", 1), ("PF_LOCAL", 1), ("PF_INET", 2), ("PF_INET6", 10), ("PF_NETLINK", 16),
        ("PF_PACKET", 17), ("SHUT_RD", 0), ("SHUT_WR", 1), ("SHUT_RDWR", 2), ("SO_DEBUG", 1), ("SO_REUSEADDR", 2),
        ("SO_TYPE", 3), ("SO_ERROR", 4), ("SO_BROADCAST", 6), ("SO_SNDBUF", 7), ("SO_RCVBUF", 8), ("SO_KEEPALIVE", 9),
        ("SO_PRIORITY", 12), ("SO_LINGER", 13), ("SO_REUSEPORT", 15), ("SO_BINDTODEVICE", 25), ("SO_MARK", 36),
        ("SO_ZEROCOPY", 60), ("SOL_SOCKET", 1),
    ]),
    ("futex.h", &[
        ("FUTEX_CMD_MASK", -385), ("FUTEX_WAIT", 0), ("FUTEX_WAKE", 1), ("FUTEX_FD", 2), ("FUTEX_REQUEUE", 3),
        ("FUTEX_CMP_REQUEUE", 4), ("FUTEX_WAKE_OP", 5), ("FUTEX_LOCK_PI", 6), ("FUTEX_UNLOCK_PI", 7),
        ("FUTEX_TRYLOCK_PI", 8), ("FUTEX_WAIT_BITSET", 9), ("FUTEX_WAKE_BITSET", 10), ("FUTEX_WAIT_REQUEUE_PI", 11),
        ("FUTEX_CMP_REQUEUE_PI", 12), ("FUTEX_PRIVATE_FLAG", 128), ("FUTEX_CLOCK_REALTIME", 256),
        ("FUTEX_TID_MASK", 1_073_741_823), ("FUTEX_OWNER_DIED", 1_073_741_824), ("FUTEX_WAITERS", 2_147_483_648),
    ]),
    ("mount.h", &[
        ("MNT_FORCE", 1), ("MNT_DETACH", 2), ("MNT_EXPIRE", 4), ("MS_RDONLY", 1), ("MS_NOSUID", 2), ("MS_NODEV", 4),
        ("MS_NOEXEC", 8), ("MS_SYNCHRONOUS", 16), ("MS_REMOUNT", 32), ("MS_MANDLOCK", 64), ("MS_DIRSYNC", 128),
        ("MS_NOATIME", 1024), ("MS_NODIRATIME", 2048), ("MS_BIND", 4096), ("MS_MOVE", 8192), ("MS_REC", 16384),
        ("MS_SILENT", 32768), ("MS_POSIXACL", 65536), ("MS_UNBINDABLE", 131_072), ("MS_PRIVATE", 262_144),
        ("MS_SLAVE", 524_288), ("MS_SHARED", 1_048_576), ("MS_RELATIME", 2_097_152), ("MS_STRICTATIME", 16_777_216),
        ("MS_LAZYTIME", 33_554_432),
    ]),
    ("time.h", &[
        ("CLOCK_REALTIME", 0), ("CLOCK_MONOTONIC", 1), ("CLOCK_PROCESS_CPUTIME_ID", 2), ("CLOCK_THREAD_CPUTIME_ID", 3),
        ("CLOCK_MONOTONIC_RAW", 4), ("CLOCK_REALTIME_COARSE", 5), ("CLOCK_MONOTONIC_COARSE", 6), ("CLOCK_BOOTTIME", 7),
        ("CLOCK_TAI", 11),
    ]),
    ("capability.h", &[
        ("CAP_CHOWN", 0), ("CAP_DAC_OVERRIDE", 1), ("CAP_DAC_READ_SEARCH", 2), ("CAP_FOWNER", 3), ("CAP_FSETID", 4),
        ("CAP_KILL", 5), ("CAP_SETGID", 6), ("CAP_SETUID", 7), ("CAP_SETPCAP", 8), ("CAP_LINUX_IMMUTABLE", 9),
        ("CAP_NET_BIND_SERVICE", 10), ("CAP_NET_BROADCAST", 11), ("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13),
        ("CAP_IPC_LOCK", 14), ("CAP_IPC_OWNER", 15), ("CAP_SYS_MODULE", 16), ("CAP_SYS_RAWIO", 17),
        ("CAP_SYS_CHROOT", 18), ("CAP_SYS_PTRACE", 19), ("CAP_SYS_PACCT", 20), ("CAP_SYS_ADMIN", 21),
        ("CAP_SYS_BOOT", 22), ("CAP_SYS_NICE", 23), ("CAP_SYS_RESOURCE", 24), ("CAP_SYS_TIME", 25),
        ("CAP_SYS_TTY_CONFIG", 26), ("CAP_MKNOD", 27), ("CAP_LEASE", 28), ("CAP_AUDIT_WRITE", 29),
        ("CAP_AUDIT_CONTROL", 30), ("CAP_SETFCAP", 31), ("CAP_MAC_OVERRIDE", 32), ("CAP_MAC_ADMIN", 33),
        ("CAP_SYSLOG", 34), ("CAP_WAKE_ALARM", 35), ("CAP_BLOCK_SUSPEND", 36), ("CAP_AUDIT_READ", 37),
        ("CAP_PERFMON", 38), ("CAP_BPF", 39), ("CAP_CHECKPOINT_RESTORE", 40), ("CAP_LAST_CAP", 40),
    ]),
    ("in.h", &[
        ("INADDR_ANY", 0), ("INADDR_LOOPBACK", 2_130_706_433), ("IPPROTO_HOPOPTS", 0), ("IPPROTO_IPIP", 4),
        ("IPPROTO_EGP", 8), ("IPPROTO_DCCP", 33), ("IPPROTO_ROUTING", 43), ("IPPROTO_FRAGMENT", 44),
        ("IPPROTO_NONE", 59), ("IPPROTO_DSTOPTS", 60), ("IPPROTO_ENCAP", 98), ("IPPROTO_PIM", 103),
        ("IPPROTO_COMP", 108), ("IPPROTO_MPLS", 137), ("IPPROTO_MPTCP", 262),
    ]),
];

/// Finds a constant; returns its header and its number.
pub(crate) fn find(name: &str) -> Option<(&'static str, i64)> {
    if let Some(number) = name.strip_prefix("SIG").and_then(signals::number) {
        return Some(("signal.h", number.cast_signed()));
    }
    HEADERS.iter().find_map(|(header, names)| {
        names
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, number)| (*header, *number))
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
        let mut names: Vec<&str> = HEADERS
            .iter()
            .flat_map(|(_, names)| names.iter().map(|(name, _)| *name))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
