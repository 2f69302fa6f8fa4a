//! Programs and maps that belong together, before anything is loaded.

use std::ffi::CStr;
use std::fmt;

use bpf_insn::asm::{Line, Reference};
use bpf_insn::{Code, MapDef, ObjectBuilder};
use elf::CodePlace;

/// Attach type of a program, as far as its loading depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProgramKind {
    /// Place in a file that processes run, including those of USDT probes.
    Uprobe,
    /// Return of a function in a file that processes run.
    UprobeReturn,
    /// Kernel function.
    Kprobe,
    /// Return of a kernel function.
    KprobeReturn,
    /// Record of a tracepoint.
    Tracepoint,
    /// Arguments of a tracepoint.
    RawTracepoint,
    /// Sample of a perf event.
    PerfEvent,
    /// Arguments of a tracepoint with the types of the kernel's BTF. Since Linux 5.5.
    BtfTracepoint,
    /// Entry of a kernel function, with the types of the kernel's BTF. Since Linux 5.5.
    Fentry,
    /// Return of a kernel function, with the types of the kernel's BTF. Since Linux 5.5.
    Fexit,
    /// Kernel objects, one after the other. Since Linux 5.8.
    Iterator,
}

impl ProgramKind {
    /// Returns the section name by which loaders know this kind (libbpf's `section_defs`).
    pub fn section(self) -> &'static str {
        match self {
            Self::Uprobe => "uprobe",
            Self::UprobeReturn => "uretprobe",
            Self::Kprobe => "kprobe",
            Self::KprobeReturn => "kretprobe",
            Self::Tracepoint => "tracepoint",
            Self::RawTracepoint => "raw_tp",
            Self::PerfEvent => "perf_event",
            Self::BtfTracepoint => "tp_btf",
            Self::Fentry => "fentry",
            Self::Fexit => "fexit",
            Self::Iterator => "iter",
        }
    }
}

/// Place in a file where a program is attached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UprobePlace {
    /// Location in the code.
    pub at: CodePlace,
    /// Semaphore to raise while the program is attached, as an offset in the file.
    pub semaphore: Option<u64>,
    /// Number by which the program recognises the place. Since Linux 5.15; earlier kernels do not
    /// pass it.
    pub cookie: u64,
}

/// Function or tracepoint of the kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BtfTarget {
    /// Name of the function or tracepoint.
    pub name: String,
    /// Id in the kernel's BTF: of the function, or of the tracepoint's typedef `btf_trace_NAME`.
    pub btf_id: u32,
}

/// A program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramDef {
    /// C identifier; the kernel shows its first 15 characters.
    pub name: String,
    /// Attach type.
    pub kind: ProgramKind,
    /// Kernel target, for the kinds that are loaded for a single one.
    pub target: Option<BtfTarget>,
    /// True if it may wait for a page of memory. Since Linux 5.10; for [`ProgramKind::Uprobe`]
    /// since 6.0.
    pub sleepable: bool,
    /// Instructions; they refer to this module's maps and to the program's own subprograms.
    pub code: Code,
    /// Callbacks of helpers. Since Linux 5.13.
    pub subprograms: Vec<Subprogram>,
}

impl ProgramDef {
    /// Makes a program that may not sleep and has no kernel target.
    pub fn new(name: &str, kind: ProgramKind, code: Code) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            target: None,
            sleepable: false,
            code,
            subprograms: Vec::new(),
        }
    }

    /// Makes the program of a typed tracepoint, from the tracepoint's name, which it shares, and id
    /// in the kernel's BTF.
    pub fn for_tracepoint(name: &str, btf_id: u32, code: Code) -> Self {
        let target = Some(BtfTarget {
            name: name.to_owned(),
            btf_id,
        });
        Self {
            target,
            ..Self::new(name, ProgramKind::BtfTracepoint, code)
        }
    }
}

/// Piece of a program that a helper calls back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subprogram {
    /// C identifier, by which the program refers to it.
    pub name: String,
    /// Instructions.
    pub code: Code,
}

/// Licence that programs are loaded with. The kernel allows most helpers only if it takes the
/// licence to be compatible with its own; these six are all of them (`license_is_gpl_compatible` of
/// `include/linux/license.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct License(&'static CStr);

impl License {
    /// All permitted licences.
    pub const ALL: [Self; 6] = [
        Self(c"GPL"),
        Self(c"GPL v2"),
        Self(c"GPL and additional rights"),
        Self(c"Dual BSD/GPL"),
        Self(c"Dual MIT/GPL"),
        Self(c"Dual MPL/GPL"),
    ];

    /// Returns the licence of this name, if it is one of [`License::ALL`].
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|license| license.0.to_bytes() == name.as_bytes())
    }

    /// Returns the name as the kernel takes it.
    pub fn name(self) -> &'static CStr {
        self.0
    }
}

impl Default for License {
    fn default() -> Self {
        Self(c"GPL")
    }
}

impl fmt::Display for License {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string_lossy().fmt(f)
    }
}

/// Programs, and the maps that they name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Module {
    /// Licence of all programs.
    pub license: License,
    /// Maps that the programs name.
    pub maps: Vec<MapDef>,
    /// Programs, in the order of loading.
    pub programs: Vec<ProgramDef>,
}

impl Module {
    /// Returns the module as an ELF object, for other loaders and for people.
    pub fn to_object(&self) -> ObjectBuilder {
        let mut object = ObjectBuilder::new(&self.license.to_string());
        for map in &self.maps {
            if self.is_data(&map.name) {
                object.zeroed(&map.name, map.value_size as usize);
            } else {
                object.map(map.clone());
            }
        }
        for program in &self.programs {
            // libbpf's mark for programs that may sleep.
            let section = format!(
                "{}{}",
                program.kind.section(),
                if program.sleepable { ".s" } else { "" }
            );
            let section = match &program.target {
                Some(target) => format!("{section}/{}", target.name),
                None => section,
            };
            object.program(&section, &program.name, program.code.clone());
            for sub in &program.subprograms {
                object.subprogram(&sub.name, sub.code.clone());
            }
        }
        object
    }

    /// Returns whether programs address the map's only value directly; loaders know such a map as
    /// data.
    pub fn is_data(&self, map: &str) -> bool {
        let matches =
            |line: &Line| matches!(&line.reference, Some(Reference::Data(name)) if name == map);
        let in_code = |code: &Code| code.lines().iter().any(matches);
        self.programs.iter().any(|program| {
            in_code(&program.code) || program.subprograms.iter().any(|sub| in_code(&sub.code))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_by_name() {
        assert_eq!(
            License::named("Dual MIT/GPL")
                .map(|license| license.to_string())
                .as_deref(),
            Some("Dual MIT/GPL")
        );
        assert_eq!(License::named("GPL"), Some(License::default()));
        assert!(
            ["MIT", "gpl", "", "GPL v3"]
                .into_iter()
                .all(|name| License::named(name).is_none())
        );
    }
}
