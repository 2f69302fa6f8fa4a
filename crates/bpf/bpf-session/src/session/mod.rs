//! Creates a module's maps, and loads and links its programs.

mod linking;

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use bpf_program::{Module, ProgramDef, ProgramKind};
use sys::bpf::{AttachType, Link, Map, MapSpec, Program, ProgramSpec, ProgramType};
use sys::perf::PerfEvent;
use uapi::bpf::NO_PREALLOC;

use crate::error::SessionError;
use crate::features::Features;
use crate::missing_feature;
use crate::session::linking::function_types;

/// Limit on the lines shown of the verifier's log: the last ones give the reason.
const LOG_LINES: usize = 12;

/// Message of the verifier if too many branches are pending (`push_stack` of
/// `kernel/bpf/verifier.c`). Too many instructions have an error number, E2BIG, which means nothing
/// else unless the program itself is that long.
const TOO_MANY_BRANCHES: &str = "jumps is too complex";

/// Message of the verifier for a helper that only some functions may call (`check_helper_call` of
/// `kernel/bpf/verifier.c`). Of the helpers that scripts use, this is only `bpf_d_path`.
const NOT_IN_THIS: &str = "helper call is not allowed in probe";
/// Message of the verifier for a pointer that was read from an object that may not keep what it
/// points to (`check_reg_type` of `kernel/bpf/verifier.c`). Linux 6.18.5 takes such a pointer,
/// 6.18.44 does not.
const UNTRUSTED: &str = "type=untrusted_ptr_ expected=";
/// Message of the verifier for the helper that writes into processes, if lockdown hides it
/// (`LOCKDOWN_BPF_WRITE_USER`, `bpf_tracing_func_proto` of `kernel/trace/bpf_trace.c`).
const NO_WRITES: &str = "cannot use helper bpf_probe_write_user";

/// Stack size of a thread that closes a link, in bytes.
const CLOSER_STACK: usize = 32 * 1024;

/// Maps, programs and links that live together.
#[derive(Debug)]
pub struct Session {
    features: Features,
    maps: HashMap<String, Map>,
    programs: Vec<LoadedProgram>,
    pub(crate) links: Vec<Link>,
    /// Links that are disabled and closed with the session: their programs no longer run.
    disabled: Vec<Link>,
    /// Events of closed links, which are closed with the session, too.
    events: Vec<PerfEvent>,
    /// Misses of programs that have been unloaded.
    misses: u64,
}

/// All links are closed together, however the session ends.
impl Drop for Session {
    fn drop(&mut self) {
        self.detach();
    }
}

#[derive(Debug)]
pub(crate) struct LoadedProgram {
    pub(crate) kind: ProgramKind,
    pub(crate) program: Program,
}

impl Session {
    /// Creates the module's maps and loads its programs.
    pub fn load(module: &Module, features: Features) -> Result<Self, SessionError> {
        let mut session = Self {
            features,
            maps: HashMap::new(),
            programs: Vec::new(),
            links: Vec::new(),
            disabled: Vec::new(),
            events: Vec::new(),
            misses: 0,
        };
        let unsafe_flags = if features.allocation { 0 } else { NO_PREALLOC };
        for def in &module.maps {
            let spec = MapSpec {
                name: &def.name,
                kind: def.kind,
                key_size: def.key_size,
                value_size: def.value_size,
                max_entries: def.max_entries,
                flags: def.flags & !unsafe_flags,
            };
            let name = || def.name.clone();
            let failed = |source: io::Error| {
                if source.kind() == io::ErrorKind::ArgumentListTooLong
                    && def.key_size > missing_feature::MAX_PORTABLE_KEY_BYTES
                {
                    return missing_feature::large_keys().into_error(name());
                }
                SessionError::Map {
                    name: name(),
                    source,
                }
            };
            let map =
                Map::create(&spec).map_err(|error| SessionError::permission_or(error, failed))?;
            session.maps.insert(name(), map);
        }
        for def in &module.programs {
            let program = session.program(def, module.license.name())?;
            session.programs.push(LoadedProgram {
                kind: def.kind,
                program,
            });
        }
        Ok(session)
    }

    /// Returns the map of this name.
    pub fn map(&self, name: &str) -> Option<&Map> {
        self.maps.get(name)
    }

    /// Returns the features that the session uses.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Returns the number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns the number of runs that the kernel skipped because a program was running on that
    /// CPU.
    pub fn misses(&self) -> u64 {
        let of = |loaded: &LoadedProgram| loaded.program.stats().map_or(0, |stats| stats.misses);
        self.misses + self.programs.iter().map(of).sum::<u64>()
    }

    /// Closes all links. Programs that are running finish first.
    pub fn detach(&mut self) {
        self.disable();
        self.close();
        self.disabled.clear();
        self.events.clear();
    }

    /// Disables the links that can be disabled without an RCU grace period: perf events, which are
    /// closed later, and raw tracepoints, which are closed at once. Returns true if no other link
    /// remains.
    pub fn disable(&mut self) -> bool {
        for link in std::mem::take(&mut self.links) {
            if link.is_quick() {
                drop(link);
            } else if link.disable() {
                self.disabled.push(link);
            } else {
                self.links.push(link);
            }
        }
        self.links.is_empty()
    }

