//! Offsets of the members of SPDK's structs, in each version that the demo target can imitate.
//!
//! The numbers are from the DWARF of objects compiled from SPDK's release tags (see
//! docs/dev/layouts.md). They are repeated here so that code tested with this target can't share a
//! mistake with it. Offsets that never moved are written where they are used.

use spdk_trace_writer::Era;

/// Offset of a member that the version does not have.
pub(super) const NONE: usize = usize::MAX;

macro_rules! layouts {
    ([$($version:literal $era:ident),*] $($member:ident: $($at:tt),*;)*) => {
        /// Offsets and sizes in bytes, as `struct_member` and `struct_size`; two values of `enum
        /// spdk_nvmf_qpair_state`.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Layout {
            /// Version, as in its tag.
            pub(crate) version: &'static str,
            /// Era of its trace files.
            pub(crate) era: Era,
            $(pub(super) $member: usize,)*
        }

        const UNKNOWN: Layout = Layout { version: "", era: Era::A, $($member: NONE,)* };

        /// Layouts of all versions, oldest first.
        pub(crate) static LAYOUTS: [Layout; [$($version),*].len()] = {
            let mut layouts = [$(Layout { version: $version, era: Era::$era, ..UNKNOWN }),*];
            $(
                let places = [$($at),*];
                let mut at = 0;
                while at < places.len() {
                    layouts[at].$member = places[at];
                    at += 1;
                }
            )*
            layouts
        };
    };
}

layouts! {
    ["v22.09" C, "v23.05" C, "v24.09" E, "v25.05" E, "v26.05" F]
    tgt_size: 400, 416, 440, 440, 448;
    tgt_max_subsystems: 304, 304, 304, 304, 304;
    tgt_state: NONE, 312, 312, 312, 312;
    tgt_subsystems: 312, 328, 328, 328, 328;
    tgt_transports: 320, 336, 336, 336, 336;
    tgt_poll_groups: 336, 352, 352, 352, 352;
    tgt_link: 384, 400, 424, 424, 432;
    group_size: 120, 176, 176, 168, 168;
    group_qpairs: 48, 48, 48, 40, 40;
    group_link: 104, 120, 120, 112, 112;
    qpair_size: 96, 96, 112, 112, 112;
    qpair_state: 0, 0, 0, 0, 0;
    qpair_qid: 48, 48, 2, 2, 2;
    qpair_transport: 24, 24, 8, 8, 8;
    qpair_ctrlr: 32, 32, 16, 16, 16;
    qpair_group: 40, 40, 24, 24, 24;
    qpair_link: 80, 80, 56, 56, 56;
    qpair_trace_id: NONE, NONE, 90, 90, 90;
    tcp_qpair_size: 848, 856, 880, 880, 880;
    tcp_qpair_initiator_addr: 288, 296, 312, 312, 312;
    tcp_qpair_target_addr: 544, 552, 568, 568, 568;
    tcp_qpair_initiator_port: 800, 808, 824, 824, 824;
    tcp_qpair_target_port: 802, 810, 826, 826, 826;
    transport_size: 160, 192, 200, 208, 224;
    transport_link: 104, 136, 144, 152, 168;
    ctrlr_size: 4920, 4920, 4928, 4928, 4936;
    ctrlr_admin_qpair: 600, 600, 608, 608, 616;
    ctrlr_thread: 608, 608, 616, 616, 624;
    ctrlr_link: 4904, 4904, 4912, 4912, 4920;
    subsystem_size: 480, 512, 552, 552, 560;
    subsystem_subtype: 16, 16, 16, 16, NONE;
    subsystem_next_cntlid: 20, 20, 20, 20, 16;
    subsystem_tgt: 32, 40, 40, 40, 40;
    subsystem_link: NONE, 48, 48, 48, 48;
    subsystem_ns: 40, 72, 72, 72, 72;
    subsystem_max_nsid: 48, 80, 80, 80, 80;
    subsystem_ctrlrs: 56, 88, 104, 104, 176;
    subsystem_entries: 152, 184, 200, 200, 272;
    subsystem_subnqn: 246, 278, 294, 294, 304;
    ns_size: 160, 160, 192, 200, 224;
    bdev_size: 544, 496, 512, 552, 576;
    bdev_link: 296, 320, 336, 344, 368;
    bdev_mgr_size: 120, 96, 112, 112, 112;
    bdev_mgr_bdevs: 48, 32, 32, 32, 32;
    thread_size: 832, 832, 840, 912, 912;
    thread_id: 112, 112, 112, 176, 176;
    thread_state: 128, 128, 128, 192, 192;
    thread_tailq: 144, 144, 152, 216, 216;
    thread_name: 160, 160, 168, 232, 232;
    poller_size: 400, 400, 400, 400, 400;
    reactor_size: 704, 704, 704, 704, 704;
    nvme_ctrlr_size: 248, 248, 304, 328, 360;
    nvme_ctrlr_tailq: 136, 136, 168, 192, 184;
    nvme_ctrlr_nbdev_ctrlr: 152, 152, 184, 208, 200;
    nvme_size: 6728, 6728, 6768, 6768, 6792;
    nvme_trid: 40, 40, 40, 40, 44;
    nvme_state: 620, 620, 620, 620, 8;
    nvme_cntlid: 22, 22, 22, 22, 40;
    subsystem_sn: 184, 216, 232, 232, 104;
    qpair_enabled: 1, 1, 3, 3, 3;
    qpair_error: 3, 3, 5, 5, 5;
    group_tgt: NONE, 112, 112, 104, 104;
}

impl Layout {
    /// Returns true if a target's subsystems are in a tree, and not in an array (v23.05 on).
    pub(super) fn has_tree(&self) -> bool {
        self.subsystem_link != NONE
    }
}

/// Returns the layout of a version, as named by `--era`.
pub(crate) fn layout(version: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.version == version)
}
