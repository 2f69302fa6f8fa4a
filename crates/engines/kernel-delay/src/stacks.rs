//! The stacks of events: each different one is kept once, up to a limit.

use screen::grouped;
use std::collections::HashMap;

use crate::layout::{REGISTER_COUNT, STACK_DEPTH};

/// A stack's number among those that are kept.
pub(crate) type StackId = u32;

/// A process's stack as it was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopiedStack<'a> {
    /// The process.
    pub pid: u32,
    /// Instruction pointer, stack pointer, frame pointer, link register (where there is one).
    pub registers: [u64; REGISTER_COUNT],
    /// The bytes from the stack pointer on.
    pub bytes: &'a [u8],
}

/// Finds the addresses of a copied stack.
pub type Unwind<'a> = &'a mut dyn FnMut(CopiedStack<'_>) -> Stack;

/// Why a stack has no more addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StackEnd {
    /// It is whole: its last function is where the thread began.
    #[default]
    Whole,
    /// It goes on beyond the bytes that were copied of it, this many.
    NotCopied(u32),
    /// It has more functions than are kept.
    TooDeep,
    /// It is not known who called its last function.
    Unknown,
    /// What says who called its last function can't be followed in bounded time.
    Refused,
    /// The kernel followed the frame pointers of the process, as long as they led to something: not all of it may be code.
    FramePointers,
}

/// A stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stack {
    /// The innermost address first.
    pub addresses: Vec<u64>,
    /// Why there are no more.
    pub end: StackEnd,
}

/// Says what an address is: one line for each function that is at work there, the innermost first; none for what is not
/// worth a line.
pub trait Symbols {
    /// Of the kernel.
    fn kernel(&self, address: u64) -> Vec<String>;
    /// Of a process. A caller's address is the one that it will go on at, which may be another function's. Nothing if there is
    /// no code.
    fn user(&self, pid: u32, address: u64, caller: bool) -> Option<Vec<String>>;
}

impl Stack {
    /// Of the addresses that the kernel walked by itself.
    pub(crate) fn of_kernel(addresses: Vec<u64>) -> Self {
        let full = addresses.len() >= STACK_DEPTH;
        Self { addresses, end: if full { StackEnd::TooDeep } else { StackEnd::Whole } }
    }

    /// Of the addresses of a process that the kernel found by frame pointers.
    pub(crate) fn of_frame_pointers(addresses: Vec<u64>) -> Self {
        Self { end: StackEnd::FramePointers, addresses }
    }

    /// Its lines, and one that says why there are no more unless it is whole. What frame pointers led to ends where there is
    /// no code; what was walked by tables was code then.
    pub(crate) fn lines(&self, line: impl Fn(u64, bool) -> Option<Vec<String>>) -> Vec<String> {
        let mut lines = Vec::new();
        for (depth, &address) in self.addresses.iter().enumerate() {
            match line(address, depth > 0) {
                Some(found) => lines.extend(found),
                None if depth > 0 && self.end == StackEnd::FramePointers => {
                    lines.push(NO_CODE.to_owned());
                    return lines;
                }
                None => lines.push(format!("{address:#x}")),
            }
        }
        let is_full = self.end == StackEnd::FramePointers && self.addresses.len() >= STACK_DEPTH;
        lines.extend(if is_full { StackEnd::TooDeep.line() } else { self.end.line() });
        lines
    }
}

/// What stands in the place of the first frame that is no code.
const NO_CODE: &str = "[no code here: built without frame pointers? try --stack-copy 8192]";

impl StackEnd {
    fn line(self) -> Option<String> {
        match self {
            Self::Whole | Self::FramePointers => None,
            Self::NotCopied(bytes) => {
                let bytes = grouped(bytes.into());
                Some(format!("[it goes on: {bytes} bytes of the stack were copied, --stack-copy copies more]"))
            }
            Self::TooDeep => Some(format!("[it goes on: {STACK_DEPTH} addresses of a stack are kept]")),
            Self::Unknown => Some("[it goes on: there are no unwind tables for what called this]".to_owned()),
            Self::Refused => Some("[it goes on: the unwind table for this is not followed, as a note says]".to_owned()),
        }
    }
}

/// Stacks that are kept.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    most: usize,
    kept: Vec<Stack>,
    ids: HashMap<Stack, StackId>,
}

impl Stacks {
    /// Room for this many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Vec::new(), ids: HashMap::new() }
    }

    /// How many there is room for.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A stack's number, if there is room for it.
    pub(crate) fn add(&mut self, stack: Stack) -> Option<StackId> {
        if let Some(&known) = self.ids.get(&stack) {
            return Some(known);
        }
        if self.kept.len() >= self.most {
            return None;
        }
        let id = self.kept.len() as StackId;
        self.kept.push(stack.clone());
        self.ids.insert(stack, id);
        Some(id)
    }

    /// The stack of a number.
    pub(crate) fn get(&self, id: StackId) -> Option<&Stack> {
        self.kept.get(id as usize)
    }
}

/// How the names of functions begin that every system call goes through on its way in and out: of `arch/x86/entry/`,
/// `arch/arm64/kernel/entry*`, `arch/arm64/kernel/syscall.c` and `kernel/entry/`.
const ENTRY: [&str; 13] = [
    "do_syscall_64",
    "x64_sys_call",
    "entry_SYSCALL_",
    "entry_SYSENTER_",
    "entry_INT80_",
    "do_int80_",
    "do_fast_syscall_32",
    "__do_fast_syscall_32",
    "syscall_exit_",
    "asm_",
    "el0",
    "do_el0_svc",
    "invoke_syscall",
];

/// Whether a line of the kernel's stack is of these.
pub(crate) fn is_entry(line: &str) -> bool {
    ENTRY.iter().any(|entry| line.starts_with(entry))
}