    /// Closes the links that are not disabled. For each, the kernel waits until no CPU runs its
    /// program. Each is closed by a thread of its own, so that they wait at the same time. Their
    /// events are closed with the session.
    pub fn close(&mut self) {
        let mut links = std::mem::take(&mut self.links);
        let last = links.pop();
        let events = std::thread::scope(|scope| {
            let closer = || std::thread::Builder::new().stack_size(CLOSER_STACK);
            // If no thread can be started, the link is closed on this thread, with its event.
            let start = |link: Link| closer().spawn_scoped(scope, move || link.end()).ok();
            let closing: Vec<_> = links.into_iter().filter_map(start).collect();
            let mut events: Vec<PerfEvent> = last.and_then(Link::end).into_iter().collect();
            events.extend(
                closing
                    .into_iter()
                    .filter_map(|thread| thread.join().ok().flatten()),
            );
            events
        });
        self.events.extend(events);
    }

    /// Returns true if something is still to be closed.
    pub fn has_links(&self) -> bool {
        !(self.links.is_empty() && self.disabled.is_empty() && self.events.is_empty())
    }

    /// Returns the descriptors whose closing takes long, for a process that exits without closing
    /// the session.
    pub fn slow_to_close(&self) -> Vec<BorrowedFd<'_>> {
        let links = self
            .links
            .iter()
            .chain(&self.disabled)
            .flat_map(Link::descriptors);
        links.chain(self.events.iter().map(AsFd::as_fd)).collect()
    }

    /// Runs a raw tracepoint's program once, without arguments, in an interrupt on this CPU.
    /// Returns true on success.
    pub fn run_on(&self, program: usize, cpu: u32) -> bool {
        self.programs
            .get(program)
            .is_some_and(|loaded| loaded.program.run_on(cpu).is_ok())
    }

    pub(crate) fn loaded(&self, index: usize) -> &LoadedProgram {
        &self.programs[index]
    }

    fn program(&self, def: &ProgramDef, license: &CStr) -> Result<Program, SessionError> {
        let (insns, places) = self.link_up(def)?;
        let types = if def.subprograms.is_empty() {
            None
        } else {
            Some(function_types(def, &places)?)
        };
        let (kind, attach) = self.kernel_kind(def.kind);
        let spec = ProgramSpec {
            name: &def.name,
            kind,
            attach,
            attach_btf_id: def.target.as_ref().map_or(0, |target| target.btf_id),
            sleepable: def.sleepable,
            insns: &insns,
            license,
            functions: types
                .as_ref()
                .map(|(btf, functions)| (btf, functions.as_slice())),
        };
        Program::load(&spec).map_err(|error| {
            let program = def.name.clone();
            let for_function = matches!(def.kind, ProgramKind::Fentry | ProgramKind::Fexit);
            let refused = |source: io::Error| match missing_feature::find(def, kind, attach) {
                Some(feature) => feature.into_error(program),
                None if error.log.contains(NOT_IN_THIS) && def.kind == ProgramKind::Iterator => {
                    missing_feature::path_in_iterators().into_error(program)
                }
                None if error.log.contains(NOT_IN_THIS) => {
                    let place = def
                        .target
                        .as_ref()
                        .map_or(program, |target| target.name.clone());
                    SessionError::NotInThis { place, source }
                }
                None if error.log.contains(UNTRUSTED) => {
                    SessionError::UntrustedPointer { program, source }
                }
                None if error.log.contains(NO_WRITES) => SessionError::NoWrites { program, source },
                None if for_function && source.kind() == io::ErrorKind::PermissionDenied => {
                    SessionError::Locked { program, source }
                }
                None if source.kind() == io::ErrorKind::ArgumentListTooLong
                    || error.log.contains(TOO_MANY_BRANCHES) =>
                {
                    SessionError::TooComplex { program }
                }
                None => SessionError::Refused {
                    program,
                    log: last_lines(&error.log),
                    source,
                },
            };
            SessionError::permission_or(error.source, refused)
        })
    }

    /// Returns the kernel's program and attach types for a kind. A uprobe program is loaded for one
    /// kind of link.
    fn kernel_kind(&self, kind: ProgramKind) -> (ProgramType, AttachType) {
        match kind {
            ProgramKind::Uprobe | ProgramKind::UprobeReturn if self.features.uprobe_multi => {
                (ProgramType::Kprobe, AttachType::UprobeMulti)
            }
            ProgramKind::Uprobe
            | ProgramKind::UprobeReturn
            | ProgramKind::Kprobe
            | ProgramKind::KprobeReturn => (ProgramType::Kprobe, AttachType::None),
            ProgramKind::Tracepoint => (ProgramType::Tracepoint, AttachType::None),
            ProgramKind::RawTracepoint => (ProgramType::RawTracepoint, AttachType::None),
            ProgramKind::PerfEvent => (ProgramType::PerfEvent, AttachType::None),
            ProgramKind::BtfTracepoint => (ProgramType::Tracing, AttachType::RawTracepoint),
            ProgramKind::Fentry => (ProgramType::Tracing, AttachType::FunctionEntry),
            ProgramKind::Fexit => (ProgramType::Tracing, AttachType::FunctionExit),
            ProgramKind::Iterator => (ProgramType::Tracing, AttachType::Iterator),
        }
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
