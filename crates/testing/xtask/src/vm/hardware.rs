//! Processors that a guest can have, and the settings that depend on them.

use clap::ValueEnum;

/// Architectures, as typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Architecture {
    /// Architecture that CI runs.
    #[default]
    #[value(name = "x86-64")]
    X86_64,
    /// Architecture that is run by hand: Rust's library for it and a linker must be there.
    Aarch64,
}

impl Architecture {
    /// Returns the settings of this architecture.
    pub(crate) fn hardware(self) -> &'static Hardware {
        match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        }
    }
}

/// Kind of guest.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Hardware {
    /// Architecture of its processor.
    pub(crate) architecture: Architecture,
    /// Rust's target name.
    pub(crate) target: &'static str,
    /// Linker, if this machine's own linker is not the right one.
    pub(crate) linker: Option<&'static str>,
    /// Runner of its programs here, if this machine cannot run them itself.
    pub(crate) runner: Option<&'static str>,
    /// Debian's name of the architecture.
    pub(crate) debian: &'static str,
    /// Folder of its kernels and its guests' files, below the target directory.
    pub(crate) folder: &'static str,
    /// Emulator, and the package that has it.
    pub(crate) qemu: (&'static str, &'static str),
    /// QEMU's arguments for its parts. The last serial port of both is the one for answers.
    pub(crate) parts: &'static [&'static str],
    /// Kernel's name of the first serial port.
    pub(crate) console: &'static str,
    /// Device of the second serial port, if `-serial` alone does not plug it in.
    pub(crate) answers_device: Option<&'static str>,
}

impl Hardware {
    /// Returns the name of one of binutils' programs for this architecture.
    pub(crate) fn binutil(&self, name: &str) -> String {
        let prefix = self.linker.and_then(|it| it.strip_suffix("gcc"));
        format!("{}{name}", prefix.unwrap_or_default())
    }

    /// Returns the architecture as its kernel names it (`uname -m`).
    pub(crate) fn machine(&self) -> &'static str {
        self.target.split('-').next().unwrap_or(self.target)
    }
}

/// Hardware of x86-64: all features that QEMU can emulate, but for the exchange of 16 bytes. Its
/// flags come out wrong in QEMU 7.2 near an interrupt, and Linux 6.12, whose allocator uses it,
/// panics; Linux does without if the processor has none.
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

/// Hardware of aarch64: a server's processor, with the atomic instructions of Armv8.1; the board
/// has one serial port of its own.
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
