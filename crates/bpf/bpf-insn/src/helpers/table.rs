//! The list of helpers: one line each, `NAME = number, name` and, for those that a tracer can use,
//! the first Linux release that has it.
//!
//! Numbers and names are `enum bpf_func_id` of `linux/bpf.h` (`___BPF_FUNC_MAPPER`), which is ABI:
//! a number never changes. The enum is complete: since 6.2 the kernel adds kfuncs instead of
//! helpers. A test compares this list with the machine's header. The releases are those whose
//! `linux/bpf.h` first has the name.

use super::{Entry, Helper};
use uapi::KernelVersion;

/// Expands to a line's release, if it has one.
macro_rules! since {
    () => {
        None
    };
    ($major:literal $minor:literal) => {
        Some(KernelVersion::new($major, $minor))
    };
}

/// Expands the list below to the constants and the table.
macro_rules! helpers {
    ($($constant:ident = $id:literal, $name:ident $(, $major:literal $minor:literal)?;)*) => {
        impl Helper {
            $(
                #[doc = concat!("`bpf_", stringify!($name), "`", $(", since Linux ", $major, ".", $minor,)? ".")]
                pub const $constant: Self = Self($id);
            )*
        }

        /// Table of all helpers, by number from 1 on, without gaps.
        pub(super) const TABLE: &[Entry] = &[
            $(Entry {
                id: $id,
                name: concat!("bpf_", stringify!($name)),
                since: since!($($major $minor)?),
            },)*
        ];
    };
}

