//! Maps and programs, from a module to the kernel.

use std::collections::HashMap;

use bpf_codegen::{Module, ProgramDef, ProgramKind};
use bpf_insn::asm::Reference;
use bpf_insn::{Code, Imm64, Insn};
use sys::bpf::{AttachType, Link, Map, MapSpec, Program, ProgramSpec, ProgramType};

use crate::error::SessionError;
use crate::features::Features;

/// How many lines of the verifier's log are shown: the last ones say what it did not like.
const LOG_LINES: usize = 12;

/// Maps, programs and links that live together.
#[derive(Debug)]
pub struct Session {
    features: Features,
    maps: HashMap<String, Map>,
    programs: Vec<Loaded>,
    pub(crate) links: Vec<Link>,
    /// What was counted of programs that are gone.
    misses: u64,
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) kind: ProgramKind,
    pub(crate) program: Program,
}

impl Session {
    /// Makes the module's maps and loads its programs.
    pub fn load(module: &Module, features: Features) -> Result<Self, SessionError> {
        let mut session = Self { features, maps: HashMap::new(), programs: Vec::new(), links: Vec::new(), misses: 0 };
        for def in &module.maps {
            let spec = MapSpec {
                name: &def.name,
                kind: def.kind as u32,
                key_size: def.key_size,
                value_size: def.value_size,
                max_entries: def.max_entries,
                flags: def.flags,
            };
            let name = || def.name.clone();
            let failed = |source| SessionError::Map { name: name(), source };
            let map = Map::create(&spec).map_err(|error| SessionError::permission_or(error, failed))?;
            session.maps.insert(name(), map);
        }
        for def in &module.programs {
            let program = session.program(def)?;
            session.programs.push(Loaded { kind: def.kind, program });
        }
        Ok(session)
    }

    /// The map of this name.
    pub fn map(&self, name: &str) -> Option<&Map> {
        self.maps.get(name)
    }

    /// What the kernel can do.
    pub fn features(&self) -> Features {
        self.features
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// How often the kernel skipped a program because one was running on that CPU.
    pub fn misses(&self) -> u64 {
        let of = |loaded: &Loaded| loaded.program.stats().map_or(0, |stats| stats.misses);
        self.misses + self.programs.iter().map(of).sum::<u64>()
    }

    /// Ends all links. Programs that run at this moment still come to their end.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    pub(crate) fn loaded(&self, index: usize) -> &Loaded {
        &self.programs[index]
    }

    fn program(&self, def: &ProgramDef) -> Result<Program, SessionError> {
        let insns = self.link_up(def)?;
        let (kind, attach) = self.kernel_kind(def.kind);
        let spec = ProgramSpec {
            name: &def.name,
            kind,
            attach,
            attach_btf_id: def.target.as_ref().map_or(0, |target| target.btf_id),
            sleepable: def.sleepable,
            insns: &insns,
            functions: None,
        };
        Program::load(&spec).map_err(|error| {
            let refused =
                |source| SessionError::Refused { program: def.name.clone(), log: last_lines(&error.log), source };
            SessionError::permission_or(error.source, refused)
        })
    }

    /// A module's kind in the kernel's terms. Uprobes' programs are loaded for one way to attach them and no other.
    fn kernel_kind(&self, kind: ProgramKind) -> (ProgramType, AttachType) {
        match kind {
            ProgramKind::Uprobe | ProgramKind::UprobeReturn if self.features.uprobe_multi => {
                (ProgramType::Kprobe, AttachType::UprobeMulti)
            }
            ProgramKind::Uprobe | ProgramKind::UprobeReturn | ProgramKind::Kprobe | ProgramKind::KprobeReturn => {
                (ProgramType::Kprobe, AttachType::None)
            }
            ProgramKind::Tracepoint => (ProgramType::Tracepoint, AttachType::None),
            ProgramKind::RawTracepoint => (ProgramType::RawTracepoint, AttachType::None),
            ProgramKind::PerfEvent => (ProgramType::PerfEvent, AttachType::None),
            ProgramKind::BtfTracepoint => (ProgramType::Tracing, AttachType::RawTracepoint),
            ProgramKind::Fentry => (ProgramType::Tracing, AttachType::FunctionEntry),
            ProgramKind::Fexit => (ProgramType::Tracing, AttachType::FunctionExit),
        }
    }

    /// The program's bytes with the maps' descriptors where it names maps.
    fn link_up(&self, def: &ProgramDef) -> Result<Vec<u8>, SessionError> {
        use std::os::fd::{AsFd as _, AsRawFd as _};
        let mut bytes = Vec::with_capacity(code_bytes(&def.code));
        for line in def.code.lines() {
            let insn = match (&line.reference, line.insn) {
                (None, insn) => insn,
                (Some(Reference::Map(name)), Insn::LoadImm64 { dst, .. }) if self.maps.contains_key(name) => {
                    Insn::LoadImm64 { dst, imm: Imm64::MapFd(self.maps[name].as_fd().as_raw_fd()) }
                }
                // A map of one element whose value the program addresses directly. Since Linux 5.2.
                (Some(Reference::Data(name)), Insn::LoadImm64 { dst, imm: Imm64::Value(off) })
                    if self.maps.contains_key(name) =>
                {
                    let fd = self.maps[name].as_fd().as_raw_fd();
                    Insn::LoadImm64 { dst, imm: Imm64::MapValue { fd, off: off as i32 } }
                }
                (Some(reference), _) => {
                    let (program, symbol) = (def.name.clone(), reference.symbol().to_owned());
                    return Err(SessionError::Unresolved { program, symbol });
                }
            };
            insn.encode_into(&mut bytes);
        }
        Ok(bytes)
    }
}

fn code_bytes(code: &Code) -> usize {
    code.slots() as usize * bpf_insn::insn::INSN_BYTES
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
