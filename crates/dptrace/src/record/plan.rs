//! What has to be attached where, found in a process's files.

use std::collections::HashMap;
use std::path::PathBuf;

use bpf_codegen::event::{self, EventId, Setting, Source};
use bpf_codegen::{FieldKind, Layout, Module, ProgramDef, ProgramKind};
use bpf_session::{Features, UprobePlace};
use host::ElfFile;
use objects::ProbeArg;
use probes::args::ArgSpec;
use probes::usdt::{Place, Probe, UsdtProbes};

use super::wanted::Wanted;
use crate::names;
use crate::target::printable;

/// The longest string that is recorded whole, in bytes. SPDK's longest, an NQN, has 223 (NVMe base specification 2.0,
/// section 4.7); a bdev's name can be longer.
const STRING_BYTES: u32 = 1024;

/// A probe as it arrives and as it is written.
#[derive(Clone, Debug)]
pub(crate) struct EventForm {
    pub(crate) probe: String,
    pub(crate) args: Vec<ProbeArg>,
    pub(crate) layout: Layout,
}

/// One program at its places in one file.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) program: usize,
    pub(crate) path: PathBuf,
    pub(crate) places: Vec<UprobePlace>,
}

/// A probe that was found, for telling.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) probe: String,
    /// The file, as the process calls it.
    pub(crate) file: String,
    pub(crate) places: usize,
}

/// Programs, and where they go.
#[derive(Debug)]
pub(crate) struct Plan {
    wanted: Vec<Wanted>,
    features: Features,
    ring_bytes: u32,
    programs: HashMap<ProgramKey, usize>,
    pub(crate) module: Module,
    /// By the number that events carry.
    pub(crate) forms: Vec<EventForm>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) found: Vec<Found>,
    /// What the user should know of what was found.
    pub(crate) remarks: Vec<String>,
    /// Every probe that was seen, for saying which are near to one that was not.
    seen: Vec<String>,
}

/// What tells one program from another: one that reads the same things serves any number of places and probes.
#[derive(PartialEq, Eq, Hash, Debug)]
struct ProgramKey {
    layout: Layout,
    sources: Vec<Source>,
    id: EventId,
}