helpers! {
    MAP_LOOKUP_ELEM = 1, map_lookup_elem, 3 19;
    MAP_UPDATE_ELEM = 2, map_update_elem, 3 19;
    MAP_DELETE_ELEM = 3, map_delete_elem, 3 19;
    PROBE_READ = 4, probe_read, 4 1;
    KTIME_GET_NS = 5, ktime_get_ns, 4 1;
    TRACE_PRINTK = 6, trace_printk, 4 1;
    GET_PRANDOM_U32 = 7, get_prandom_u32, 4 1;
    GET_SMP_PROCESSOR_ID = 8, get_smp_processor_id, 4 1;
    SKB_STORE_BYTES = 9, skb_store_bytes;
    L3_CSUM_REPLACE = 10, l3_csum_replace;
    L4_CSUM_REPLACE = 11, l4_csum_replace;
    TAIL_CALL = 12, tail_call, 4 2;
    CLONE_REDIRECT = 13, clone_redirect;
    GET_CURRENT_PID_TGID = 14, get_current_pid_tgid, 4 2;
    GET_CURRENT_UID_GID = 15, get_current_uid_gid, 4 2;
    GET_CURRENT_COMM = 16, get_current_comm, 4 2;
    GET_CGROUP_CLASSID = 17, get_cgroup_classid;
    SKB_VLAN_PUSH = 18, skb_vlan_push;
    SKB_VLAN_POP = 19, skb_vlan_pop;
    SKB_GET_TUNNEL_KEY = 20, skb_get_tunnel_key;
    SKB_SET_TUNNEL_KEY = 21, skb_set_tunnel_key;
    PERF_EVENT_READ = 22, perf_event_read, 4 3;
    REDIRECT = 23, redirect;
    GET_ROUTE_REALM = 24, get_route_realm;
    PERF_EVENT_OUTPUT = 25, perf_event_output, 4 4;
    SKB_LOAD_BYTES = 26, skb_load_bytes;
    GET_STACKID = 27, get_stackid, 4 6;
    CSUM_DIFF = 28, csum_diff;
    SKB_GET_TUNNEL_OPT = 29, skb_get_tunnel_opt;
    SKB_SET_TUNNEL_OPT = 30, skb_set_tunnel_opt;
    SKB_CHANGE_PROTO = 31, skb_change_proto;
    SKB_CHANGE_TYPE = 32, skb_change_type;
    SKB_UNDER_CGROUP = 33, skb_under_cgroup;
    GET_HASH_RECALC = 34, get_hash_recalc;
    GET_CURRENT_TASK = 35, get_current_task, 4 8;
    PROBE_WRITE_USER = 36, probe_write_user, 4 8;
    CURRENT_TASK_UNDER_CGROUP = 37, current_task_under_cgroup, 4 9;
    SKB_CHANGE_TAIL = 38, skb_change_tail;
    SKB_PULL_DATA = 39, skb_pull_data;
    CSUM_UPDATE = 40, csum_update;
    SET_HASH_INVALID = 41, set_hash_invalid;
    GET_NUMA_NODE_ID = 42, get_numa_node_id, 4 10;
    SKB_CHANGE_HEAD = 43, skb_change_head;
    XDP_ADJUST_HEAD = 44, xdp_adjust_head;
    PROBE_READ_STR = 45, probe_read_str, 4 11;
    GET_SOCKET_COOKIE = 46, get_socket_cookie;
    GET_SOCKET_UID = 47, get_socket_uid;
    SET_HASH = 48, set_hash;
    SETSOCKOPT = 49, setsockopt;
    SKB_ADJUST_ROOM = 50, skb_adjust_room;
    REDIRECT_MAP = 51, redirect_map;
    SK_REDIRECT_MAP = 52, sk_redirect_map;
    SOCK_MAP_UPDATE = 53, sock_map_update;
    XDP_ADJUST_META = 54, xdp_adjust_meta;
    PERF_EVENT_READ_VALUE = 55, perf_event_read_value, 4 15;
    PERF_PROG_READ_VALUE = 56, perf_prog_read_value, 4 15;
    GETSOCKOPT = 57, getsockopt;
    OVERRIDE_RETURN = 58, override_return, 4 16;
    SOCK_OPS_CB_FLAGS_SET = 59, sock_ops_cb_flags_set;
    MSG_REDIRECT_MAP = 60, msg_redirect_map;
    MSG_APPLY_BYTES = 61, msg_apply_bytes;
    MSG_CORK_BYTES = 62, msg_cork_bytes;
    MSG_PULL_DATA = 63, msg_pull_data;
    BIND = 64, bind;
    XDP_ADJUST_TAIL = 65, xdp_adjust_tail;
    SKB_GET_XFRM_STATE = 66, skb_get_xfrm_state;
    GET_STACK = 67, get_stack, 4 18;
    SKB_LOAD_BYTES_RELATIVE = 68, skb_load_bytes_relative;
    FIB_LOOKUP = 69, fib_lookup;
    SOCK_HASH_UPDATE = 70, sock_hash_update;
    MSG_REDIRECT_HASH = 71, msg_redirect_hash;
    SK_REDIRECT_HASH = 72, sk_redirect_hash;
    LWT_PUSH_ENCAP = 73, lwt_push_encap;
    LWT_SEG6_STORE_BYTES = 74, lwt_seg6_store_bytes;
    LWT_SEG6_ADJUST_SRH = 75, lwt_seg6_adjust_srh;
    LWT_SEG6_ACTION = 76, lwt_seg6_action;
    RC_REPEAT = 77, rc_repeat;
    RC_KEYDOWN = 78, rc_keydown;
    SKB_CGROUP_ID = 79, skb_cgroup_id;
    GET_CURRENT_CGROUP_ID = 80, get_current_cgroup_id, 4 18;
    GET_LOCAL_STORAGE = 81, get_local_storage;
    SK_SELECT_REUSEPORT = 82, sk_select_reuseport;
    SKB_ANCESTOR_CGROUP_ID = 83, skb_ancestor_cgroup_id;
    SK_LOOKUP_TCP = 84, sk_lookup_tcp;
    SK_LOOKUP_UDP = 85, sk_lookup_udp;
    SK_RELEASE = 86, sk_release;
    MAP_PUSH_ELEM = 87, map_push_elem, 4 20;
    MAP_POP_ELEM = 88, map_pop_elem, 4 20;
    MAP_PEEK_ELEM = 89, map_peek_elem, 4 20;
    MSG_PUSH_DATA = 90, msg_push_data;
    MSG_POP_DATA = 91, msg_pop_data;
    RC_POINTER_REL = 92, rc_pointer_rel;
    SPIN_LOCK = 93, spin_lock, 5 1;
    SPIN_UNLOCK = 94, spin_unlock, 5 1;
    SK_FULLSOCK = 95, sk_fullsock;
    TCP_SOCK = 96, tcp_sock;
    SKB_ECN_SET_CE = 97, skb_ecn_set_ce;
    GET_LISTENER_SOCK = 98, get_listener_sock;
    SKC_LOOKUP_TCP = 99, skc_lookup_tcp;
    TCP_CHECK_SYNCOOKIE = 100, tcp_check_syncookie;
    SYSCTL_GET_NAME = 101, sysctl_get_name;
    SYSCTL_GET_CURRENT_VALUE = 102, sysctl_get_current_value;
    SYSCTL_GET_NEW_VALUE = 103, sysctl_get_new_value;
    SYSCTL_SET_NEW_VALUE = 104, sysctl_set_new_value;
    STRTOL = 105, strtol, 5 2;
    STRTOUL = 106, strtoul, 5 2;
    SK_STORAGE_GET = 107, sk_storage_get;
    SK_STORAGE_DELETE = 108, sk_storage_delete;
    SEND_SIGNAL = 109, send_signal, 5 3;
    TCP_GEN_SYNCOOKIE = 110, tcp_gen_syncookie;
    SKB_OUTPUT = 111, skb_output;
    PROBE_READ_USER = 112, probe_read_user, 5 5;
    PROBE_READ_KERNEL = 113, probe_read_kernel, 5 5;
    PROBE_READ_USER_STR = 114, probe_read_user_str, 5 5;
    PROBE_READ_KERNEL_STR = 115, probe_read_kernel_str, 5 5;
    TCP_SEND_ACK = 116, tcp_send_ack;
    SEND_SIGNAL_THREAD = 117, send_signal_thread, 5 6;
    JIFFIES64 = 118, jiffies64, 5 6;
    READ_BRANCH_RECORDS = 119, read_branch_records, 5 6;
    GET_NS_CURRENT_PID_TGID = 120, get_ns_current_pid_tgid, 5 7;
    XDP_OUTPUT = 121, xdp_output;
    GET_NETNS_COOKIE = 122, get_netns_cookie;
    GET_CURRENT_ANCESTOR_CGROUP_ID = 123, get_current_ancestor_cgroup_id, 5 7;
    SK_ASSIGN = 124, sk_assign;
    KTIME_GET_BOOT_NS = 125, ktime_get_boot_ns, 5 8;
    SEQ_PRINTF = 126, seq_printf, 5 7;
    SEQ_WRITE = 127, seq_write, 5 7;
    SK_CGROUP_ID = 128, sk_cgroup_id;
    SK_ANCESTOR_CGROUP_ID = 129, sk_ancestor_cgroup_id;
    RINGBUF_OUTPUT = 130, ringbuf_output, 5 8;
    RINGBUF_RESERVE = 131, ringbuf_reserve, 5 8;
    RINGBUF_SUBMIT = 132, ringbuf_submit, 5 8;
    RINGBUF_DISCARD = 133, ringbuf_discard, 5 8;
    RINGBUF_QUERY = 134, ringbuf_query, 5 8;
    CSUM_LEVEL = 135, csum_level;
    SKC_TO_TCP6_SOCK = 136, skc_to_tcp6_sock;
    SKC_TO_TCP_SOCK = 137, skc_to_tcp_sock;
    SKC_TO_TCP_TIMEWAIT_SOCK = 138, skc_to_tcp_timewait_sock;
    SKC_TO_TCP_REQUEST_SOCK = 139, skc_to_tcp_request_sock;
    SKC_TO_UDP6_SOCK = 140, skc_to_udp6_sock;
    GET_TASK_STACK = 141, get_task_stack, 5 9;
    LOAD_HDR_OPT = 142, load_hdr_opt;
    STORE_HDR_OPT = 143, store_hdr_opt;
    RESERVE_HDR_OPT = 144, reserve_hdr_opt;
    INODE_STORAGE_GET = 145, inode_storage_get;
    INODE_STORAGE_DELETE = 146, inode_storage_delete;
    D_PATH = 147, d_path, 5 10;
    COPY_FROM_USER = 148, copy_from_user, 5 10;
    SNPRINTF_BTF = 149, snprintf_btf, 5 10;
    SEQ_PRINTF_BTF = 150, seq_printf_btf, 5 10;
    SKB_CGROUP_CLASSID = 151, skb_cgroup_classid;
    REDIRECT_NEIGH = 152, redirect_neigh;
    PER_CPU_PTR = 153, per_cpu_ptr, 5 10;
    THIS_CPU_PTR = 154, this_cpu_ptr, 5 10;
    REDIRECT_PEER = 155, redirect_peer;
    TASK_STORAGE_GET = 156, task_storage_get, 5 11;
    TASK_STORAGE_DELETE = 157, task_storage_delete, 5 11;
    GET_CURRENT_TASK_BTF = 158, get_current_task_btf, 5 11;
    BPRM_OPTS_SET = 159, bprm_opts_set;
    KTIME_GET_COARSE_NS = 160, ktime_get_coarse_ns, 5 11;
    IMA_INODE_HASH = 161, ima_inode_hash;
    SOCK_FROM_FILE = 162, sock_from_file;
    CHECK_MTU = 163, check_mtu;
    FOR_EACH_MAP_ELEM = 164, for_each_map_elem, 5 13;
    SNPRINTF = 165, snprintf, 5 13;
    SYS_BPF = 166, sys_bpf;
    BTF_FIND_BY_NAME_KIND = 167, btf_find_by_name_kind, 5 14;
    SYS_CLOSE = 168, sys_close;
    TIMER_INIT = 169, timer_init, 5 15;
    TIMER_SET_CALLBACK = 170, timer_set_callback, 5 15;
    TIMER_START = 171, timer_start, 5 15;
    TIMER_CANCEL = 172, timer_cancel, 5 15;
    GET_FUNC_IP = 173, get_func_ip, 5 15;
    GET_ATTACH_COOKIE = 174, get_attach_cookie, 5 15;
    TASK_PT_REGS = 175, task_pt_regs, 5 15;
    GET_BRANCH_SNAPSHOT = 176, get_branch_snapshot, 5 16;
    TRACE_VPRINTK = 177, trace_vprintk, 5 16;
    SKC_TO_UNIX_SOCK = 178, skc_to_unix_sock;
    KALLSYMS_LOOKUP_NAME = 179, kallsyms_lookup_name, 5 16;
    FIND_VMA = 180, find_vma, 5 17;
    LOOP = 181, loop, 5 17;
    STRNCMP = 182, strncmp, 5 17;
    GET_FUNC_ARG = 183, get_func_arg, 5 17;
    GET_FUNC_RET = 184, get_func_ret, 5 17;
    GET_FUNC_ARG_CNT = 185, get_func_arg_cnt, 5 17;
    GET_RETVAL = 186, get_retval;
    SET_RETVAL = 187, set_retval;
    XDP_GET_BUFF_LEN = 188, xdp_get_buff_len;
    XDP_LOAD_BYTES = 189, xdp_load_bytes;
    XDP_STORE_BYTES = 190, xdp_store_bytes;
    COPY_FROM_USER_TASK = 191, copy_from_user_task, 5 18;
    SKB_SET_TSTAMP = 192, skb_set_tstamp;
    IMA_FILE_HASH = 193, ima_file_hash;
    KPTR_XCHG = 194, kptr_xchg, 5 19;
    MAP_LOOKUP_PERCPU_ELEM = 195, map_lookup_percpu_elem, 5 19;
    SKC_TO_MPTCP_SOCK = 196, skc_to_mptcp_sock;
    DYNPTR_FROM_MEM = 197, dynptr_from_mem, 5 19;
    RINGBUF_RESERVE_DYNPTR = 198, ringbuf_reserve_dynptr, 5 19;
    RINGBUF_SUBMIT_DYNPTR = 199, ringbuf_submit_dynptr, 5 19;
    RINGBUF_DISCARD_DYNPTR = 200, ringbuf_discard_dynptr, 5 19;
    DYNPTR_READ = 201, dynptr_read, 5 19;
    DYNPTR_WRITE = 202, dynptr_write, 5 19;
    DYNPTR_DATA = 203, dynptr_data, 5 19;
    TCP_RAW_GEN_SYNCOOKIE_IPV4 = 204, tcp_raw_gen_syncookie_ipv4;
    TCP_RAW_GEN_SYNCOOKIE_IPV6 = 205, tcp_raw_gen_syncookie_ipv6;
    TCP_RAW_CHECK_SYNCOOKIE_IPV4 = 206, tcp_raw_check_syncookie_ipv4;
    TCP_RAW_CHECK_SYNCOOKIE_IPV6 = 207, tcp_raw_check_syncookie_ipv6;
    KTIME_GET_TAI_NS = 208, ktime_get_tai_ns, 6 1;
    USER_RINGBUF_DRAIN = 209, user_ringbuf_drain, 6 1;
    CGRP_STORAGE_GET = 210, cgrp_storage_get, 6 2;
    CGRP_STORAGE_DELETE = 211, cgrp_storage_delete, 6 2;
}
