//! Plan of the programs to attach, and their places in a process's files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bpf_program::event::{self, EventId, Setting, Source};
use bpf_program::{FieldKind, Layout, Module, ProgramDef, ProgramKind};
use bpf_session::{Features, UprobePlace};
use host::ElfFile;
use objects::{ProbeArg, ProbeRequest};
use text::printable;
use usdt::{Probe, ProbeLocation, UsdtProbes};

use crate::probes::Error;

/// Limit on the recorded length of a string, in bytes. SPDK's longest, an NQN, has 223 (NVMe base
/// specification 2.0, section 4.7); a bdev's name can be longer.
const STRING_BYTES: u32 = 1024;

/// Schema of a probe's events, as they arrive and as they are written.
#[derive(Clone, Debug)]
pub(crate) struct EventSchema {
    provider: String,
    pub(crate) probe: String,
    pub(crate) args: Vec<ProbeArg>,
    pub(crate) layout: Layout,
}

/// One program, and its places in one file.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) program: usize,
    pub(crate) path: PathBuf,
    pub(crate) places: Vec<UprobePlace>,
}

/// Wanted probe that was found in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedProbe {
    /// `provider:name`.
    pub probe: String,
    /// File, by the process's name for it, escaped.
    pub file: String,
    /// Number of places in its code with the probe.
    pub places: usize,
}

/// Programs, and the places to attach them.
#[derive(Debug)]
pub struct AttachPlan {
    features: Features,
    ring_bytes: u32,
    programs: HashMap<ProgramKey, usize>,
    pub(crate) module: Module,
    /// Schemas, by the number that events carry.
    pub(crate) forms: Vec<EventSchema>,
    pub(crate) attachments: Vec<Attachment>,
    found: Vec<ResolvedProbe>,
    remarks: Vec<String>,
    seen: Vec<String>,
}

/// Key of a program: one program that reads the same values serves any number of places and probes.
#[derive(PartialEq, Eq, Hash, Debug)]
struct ProgramKey {
    layout: Layout,
    sources: Vec<Source>,
    id: EventId,
}