impl Plan {
    /// A plan with nothing in it yet. `ring_bytes` is the ring buffer's size, a power of two.
    pub(crate) fn new(wanted: Vec<Wanted>, features: Features, ring_bytes: u32) -> Self {
        let forms = wanted.iter().map(EventForm::of).collect();
        Self {
            wanted,
            features,
            ring_bytes,
            programs: HashMap::new(),
            module: Module { maps: event::maps(ring_bytes), programs: Vec::new() },
            forms,
            attachments: Vec::new(),
            found: Vec::new(),
            remarks: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// What the kernel can do.
    pub(crate) fn features(&self) -> Features {
        self.features
    }

    /// Looks for the wanted probes in a file.
    pub(crate) fn look_into(&mut self, file: &ElfFile) -> anyhow::Result<()> {
        let probes = self.read(file)?;
        for probe in &probes {
            for id in 0..self.wanted.len() {
                let wanted = &self.wanted[id];
                if *wanted.provider == *probe.provider && *wanted.name == *probe.name {
                    self.add(id, probe, file)?;
                }
            }
        }
        self.seen.extend(probes.iter().map(|probe| format!("{}:{}", probe.provider, probe.name)));
        Ok(())
    }

    /// The wanted probes that were in no file.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = self.wanted.iter().map(Wanted::full_name);
        let mut missing: Vec<String> =
            missing.filter(|name| !self.found.iter().any(|found| found.probe == *name)).collect();
        missing.dedup();
        missing
    }

    /// What is near to a probe that is missing, as words to follow its name.
    pub(crate) fn hint(&self, missing: &str) -> String {
        names::hint(missing, self.seen.iter().map(String::as_str))
    }

    /// Whether there is any USDT probe at all in what was looked into.
    pub(crate) fn has_seen_probes(&self) -> bool {
        !self.seen.is_empty()
    }

    fn read(&mut self, file: &ElfFile) -> anyhow::Result<Vec<Probe>> {
        let mut probes = UsdtProbes::read(&file.image()?);
        let wanted = &self.wanted;
        let is_wanted = |probe: &Probe| {
            wanted.iter().any(|wanted| *wanted.provider == *probe.provider && *wanted.name == *probe.name)
        };
        let symbols = probes.probes.iter().filter(|probe| is_wanted(probe)).flat_map(|probe| &probe.places);
        let needs_symbols = symbols.flat_map(|place| &place.args).any(|arg| arg.wanted_symbol().is_some());
        if needs_symbols {
            let whole = file.whole()?;
            let debug = whole.debug_file();
            let debug = debug.as_ref().and_then(|debug| debug.image().ok());
            probes.resolve(&whole.image()?, debug.as_ref());
        }
        if let Some(first) = probes.faults.first() {
            let path = printable(file.path());
            self.remarks.push(format!("{path}: left out {} broken USDT notes; first, {first}", probes.broken));
        }
        Ok(probes.probes)
    }

    fn add(&mut self, id: usize, probe: &Probe, file: &ElfFile) -> anyhow::Result<()> {
        let name = self.wanted[id].full_name();
        for place in &probe.places {
            let program = self.program(id, place, &name)?;
            let place = UprobePlace {
                offset: place.offset.0,
                semaphore: place.semaphore.map(|semaphore| semaphore.offset.0),
                cookie: id as u64,
            };
            let same = |known: &&mut Attachment| known.program == program && known.path == file.opened();
            match self.attachments.iter_mut().find(same) {
                Some(known) => known.places.push(place),
                None => {
                    self.attachments.push(Attachment { program, path: file.opened().to_owned(), places: vec![place] });
                }
            }
        }
        self.found.push(Found { probe: name, file: printable(file.path()), places: probe.places.len() });
        Ok(())
    }

    /// The program that reads this probe's arguments where they are at this place.
    fn program(&mut self, id: usize, place: &Place, name: &str) -> anyhow::Result<usize> {
        let form = &self.forms[id];
        let mut sources = Vec::new();
        for (arg, number) in form.args.iter().zip(0..form.layout.len()) {
            let Some(spec) = place.args.get(number) else {
                self.remarks.push(format!("{name} has no argument {}, the {}.", arg.name, number + 1));
                sources.push(Source::Missing);
                continue;
            };
            if let Some(why) = spec.unreadable() {
                self.remarks.push(format!("{name}: the argument {} can't be read: {why}", arg.name));
            }
            // What the note calls the place is for people: without it, equal places are equal.
            sources.push(Source::Arg(ArgSpec { text: "".into(), ..spec.clone() }));
        }
        let id_from = if self.features.cookies { EventId::Cookie } else { EventId::Fixed(id as u32) };
        let key = ProgramKey { layout: form.layout.clone(), sources, id: id_from };
        if let Some(&known) = self.programs.get(&key) {
            return Ok(known);
        }
        let sleepable = self.features.sleepable_uprobes;
        let setting = Setting { id: key.id, sleepable, ring_bytes: self.ring_bytes };
        let code = event::program(&key.layout, &key.sources, setting)?;
        let number = self.module.programs.len();
        let name = format!("{}_{number}", self.wanted[id].name);
        self.module.programs.push(ProgramDef { name, kind: ProgramKind::Uprobe, target: None, sleepable, code });
        self.programs.insert(key, number);
        Ok(number)
    }
}

impl EventForm {
    fn of(wanted: &Wanted) -> Self {
        let kind = |arg: &ProbeArg| {
            if arg.string { FieldKind::Text { capacity: STRING_BYTES } } else { FieldKind::Number }
        };
        let kinds: Vec<FieldKind> = wanted.args.iter().map(kind).collect();
        Self { probe: wanted.name.clone(), args: wanted.args.clone(), layout: Layout::new(&kinds) }
    }
}
