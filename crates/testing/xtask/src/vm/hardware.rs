//! The processors that a guest can have, and what depends on them.

use clap::ValueEnum;

/// The machines, as typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(super) enum Architecture {
    /// What CI runs.
    #[default]
    #[value(name = "x86-64")]
    X86_64,
    /// By hand: Rust's library of it and a linker must be there.
    Aarch64,
}

impl Architecture {
    /// What differs.
    pub(super) fn hardware(self) -> &'static Hardware {
        match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        }
    }
}

/// A kind of guest.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Hardware {
    /// Which it is.
    pub(super) architecture: Architecture,
    /// Rust's name of it.
    pub(super) target: &'static str,
    /// What links for it, where that is not this machine's own linker.
    pub(super) linker: Option<&'static str>,
    /// What runs its programs here, where they are not this machine's own.
    pub(super) runner: Option<&'static str>,
    /// Debian's name of it.
    pub(super) debian: &'static str,
    /// Where its kernels and its guests' files are, below the target directory.
    pub(super) folder: &'static str,
    /// What emulates it, and the package that has that.
    pub(super) qemu: (&'static str, &'static str),
    /// What it is made of. The last serial port of both is the one for answers.
    pub(super) parts: &'static [&'static str],
    /// The kernel's name of the first serial port.
    pub(super) console: &'static str,
    /// How the second serial port is plugged in, where `-serial` alone doesn't do it.
    pub(super) answers_device: Option<&'static str>,
}

/// The processor is all that QEMU can emulate, but for the exchange of 16 bytes: its flags come out wrong in QEMU 7.2 where
/// an interrupt is near, and Linux 6.12, whose allocator uses it, panics. Linux does without where the processor has none.
const X86_64: Hardware = Hardware {
    architecture: Architecture::X86_64,
    target: "x86_64-unknown-linux-gnu",
    linker: None,
    runner: None,
    debian: "amd64",
    folder: "vm",
    qemu: ("qemu-system-x86_64", "qemu-system-x86"),
    parts: &["-cpu", "max,cx16=off"],
    console: "ttyS0",
    answers_device: None,
};

/// The processor is one of servers, with the atomic instructions of Armv8.1; the board has one serial port of its own.
const AARCH64: Hardware = Hardware {
    architecture: Architecture::Aarch64,
    target: "aarch64-unknown-linux-gnu",
    linker: Some("aarch64-linux-gnu-gcc"),
    runner: Some("qemu-aarch64-static"),
    debian: "arm64",
    folder: "vm/aarch64",
    qemu: ("qemu-system-aarch64", "qemu-system-arm"),
    parts: &["-machine", "virt,gic-version=3", "-cpu", "neoverse-n1"],
    console: "ttyAMA0",
    answers_device: Some("pci-serial"),
};