impl AttachPlan {
    /// Creates a plan for these probes, without any file yet. `ring_bytes` is the ring buffer's
    /// size, a power of two.
    pub fn new(wanted: &[ProbeRequest<'_>], features: Features, ring_bytes: u32) -> Self {
        let forms = wanted.iter().map(EventSchema::from_request).collect();
        Self {
            features,
            ring_bytes,
            programs: HashMap::new(),
            module: Module {
                maps: event::maps(ring_bytes),
                ..Module::default()
            },
            forms,
            attachments: Vec::new(),
            found: Vec::new(),
            remarks: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Returns the features of the kernel.
    pub(crate) fn features(&self) -> Features {
        self.features
    }

    /// Adds the wanted probes of a file.
    pub fn add_file(&mut self, file: &ElfFile) -> Result<(), Error> {
        let probes = self.read(file)?;
        for probe in &probes {
            if let Some(id) = self.forms.iter().position(|form| form.is_of(probe)) {
                self.add(id, probe, file)?;
            }
        }
        self.seen.extend(
            probes
                .iter()
                .map(|probe| format!("{}:{}", probe.provider, probe.name)),
        );
        Ok(())
    }

    /// Returns the probes that were found, by file.
    pub fn found(&self) -> &[ResolvedProbe] {
        &self.found
    }

    /// Returns remarks for the user about the probes found: a sentence each, with foreign names
    /// escaped.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns every probe of the files, wanted or not, as `provider:name`: for hints about a
    /// missing one.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Returns the programs, to be written to an object file.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the files in which something is attached, by names that we can open.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.attachments
            .iter()
            .map(|attachment| attachment.path.as_path())
    }

    /// Returns the wanted probes that were in no file, as `provider:name`.
    pub fn missing(&self) -> Vec<String> {
        let names = self.forms.iter().map(EventSchema::full_name);
        names
            .filter(|name| !self.found.iter().any(|found| found.probe == *name))
            .collect()
    }

    fn read(&mut self, file: &ElfFile) -> Result<Vec<Probe>, Error> {
        let mut probes = UsdtProbes::read_with(&file.image()?, &file.code()?);
        let is_wanted = |probe: &&Probe| self.forms.iter().any(|form| form.is_of(probe));
        let places = probes
            .probes
            .iter()
            .filter(is_wanted)
            .flat_map(|probe| &probe.places);
        let needs_symbols = places
            .flat_map(|place| place.args.iter())
            .any(|arg| arg.wanted_symbol().is_some());
        if needs_symbols {
            let whole = file.whole()?;
            let debug = whole.debug_file();
            let debug = debug.as_ref().and_then(|debug| debug.image().ok());
            probes.resolve(&whole.image()?, debug.as_ref());
        }
        if let Some(first) = probes.faults.first() {
            let path = escaped(file);
            self.remarks.push(format!(
                "{path}: left out {} invalid USDT notes; the first: {first}",
                probes.broken
            ));
        }
        Ok(probes.probes)
    }

    fn add(&mut self, id: usize, probe: &Probe, file: &ElfFile) -> Result<(), Error> {
        let name = self.forms[id].full_name();
        for place in &probe.places {
            let program = self.program(id, place, &name)?;
            let place = UprobePlace {
                at: place.at,
                semaphore: place.semaphore.map(|semaphore| semaphore.offset.0),
                cookie: id as u64,
            };
            let same =
                |known: &&mut Attachment| known.program == program && known.path == file.opened();
            match self.attachments.iter_mut().find(same) {
                Some(known) => known.places.push(place),
                None => {
                    self.attachments.push(Attachment {
                        program,
                        path: file.opened().to_owned(),
                        places: vec![place],
                    });
                }
            }
        }
        self.found.push(ResolvedProbe {
            probe: name,
            file: escaped(file),
            places: probe.places.len(),
        });
        Ok(())
    }

    /// Returns the index of the program that reads this probe's arguments at this place.
    fn program(&mut self, id: usize, place: &ProbeLocation, name: &str) -> Result<usize, Error> {
        let form = &self.forms[id];
        let mut sources = Vec::new();
        for (arg, number) in form.args.iter().zip(0..form.layout.len()) {
            let Some(spec) = place.args.get(number) else {
                self.remarks.push(format!(
                    "{name} has no argument {}, the {}.",
                    arg.name,
                    number + 1
                ));
                sources.push(Source::Missing);
                continue;
            };
            if let Some(why) = spec.unreadable() {
                self.remarks.push(format!(
                    "{name}: the argument {} can't be read: {why}",
                    arg.name
                ));
            }
            sources.push(Source::Arg(spec.clone()));
        }
        let id_from = if self.features.cookies {
            EventId::Cookie
        } else {
            EventId::Fixed(id as u32)
        };
        let key = ProgramKey {
            layout: form.layout.clone(),
            sources,
            id: id_from,
        };
        if let Some(&known) = self.programs.get(&key) {
            return Ok(known);
        }
        let sleepable = self.features.sleepable_uprobes();
        let setting = Setting {
            id: key.id,
            sleepable,
            ring_bytes: self.ring_bytes,
        };
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

/// Returns a file's name in printable form.
fn escaped(file: &ElfFile) -> String {
    printable::text(file.path().as_os_str().as_encoded_bytes()).into_owned()
}

impl EventSchema {
    fn from_request(wanted: &ProbeRequest<'_>) -> Self {
        let kind = |arg: &ProbeArg| {
            if arg.string {
                FieldKind::Text {
                    capacity: STRING_BYTES,
                }
            } else {
                FieldKind::Number
            }
        };
        let kinds: Vec<FieldKind> = wanted.args.iter().map(kind).collect();
        let (provider, probe) = (wanted.provider.to_owned(), wanted.name.to_owned());
        Self {
            provider,
            probe,
            args: wanted.args.to_vec(),
            layout: Layout::new(&kinds),
        }
    }

    fn is_of(&self, probe: &Probe) -> bool {
        *self.provider == *probe.provider && *self.probe == *probe.name
    }

    fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.probe)
    }
}
