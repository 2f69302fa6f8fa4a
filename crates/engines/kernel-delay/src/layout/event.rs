//! Events of the ring: completed system calls.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Comm;

/// Stack that the kernel walked: addresses, innermost first.
pub type KernelStack = [u64; STACK_DEPTH];

/// Maximum number of addresses kept of a stack.
pub const STACK_DEPTH: usize = 64;

/// Event in the ring without stacks, and start of one with stacks: a completed system call.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EventHead {
    /// Time of entry.
    pub entry: u64,
    /// Time of exit.
    pub exit: u64,
    /// Number of the thread.
    pub tid: u32,
    /// Entry of the call, as an offset in the thread's value.
    pub call: u32,
    /// Name of the thread.
    pub comm: Comm,
    /// Bytes of the kernel's stack, or a negative error.
    pub kernel_bytes: i64,
    /// Bytes of the user's stack, or a negative error.
    pub user_bytes: i64,
    /// Process of the thread.
    pub tgid: u64,
}

/// Number of registers in an event.
pub const REGISTER_COUNT: usize = 4;

/// Event with stacks. The user's stack follows it: a copy of its bytes from the stack pointer on,
/// or a [`KernelStack`] if nothing is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackEvent {
    /// Fields of every event.
    pub head: EventHead,
    /// Stack of the kernel.
    pub kernel: KernelStack,
    /// Registers of the process at the call, in the order of
    /// [`crate::programs::RegisterFacts::user`].
    pub registers: [u64; REGISTER_COUNT],
}

/// Size of the pieces in which a stack is copied, in bytes; an unreadable piece ends the copy.
pub const STACK_CHUNK_BYTES: u32 = 1024;
/// Maximum number of bytes copied of a stack.
pub const MAX_STACK_BYTES: u32 = 24 * STACK_CHUNK_BYTES;

/// Returns the size of an event with stacks in bytes, if `copied` bytes of the user's stack are
/// copied.
pub const fn stack_event_size(copied: u32) -> u32 {
    let user = if copied == 0 {
        size_of::<KernelStack>() as u32
    } else {
        copied
    };
    size_of::<StackEvent>() as u32 + user
}
