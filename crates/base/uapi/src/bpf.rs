//! Numbers of `linux/bpf.h`.

use crate::version::KernelVersion;

/// `BPF_F_NO_PREALLOC`, for creating a map: memory for entries is allocated when they are added.
pub const NO_PREALLOC: u32 = 1;

/// `BPF_NOEXIST`, for an update: only if the key is absent.
pub const NOEXIST: u32 = 1;
/// `BPF_EXIST`, for an update: only if the key is present.
pub const EXIST: u32 = 2;

/// `BPF_RB_AVAIL_DATA`: requests the number of bytes waiting in the ring.
pub const RB_AVAIL_DATA: u32 = 0;
/// `BPF_RB_NO_WAKEUP`: the reader is not woken for this event.
pub const RB_NO_WAKEUP: u32 = 1;
/// `BPF_RB_FORCE_WAKEUP`: the reader is woken for this event.
pub const RB_FORCE_WAKEUP: u32 = 2;
/// `BPF_RINGBUF_BUSY_BIT` of a record's length: reserved, and not submitted yet.
pub const RINGBUF_BUSY: u32 = 1 << 31;
/// `BPF_RINGBUF_DISCARD_BIT` of a record's length: discarded by the program.
pub const RINGBUF_DISCARD: u32 = 1 << 30;
/// `BPF_RINGBUF_HDR_SZ`: size of the header before each record, in bytes.
pub const RINGBUF_HEADER_BYTES: u32 = 8;

/// `BPF_F_USER_STACK`: the process's stack instead of the kernel's.
pub const USER_STACK: u32 = 1 << 8;
/// `BPF_F_USER_BUILD_ID`: identifies files by their build IDs.
pub const USER_BUILD_ID: u32 = 1 << 11;

/// Defines the enum and its table: number, first Linux release.
macro_rules! map_kinds {
    ($($(#[$meta:meta])* $variant:ident = $number:literal, $major:literal $minor:literal;)*) => {
        /// The kinds of maps that a tracer uses (`enum bpf_map_type` of `linux/bpf.h`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum MapKind { $($(#[$meta])* $variant = $number,)* }

        impl MapKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the first Linux release with this kind.
            pub const fn since(self) -> KernelVersion {
                match self { $(Self::$variant => KernelVersion::new($major, $minor),)* }
            }

            /// Returns whether it has a value for each CPU.
            pub const fn is_per_cpu(self) -> bool {
                matches!(self, Self::PercpuHash | Self::PercpuArray | Self::LruPercpuHash)
            }
        }
    };
}

map_kinds! {
    /// Keys to values.
    Hash = 1, 3 19;
    /// Indices to values.
    Array = 2, 3 19;
    /// Programs for tail calls.
    ProgArray = 3, 4 2;
    /// Perf event buffers, one per CPU.
    PerfEventArray = 4, 4 3;
    /// Keys to one value per CPU.
    PercpuHash = 5, 4 6;
    /// Indices to one value per CPU.
    PercpuArray = 6, 4 6;
    /// Stacks by their hash.
    StackTrace = 7, 4 6;
    /// Keys to values; the least recently used is dropped when it is full.
    LruHash = 9, 4 10;
    /// Keys to one value per CPU; the least recently used is dropped when it is full.
    LruPercpuHash = 10, 4 10;
    /// First in, first out.
    Queue = 22, 4 20;
    /// Last in, first out.
    Stack = 23, 4 20;
    /// One ring for all CPUs, drained by the process that loaded it.
    RingBuf = 27, 5 8;
}
