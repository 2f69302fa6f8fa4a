//! The ring's events: system calls that came to their end.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Comm;

/// A stack that the kernel walked: addresses, the innermost first.
pub type KernelStack = [u64; STACK_DEPTH];

/// How many addresses of a stack are kept.
pub const STACK_DEPTH: usize = 64;

/// An event in the ring without stacks, and the beginning of one with stacks: a system call that came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EventHead {
    /// When it was entered.
    pub entry: u64,
    /// When it was left.
    pub exit: u64,
    /// The thread.
    pub tid: u32,
    /// The call's entry, as an offset in the thread's value.
    pub call: u32,
    /// The thread's name.
    pub comm: Comm,
    /// The bytes of the kernel's stack, or a negative error.
    pub kernel_bytes: i64,
    /// The bytes of the user's stack, or a negative error.
    pub user_bytes: i64,
    /// The thread's process.
    pub tgid: u64,
}

/// How many registers an event has.
pub const REGISTER_COUNT: usize = 4;

/// An event with stacks. Behind it is the user's stack: a copy of its bytes from the stack pointer on, or a [`KernelStack`]
/// where none is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackEvent {
    /// What each event has.
    pub head: EventHead,
    /// The kernel's stack.
    pub kernel: KernelStack,
    /// The process's registers at the call, as [`crate::programs::RegisterFacts::user`] names them.
    pub registers: [u64; REGISTER_COUNT],
}

/// The pieces in which a stack is copied, in bytes: one that can't be read ends the copy.
pub const STACK_PIECE: u32 = 1024;
/// The most that is copied of a stack, in bytes.
pub const MOST_COPIED: u32 = 24 * STACK_PIECE;

/// The bytes of an event with stacks, if this many bytes of the user's are copied.
pub const fn stack_event_size(copied: u32) -> u32 {
    let user = if copied == 0 { size_of::<KernelStack>() as u32 } else { copied };
    size_of::<StackEvent>() as u32 + user
}
