//! Stacks of events: each distinct one is kept once, up to a limit.

use screen::grouped;
use std::collections::HashMap;

use crate::layout::{REGISTER_COUNT, STACK_DEPTH};

/// Number of a kept stack.
pub(crate) type StackId = u32;

/// Copied stack of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopiedStack<'a> {
    /// Number of the process.
    pub pid: u32,
    /// Instruction pointer, stack pointer, frame pointer, link register (where there is one).
    pub registers: [u64; REGISTER_COUNT],
    /// Bytes from the stack pointer on.
    pub bytes: &'a [u8],
}

/// Function that finds the addresses of a copied stack.
pub type Unwind<'a> = &'a mut dyn FnMut(CopiedStack<'_>) -> Stack;

/// Reason that a stack has no more addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StackEnd {
    /// The stack is complete: its last function is where the thread began.
    #[default]
    Whole,
    /// The stack goes on beyond this number of copied bytes.
    NotCopied(u32),
    /// The stack has more functions than are kept.
    TooDeep,
    /// The caller of its last function is unknown.
    Unknown,
    /// The unwind data of its last function can't be followed in bounded time.
    Refused,
    /// The kernel followed the frame pointers of the process as far as they led; not all addresses
    /// may be code.
    FramePointers,
}

/// Addresses of a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stack {
    /// Addresses, innermost first.
    pub addresses: Vec<u64>,
    /// Reason that there are no more.
    pub end: StackEnd,
}

/// Names for addresses: one line for each function active there, innermost first; no lines for an
/// address that is not worth one.
pub trait Symbols {
    /// Returns the lines for an address of the kernel.
    fn kernel(&self, address: u64) -> Vec<String>;
    /// Returns the lines for an address of a process; `None` if there is no code. A caller's
    /// address is its return address, which may belong to the next function.
    fn user(&self, pid: u32, address: u64, caller: bool) -> Option<Vec<String>>;
}

impl Stack {
    /// Creates a stack of addresses that the kernel walked in itself.
    pub(crate) fn from_kernel(addresses: Vec<u64>) -> Self {
        let full = addresses.len() >= STACK_DEPTH;
        Self {
            addresses,
            end: if full {
                StackEnd::TooDeep
            } else {
                StackEnd::Whole
            },
        }
    }

    /// Creates a stack of process addresses that the kernel found by frame pointers.
    pub(crate) fn from_frame_pointers(addresses: Vec<u64>) -> Self {
        Self {
            end: StackEnd::FramePointers,
            addresses,
        }
    }

    /// Returns its lines, and one with the reason for its end unless it is complete. Frame pointers
    /// are followed up to the first address that is not code; addresses found by unwind tables were
    /// code then.
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
        lines.extend(if is_full {
            StackEnd::TooDeep.line()
        } else {
            self.end.line()
        });
        lines
    }
}

/// Line in place of the first frame that is not code.
const NO_CODE: &str = "[no code here: built without frame pointers? try --stack-copy 8192]";

impl StackEnd {
    fn line(self) -> Option<String> {
        match self {
            Self::Whole | Self::FramePointers => None,
            Self::NotCopied(bytes) => {
                let bytes = grouped(bytes.into());
                Some(format!(
                    "[it goes on: {bytes} bytes of the stack were copied, --stack-copy copies more]"
                ))
            }
            Self::TooDeep => Some(format!(
                "[it goes on: {STACK_DEPTH} addresses of a stack are kept]"
            )),
            Self::Unknown => {
                Some("[it goes on: there are no unwind tables for the caller]".to_owned())
            }
            Self::Refused => {
                Some("[it goes on: this unwind table is not followed; a note says why]".to_owned())
            }
        }
    }
}

/// Set of kept stacks.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    most: usize,
    kept: Vec<Stack>,
    ids: HashMap<Stack, StackId>,
}

impl Stacks {
    /// Creates a set with room for `most` stacks.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
            ids: HashMap::new(),
        }
    }

    /// Returns the maximum number of stacks.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Returns a stack's number, and keeps it; `None` if there is no room.
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

    /// Returns the stack with this number.
    pub(crate) fn get(&self, id: StackId) -> Option<&Stack> {
        self.kept.get(id as usize)
    }
}

/// Prefixes of the functions that every system call goes through on its way in and out: of
/// `arch/x86/entry/`, `arch/arm64/kernel/entry*`, `arch/arm64/kernel/syscall.c` and
/// `kernel/entry/`.
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

/// Returns whether a line of the kernel's stack is one of these functions.
pub(crate) fn is_entry(line: &str) -> bool {
    ENTRY.iter().any(|entry| line.starts_with(entry))
}
