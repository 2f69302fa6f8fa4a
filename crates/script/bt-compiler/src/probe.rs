//! Context that a body is compiled for: the kind of probe, and where its arguments are.

use std::sync::Arc;

use bt_lang::ast::ProbeKind;
use kernel_text::tracefs::TracepointFormat;
use typeinfo::TypeRef;
use uapi::Arch;
use usdt::args::ArgSpec;

use super::ty::Space;

/// Location of a probe's arguments.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Args {
    /// No arguments.
    None,
    /// Arguments in the registers of the calling convention.
    Call,
    /// Returned value only.
    Return,
    Usdt(Vec<ArgSpec>),
    /// Fields of a tracepoint's record.
    Record(Arc<TracepointFormat>),
    /// Words one behind the other, with names and types, and the type of a returned value that
    /// follows.
    Words {
        params: Vec<(String, TypeRef)>,
        returns: Option<TypeRef>,
    },
}

/// Context that a body is compiled for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Context {
    pub(crate) kind: ProbeKind,
    pub(crate) arch: Arch,
    /// Text of the builtin `probe`.
    pub(crate) name: String,
    /// Text of the builtin `func`, if the probe's place is a function by name.
    pub(crate) function: Option<String>,
    pub(crate) args: Args,
    /// Memory that numbers point to when used as addresses.
    pub(crate) space: Space,
    /// File of a user probe.
    pub(crate) path: Option<String>,
    /// Address of the probe in the file's own terms, if it has just one place.
    pub(crate) vaddr: Option<u64>,
    /// Offsets of words of the context that must not be 0, or the body does not run: an iterator's
    /// objects.
    pub(crate) present: Vec<u32>,
    /// True if the program itself must skip other processes than that of `-p`.
    pub(crate) filters_pid: bool,
}

impl Context {
    /// Returns true if the context is `struct pt_regs`.
    pub(crate) fn has_registers(&self) -> bool {
        matches!(
            self.kind,
            ProbeKind::Uprobe
                | ProbeKind::Uretprobe
                | ProbeKind::Usdt
                | ProbeKind::Kprobe
                | ProbeKind::Kretprobe
        )
    }

    /// Returns true if the probe is in a process's own code.
    pub(crate) fn is_user(&self) -> bool {
        matches!(
            self.kind,
            ProbeKind::Uprobe | ProbeKind::Uretprobe | ProbeKind::Usdt
        )
    }

    /// Returns true if the context is that of a perf event, which also has the registers.
    pub(crate) fn is_sample(&self) -> bool {
        matches!(
            self.kind,
            ProbeKind::Profile
                | ProbeKind::Interval
                | ProbeKind::Software
                | ProbeKind::Hardware
                | ProbeKind::Watchpoint
        )
    }
}

/// Offsets in `struct pt_regs` of a function's integer arguments, returned value, stack pointer and
/// instruction pointer: System V ABI for x86-64, section 3.2.3; AAPCS64, section 6.4.
pub(crate) struct Registers {
    pub(crate) args: &'static [u32],
    pub(crate) result: u32,
    pub(crate) stack: u32,
    pub(crate) instruction: u32,
    /// Distance in bytes from the stack pointer up to the stack arguments, on entry to a function.
    pub(crate) stack_args: u64,
}

const X86_64: Registers = Registers {
    args: &[112, 104, 96, 88, 72, 64],
    result: 80,
    stack: 152,
    instruction: 128,
    stack_args: 8,
};
const AARCH64: Registers = Registers {
    args: &[0, 8, 16, 24, 32, 40, 48, 56],
    result: 0,
    stack: 248,
    instruction: 256,
    stack_args: 0,
};

/// Returns the register offsets of an architecture.
pub(crate) fn registers(arch: Arch) -> &'static Registers {
    match arch {
        Arch::X86_64 => &X86_64,
        Arch::Aarch64 => &AARCH64,
    }
}
