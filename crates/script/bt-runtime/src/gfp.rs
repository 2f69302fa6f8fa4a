//! Flags of the kernel's page allocator as names: `%gr`.
//!
//! Bits come from `include/linux/gfp_types.h`; names and their order come from
//! `include/trace/events/mmflags.h` of Linux 6.12. The output is that of `%pGg` of
//! `Documentation/core-api/printk-formats.rst`. Older kernels differ in a few bits.

use std::fmt::Write as _;

const DMA: u64 = 1 << 0;
const HIGHMEM: u64 = 1 << 1;
const DMA32: u64 = 1 << 2;
const MOVABLE: u64 = 1 << 3;
const RECLAIMABLE: u64 = 1 << 4;
const HIGH: u64 = 1 << 5;
const IO: u64 = 1 << 6;
const FS: u64 = 1 << 7;
const ZERO: u64 = 1 << 8;
const DIRECT_RECLAIM: u64 = 1 << 10;
const KSWAPD_RECLAIM: u64 = 1 << 11;
const WRITE: u64 = 1 << 12;
const NOWARN: u64 = 1 << 13;
const RETRY_MAYFAIL: u64 = 1 << 14;
const NOFAIL: u64 = 1 << 15;
const NORETRY: u64 = 1 << 16;
const MEMALLOC: u64 = 1 << 17;
const COMP: u64 = 1 << 18;
const NOMEMALLOC: u64 = 1 << 19;
const HARDWALL: u64 = 1 << 20;
const THISNODE: u64 = 1 << 21;
const ACCOUNT: u64 = 1 << 22;
const ZEROTAGS: u64 = 1 << 23;

const RECLAIM: u64 = DIRECT_RECLAIM | KSWAPD_RECLAIM;
const KERNEL: u64 = RECLAIM | IO | FS;
const USER: u64 = KERNEL | HARDWALL;
const HIGHUSER: u64 = USER | HIGHMEM;
const TRANSHUGE_LIGHT: u64 = (HIGHUSER | MOVABLE | COMP | NOMEMALLOC | NOWARN) & !RECLAIM;

/// Names of flag masks; masks of several flags come first.
const NAMES: [(u64, &str); 35] = [
    (TRANSHUGE_LIGHT | DIRECT_RECLAIM, "GFP_TRANSHUGE"),
    (TRANSHUGE_LIGHT, "GFP_TRANSHUGE_LIGHT"),
    (HIGHUSER | MOVABLE, "GFP_HIGHUSER_MOVABLE"),
    (HIGHUSER, "GFP_HIGHUSER"),
    (USER, "GFP_USER"),
    (KERNEL | ACCOUNT, "GFP_KERNEL_ACCOUNT"),
    (KERNEL, "GFP_KERNEL"),
    (RECLAIM | IO, "GFP_NOFS"),
    (HIGH | KSWAPD_RECLAIM, "GFP_ATOMIC"),
    (RECLAIM, "GFP_NOIO"),
    (KSWAPD_RECLAIM | NOWARN, "GFP_NOWAIT"),
    (DMA, "GFP_DMA"),
    (HIGHMEM, "__GFP_HIGHMEM"),
    (DMA32, "GFP_DMA32"),
    (HIGH, "__GFP_HIGH"),
    (IO, "__GFP_IO"),
    (FS, "__GFP_FS"),
    (NOWARN, "__GFP_NOWARN"),
    (RETRY_MAYFAIL, "__GFP_RETRY_MAYFAIL"),
    (NOFAIL, "__GFP_NOFAIL"),
    (NORETRY, "__GFP_NORETRY"),
    (COMP, "__GFP_COMP"),
    (ZERO, "__GFP_ZERO"),
    (NOMEMALLOC, "__GFP_NOMEMALLOC"),
    (MEMALLOC, "__GFP_MEMALLOC"),
    (HARDWALL, "__GFP_HARDWALL"),
    (THISNODE, "__GFP_THISNODE"),
    (RECLAIMABLE, "__GFP_RECLAIMABLE"),
    (MOVABLE, "__GFP_MOVABLE"),
    (ACCOUNT, "__GFP_ACCOUNT"),
    (WRITE, "__GFP_WRITE"),
    (RECLAIM, "__GFP_RECLAIM"),
    (DIRECT_RECLAIM, "__GFP_DIRECT_RECLAIM"),
    (KSWAPD_RECLAIM, "__GFP_KSWAPD_RECLAIM"),
    (ZEROTAGS, "__GFP_ZEROTAGS"),
];

/// Formats the flags' names, separated by `|`. Bits without a name follow as one hex number.
pub(crate) fn names(mut flags: u64) -> String {
    if flags == 0 {
        return "none".to_owned();
    }
    let mut out = String::new();
    for (mask, name) in NAMES {
        if flags & mask == mask {
            flags &= !mask;
            let _ = write!(out, "{}{name}", if out.is_empty() { "" } else { "|" });
        }
    }
    if flags != 0 {
        let _ = write!(out, "{}{flags:#x}", if out.is_empty() { "" } else { "|" });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_names() {
        assert_eq!(names(0), "none");
        assert_eq!(names(1), "GFP_DMA");
        assert_eq!(names(KERNEL | ZERO), "GFP_KERNEL|__GFP_ZERO");
        assert_eq!(names(HIGH | KSWAPD_RECLAIM), "GFP_ATOMIC");
        assert_eq!(names(FS | 1 << 40), "__GFP_FS|0x10000000000");
    }
}
