//! What has to be attached where, found in a process's files.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::bail;
use bpf_program::event::{self, EventId, Setting, Source};
use bpf_program::{FieldKind, Layout, Module, ProgramDef, ProgramKind};
use bpf_session::{Features, UprobePlace};
use host::ElfFile;
use objects::{ProbeArg, WantedProbe};
use usdt::{Place, Probe, UsdtProbes};

use crate::failure::note;
use crate::names;
use crate::target::printable;

/// The longest string that is recorded whole, in bytes. SPDK's longest, an NQN, has 223 (NVMe base specification 2.0,
/// section 4.7); a bdev's name can be longer.
const STRING_BYTES: u32 = 1024;

/// A probe as it arrives and as it is written.
#[derive(Clone, Debug)]
pub(crate) struct EventForm {
    provider: String,
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

/// What identifies a program: one program that reads the same values serves any number of places and probes.
#[derive(PartialEq, Eq, Hash, Debug)]
struct ProgramKey {
    layout: Layout,
    sources: Vec<Source>,
    id: EventId,
}

impl Plan {
    /// A plan with nothing in it yet. `ring_bytes` is the ring buffer's size, a power of two.
    pub(crate) fn new(wanted: &[WantedProbe<'_>], features: Features, ring_bytes: u32) -> Self {
        let forms = wanted.iter().map(EventForm::of).collect();
        Self {
            features,
            ring_bytes,
            programs: HashMap::new(),
            module: Module { maps: event::maps(ring_bytes), ..Module::default() },
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
            if let Some(id) = self.forms.iter().position(|form| form.is_of(probe)) {
                self.add(id, probe, file)?;
            }
        }
        self.seen.extend(probes.iter().map(|probe| format!("{}:{}", probe.provider, probe.name)));
        Ok(())
    }

    /// The wanted probes that were in no file.
    fn missing(&self) -> Vec<String> {
        let names = self.forms.iter().map(EventForm::full_name);
        names.filter(|name| !self.found.iter().any(|found| found.probe == *name)).collect()
    }

    /// Reports the probes that are missing in `place`; it is an error if all are missing.
    pub(crate) fn report_missing(&self, place: &str) -> anyhow::Result<()> {
        let missing = self.missing();
        if self.found.is_empty() {
            // A note that is broken may be why.
            self.remarks.iter().for_each(|remark| note(remark));
        }
        if self.seen.is_empty() {
            bail!("{place} has no USDT probes; SPDK has them if it was configured with --with-usdt");
        }
        if self.found.is_empty() {
            let hint = missing.first().map_or_else(String::new, |first| self.hint(first));
            bail!(
                "{place} has none of the probes {}{hint}; SPDK has them if it was configured with --with-usdt; dptrace list \
                 shows its probes",
                missing.join(", ")
            );
        }
        for name in &missing {
            note(&format!("{place} has no probe {name}{}", self.hint(name)));
        }
        Ok(())
    }

    /// What is near to a probe that is missing, as words to follow its name.
    fn hint(&self, missing: &str) -> String {
        names::hint(missing, self.seen.iter().map(String::as_str))
    }

    fn read(&mut self, file: &ElfFile) -> anyhow::Result<Vec<Probe>> {
        let mut probes = UsdtProbes::read_with(&file.image()?, &file.code()?);
        let is_wanted = |probe: &&Probe| self.forms.iter().any(|form| form.is_of(probe));
        let places = probes.probes.iter().filter(is_wanted).flat_map(|probe| &probe.places);
        let needs_symbols = places.flat_map(|place| place.args.iter()).any(|arg| arg.wanted_symbol().is_some());
        if needs_symbols {
            let whole = file.whole()?;
            let debug = whole.debug_file();
            let debug = debug.as_ref().and_then(|debug| debug.image().ok());
            probes.resolve(&whole.image()?, debug.as_ref());
        }
        if let Some(first) = probes.faults.first() {
            let path = printable(file.path());
            self.remarks.push(format!("{path}: left out {} invalid USDT notes; the first: {first}", probes.broken));
        }
        Ok(probes.probes)
    }

    fn add(&mut self, id: usize, probe: &Probe, file: &ElfFile) -> anyhow::Result<()> {
        let name = self.forms[id].full_name();
        for place in &probe.places {
            let program = self.program(id, place, &name)?;
            let place = UprobePlace {
                at: place.at,
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
            sources.push(Source::Arg(spec.clone()));
        }
        let id_from = if self.features.cookies { EventId::Cookie } else { EventId::Fixed(id as u32) };
        let key = ProgramKey { layout: form.layout.clone(), sources, id: id_from };
        if let Some(&known) = self.programs.get(&key) {
            return Ok(known);
        }
        let sleepable = self.features.sleepable_uprobes();
        let setting = Setting { id: key.id, sleepable, ring_bytes: self.ring_bytes };
        let code = event::program(&key.layout, &key.sources, setting)?;
        let number = self.module.programs.len();
        let name = format!("{}_{number}", self.forms[id].probe);
        self.module.programs.push(ProgramDef {
            name,
            kind: ProgramKind::Uprobe,
            target: None,
            sleepable,
            code,
            subprograms: Vec::new(),
        });
        self.programs.insert(key, number);
        Ok(number)
    }
}

impl EventForm {
    fn of(wanted: &WantedProbe<'_>) -> Self {
        let kind = |arg: &ProbeArg| {
            if arg.string { FieldKind::Text { capacity: STRING_BYTES } } else { FieldKind::Number }
        };
        let kinds: Vec<FieldKind> = wanted.args.iter().map(kind).collect();
        let (provider, probe) = (wanted.provider.to_owned(), wanted.name.to_owned());
        Self { provider, probe, args: wanted.args.to_vec(), layout: Layout::new(&kinds) }
    }

    fn is_of(&self, probe: &Probe) -> bool {
        *self.provider == *probe.provider && *self.probe == *probe.name
    }

    fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.probe)
    }
}
