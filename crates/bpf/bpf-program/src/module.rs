//! Programs and maps that belong together, before anything is loaded.

use std::ffi::CStr;
use std::fmt;

use bpf_insn::asm::{Line, Reference};
use bpf_insn::{Code, MapDef, ObjectBuilder};
use elf::CodePlace;

/// What a program is attached to, as far as its loading depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProgramKind {
    /// A place in a file that processes run, a USDT probe's too.
    Uprobe,
    /// A function's return, in a file that processes run.
    UprobeReturn,
    /// A kernel function.
    Kprobe,
    /// A kernel function's return.
    KprobeReturn,
    /// A tracepoint's record.
    Tracepoint,
    /// A tracepoint's arguments.
    RawTracepoint,
    /// A sample of a perf event.
    PerfEvent,
    /// A tracepoint's arguments with the types of the kernel's BTF. Since Linux 5.5.
    BtfTracepoint,
    /// A kernel function's entry, with the types of the kernel's BTF. Since Linux 5.5.
    Fentry,
    /// A kernel function's return, likewise.
    Fexit,
    /// Objects of the kernel's, one after the other. Since Linux 5.8.
    Iterator,
}

impl ProgramKind {
    /// The section that loaders know it by (libbpf's `section_defs`).
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

/// A place in a file where a program is attached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UprobePlace {
    /// Where.
    pub at: CodePlace,
    /// The semaphore to raise while the program is attached, as an offset in the file.
    pub semaphore: Option<u64>,
    /// The number by which the program recognizes the place. Since Linux 5.15; before, programs do not get it.
    pub cookie: u64,
}

/// A function or a tracepoint of the kernel's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BtfTarget {
    /// Its name.
    pub name: String,
    /// Its id in the kernel's BTF: a function's, or the typedef's `btf_trace_NAME` of a tracepoint.
    pub btf_id: u32,
}

/// A program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramDef {
    /// A C identifier; the kernel shows its first 15 characters.
    pub name: String,
    /// What it is for.
    pub kind: ProgramKind,
    /// What it is for in the kernel, for the kinds that are loaded for one thing.
    pub target: Option<BtfTarget>,
    /// Whether it may wait for a page of memory. Since Linux 5.10; for [`ProgramKind::Uprobe`] since 6.0.
    pub sleepable: bool,
    /// What it does. References are to this module's maps and to its own subprograms.
    pub code: Code,
    /// What helpers call back. Since Linux 5.13.
    pub subprograms: Vec<Subprogram>,
}

impl ProgramDef {
    /// Makes a program that may not wait, and is not loaded for one thing.
    pub fn new(name: &str, kind: ProgramKind, code: Code) -> Self {
        Self { name: name.to_owned(), kind, target: None, sleepable: false, code, subprograms: Vec::new() }
    }

    /// The program of a tracepoint with its types, whose name and id in the kernel's BTF these are; it has the same name.
    pub fn of_tracepoint(name: &str, btf_id: u32, code: Code) -> Self {
        let target = Some(BtfTarget { name: name.to_owned(), btf_id });
        Self { target, ..Self::new(name, ProgramKind::BtfTracepoint, code) }
    }
}

/// A piece of a program that a helper calls back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subprogram {
    /// A C identifier, by which the program refers to it.
    pub name: String,
    /// What it does.
    pub code: Code,
}

/// The licence that programs are loaded with. The kernel allows most helpers to those only whose licence it takes to be
/// compatible with its own, and these six are all of them (`license_is_gpl_compatible` of `include/linux/license.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct License(&'static CStr);

impl License {
    /// The licences that there are.
    pub const ALL: [Self; 6] = [
        Self(c"GPL"),
        Self(c"GPL v2"),
        Self(c"GPL and additional rights"),
        Self(c"Dual BSD/GPL"),
        Self(c"Dual MIT/GPL"),
        Self(c"Dual MPL/GPL"),
    ];

    /// The licence of this name, if it is one of [`License::ALL`].
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|license| license.0.to_bytes() == name.as_bytes())
    }

    /// Its name, as the kernel takes it.
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
    /// What all programs are loaded with.
    pub license: License,
    /// The maps.
    pub maps: Vec<MapDef>,
    /// The programs.
    pub programs: Vec<ProgramDef>,
}

impl Module {
    /// The same as an ELF object, for other loaders and for people.
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
            // libbpf's mark for programs that may wait.
            let section = format!("{}{}", program.kind.section(), if program.sleepable { ".s" } else { "" });
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

    /// Whether programs address the map's one value directly: loaders know such a map as data.
    pub fn is_data(&self, map: &str) -> bool {
        let is_it = |line: &Line| matches!(&line.reference, Some(Reference::Data(name)) if name == map);
        let in_code = |code: &Code| code.lines().iter().any(is_it);
        self.programs
            .iter()
            .any(|program| in_code(&program.code) || program.subprograms.iter().any(|sub| in_code(&sub.code)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_by_name() {
        assert_eq!(License::named("Dual MIT/GPL").map(|license| license.to_string()).as_deref(), Some("Dual MIT/GPL"));
        assert_eq!(License::named("GPL"), Some(License::default()));
        assert!(["MIT", "gpl", "", "GPL v3"].into_iter().all(|name| License::named(name).is_none()));
    }
}
