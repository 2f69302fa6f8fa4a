//! Values that have parts, as they lie in events, keys and maps: see
//! [`ValueType`](crate::ValueType).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The beginning of a [`Buffer`](crate::ValueType::Buffer). Room for its bytes follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BufferHead {
    /// Number of bytes of the room that count.
    pub length: u32,
}

/// A thread and its process, as the kernel's first PID namespace has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TaskId {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// The beginning of a [`KernelStack`](crate::ValueType::KernelStack). Its frames follow, each a
/// `u64` address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackHead {
    /// Bytes of all frames, or a negative error (`bpf_get_stack`).
    pub length: i64,
}

/// The beginning of a [`UserStack`](crate::ValueType::UserStack). Its frames follow, each a `u64`
/// address or, for [`StackMode::BuildId`](crate::StackMode::BuildId), a [`BuildIdFrame`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UserStackHead {
    /// Owner of the stack.
    pub task: TaskId,
    /// Length of the stack.
    pub stack: StackHead,
}

/// A frame with its file's build id: `struct bpf_stack_build_id` of `linux/bpf.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BuildIdFrame {
    /// [`BuildIdFrame::VALID`] if there is a build id.
    pub status: i32,
    /// The build id.
    pub build_id: [u8; 20],
    /// Offset in the file; the address if there is no build id.
    pub offset: u64,
}

impl BuildIdFrame {
    /// `BPF_STACK_BUILD_ID_VALID`.
    pub const VALID: i32 = 1;
}

/// A [`UserSymbol`](crate::ValueType::UserSymbol).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UserSymbol {
    /// The address.
    pub address: u64,
    /// Owner of the memory.
    pub task: TaskId,
}

/// An [`Inet`](crate::ValueType::Inet).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Inet {
    /// [`Inet::V4`] or [`Inet::V6`]: the version, not the address family (`AF_INET` is 2 and `AF_INET6` 10).
    pub version: u32,
    /// Address in network byte order. Version 4 uses the first four bytes.
    pub address: [u8; 16],
}

impl Inet {
    /// Version 4.
    pub const V4: u32 = 4;
    /// Version 6.
    pub const V6: u32 = 6;
}

/// A [`MacAddress`](crate::ValueType::MacAddress).
pub type MacAddress = [u8; 6];

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn parts_lie_where_programs_put_them() {
        assert_eq!(
            [
                size_of::<BufferHead>(),
                size_of::<StackHead>(),
                size_of::<UserStackHead>()
            ],
            [4, 8, 16]
        );
        assert_eq!(
            [
                size_of::<UserSymbol>(),
                size_of::<Inet>(),
                size_of::<MacAddress>()
            ],
            [16, 20, 6]
        );
        assert_eq!(
            [
                offset_of!(UserStackHead, stack),
                offset_of!(UserSymbol, task),
                offset_of!(Inet, address)
            ],
            [8, 8, 4]
        );
        // The two halves of a word: see `TaskId` in the emitter.
        assert_eq!(
            [
                offset_of!(TaskId, pid),
                offset_of!(TaskId, tid),
                size_of::<TaskId>()
            ],
            [0, 4, 8]
        );
        assert_eq!(
            [
                offset_of!(BuildIdFrame, build_id),
                offset_of!(BuildIdFrame, offset)
            ],
            [4, 24]
        );
        assert_eq!(size_of::<BuildIdFrame>(), 32);
    }
}
