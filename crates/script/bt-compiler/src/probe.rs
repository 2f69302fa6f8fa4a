//! What a body is compiled for: the kind of probe, and where its arguments are.

use std::sync::Arc;

use bt_lang::ast::ProbeKind;
use kernel_text::tracefs::TracepointFormat;
use typeinfo::TypeRef;
use uapi::Arch;
use usdt::args::ArgSpec;

use super::ty::Space;

/// Where a probe's arguments are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Args {
    /// There are none.
    None,
    /// In the registers that the calling convention says.
    Call,
    /// There is a returned value.
    Return,
    Usdt(Vec<ArgSpec>),
    /// A tracepoint's record.
    Record(Arc<TracepointFormat>),
    /// Words, one behind the other: names and types, and whether a returned value follows.
    Words {
        params: Vec<(String, TypeRef)>,
        returns: Option<TypeRef>,
    },
}

/// What a body is compiled for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Context {
    pub(crate) kind: ProbeKind,
    pub(crate) arch: Arch,
    /// What the builtin `probe` says.
    pub(crate) name: String,
    /// What the builtin `func` says, where the probe's place is a function by name.
    pub(crate) function: Option<String>,
    pub(crate) args: Args,
    /// Whose memory numbers point to.
    pub(crate) space: Space,
    /// The file of a user probe.
    pub(crate) path: Option<String>,
    /// Where the probe stands in the file's own terms, where that is one place.
    pub(crate) vaddr: Option<u64>,
    /// Words of the context, by their offsets, without which the body does not run: an iterator's objects.
    pub(crate) present: Vec<u32>,
    /// Whether the program itself must let other processes than the one of `-p` go.
    pub(crate) filters_pid: bool,
}

impl Context {
    /// Whether the context is `struct pt_regs`.
    pub(crate) fn has_registers(&self) -> bool {
        matches!(
            self.kind,
            ProbeKind::Uprobe | ProbeKind::Uretprobe | ProbeKind::Usdt | ProbeKind::Kprobe | ProbeKind::Kretprobe
        )
    }

    /// Whether the probe is in a process's own code.
    pub(crate) fn is_user(&self) -> bool {
        matches!(self.kind, ProbeKind::Uprobe | ProbeKind::Uretprobe | ProbeKind::Usdt)
    }

    /// Whether the context is that of a perf event, which has the registers, too.
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

/// Where a function's integer arguments, its returned value, its stack pointer and its instruction pointer are in
/// `struct pt_regs`: System V ABI for x86-64, section 3.2.3; AAPCS64, section 6.4.
pub(crate) struct Registers {
    pub(crate) args: &'static [u32],
    pub(crate) result: u32,
    pub(crate) stack: u32,
    pub(crate) instruction: u32,
    /// How far above the stack pointer arguments begin when a function is entered.
    pub(crate) stack_args: u64,
}

const X86_64: Registers =
    Registers { args: &[112, 104, 96, 88, 72, 64], result: 80, stack: 152, instruction: 128, stack_args: 8 };
const AARCH64: Registers =
    Registers { args: &[0, 8, 16, 24, 32, 40, 48, 56], result: 0, stack: 248, instruction: 256, stack_args: 0 };

/// The registers of a machine.
pub(crate) fn registers(arch: Arch) -> &'static Registers {
    match arch {
        Arch::X86_64 => &X86_64,
        Arch::Aarch64 => &AARCH64,
    }
}
