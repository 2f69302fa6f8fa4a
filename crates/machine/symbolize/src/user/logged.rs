//! Processes that are gone, by the kernel's log of their mappings.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use elf::{FileOffset, ProcAddr};
use host::{Pid, Process};
use kernel_text::maps::{Backing, Device, Mapping, Permissions, ProcMaps};
use sys::{CodeEvent, CodeLog, MappedCode};

/// Limit on the processes that are remembered, of 1 KiB each and more: the last ones are kept.
const MAX_PROCESSES: usize = 4_096;
/// Limit on the mappings of one process.
const MAX_MAPPINGS: usize = 4_096;

/// Code that processes have mapped, as far as the log was read.
pub(super) struct MappingLog {
    log: CodeLog,
    mapped: HashMap<u32, Code>,
    /// Numbers of these processes, the earliest one at the front.
    order: VecDeque<u32>,
    /// True if entries are missing: then an address without code may be one of them.
    pub(super) has_lost: bool,
}

/// Code that a process has mapped.
#[derive(Default)]
struct Code {
    mappings: Vec<Mapping>,
    /// Process with these mappings, once it was asked for.
    process: Option<Rc<Process>>,
}

impl MappingLog {
    pub(super) fn new(log: CodeLog) -> Self {
        Self {
            log,
            mapped: HashMap::new(),
            order: VecDeque::new(),
            has_lost: false,
        }
    }

    /// Reads the new entries: the log has little room.
    pub(super) fn read(&mut self) {
        let mut events = Vec::new();
        self.log.drain(|event| events.push(event));
        for event in events {
            self.take(event);
        }
        while self.order.len() > MAX_PROCESSES {
            let oldest = self.order.pop_front();
            oldest.map(|pid| self.mapped.remove(&pid));
        }
    }

    fn take(&mut self, event: CodeEvent) {
        match event {
            CodeEvent::Mapped(code) => {
                let mappings = self.mappings(code.pid);
                if mappings.len() < MAX_MAPPINGS {
                    mappings.push(mapping(code));
                } else {
                    self.has_lost = true;
                }
            }
            // It had the mappings of its parent first: another CPU may have reported its own
            // already.
            CodeEvent::Started { pid, parent } => {
                let of_parent = self.mappings(parent).clone();
                self.mappings(pid).splice(..0, of_parent);
            }
            CodeEvent::Lost => self.has_lost = true,
        }
    }

    /// Returns the mappings of a process, for a change.
    fn mappings(&mut self, pid: u32) -> &mut Vec<Mapping> {
        let order = &mut self.order;
        let code = self.mapped.entry(pid).or_insert_with(|| {
            order.push_back(pid);
            Code::default()
        });
        code.process = None;
        &mut code.mappings
    }

    /// Returns a process with all that it had mapped.
    pub(super) fn process(&mut self, pid: u32) -> Option<Rc<Process>> {
        let Code { mappings, process } = self.mapped.get_mut(&pid)?;
        let new = || {
            Rc::new(Process::from_code(
                Pid(pid),
                ProcMaps::from_code(mappings.iter().cloned()),
            ))
        };
        Some(Rc::clone(process.get_or_insert_with(new)))
    }
}

fn mapping(code: MappedCode) -> Mapping {
    let MappedCode {
        start,
        length,
        offset,
        device: (major, minor),
        inode,
        path,
        ..
    } = code;
    let text = path.to_string_lossy();
    let backing = match () {
        // `//anon`, and the kernel's substitutes for a path that it can't give
        // (`perf_event_mmap_event`, kernel/events/core.c).
        () if text.starts_with("//") => Backing::Anonymous,
        () if text.starts_with('/') => Backing::File {
            path,
            deleted: false,
        },
        () => Backing::Special(text.into_owned()),
    };
    Mapping {
        start: ProcAddr(start),
        end: ProcAddr(start.saturating_add(length)),
        permissions: Permissions {
            read: true,
            execute: true,
            ..Permissions::default()
        },
        offset: FileOffset(offset),
        device: Device { major, minor },
        inode,
        backing,
    }
}

#[cfg(test)]
mod tests {
    use sys::process::HeldChild;

    use super::*;

    /// The own file of a program that has ended, the one that loads it, and libc are known, at
    /// their places.
    #[test]
    fn mappings_are_known_after_the_end_of_the_process() {
        let held = HeldChild::spawn("sh".as_ref(), &["-c", "exec true"]).unwrap();
        let pid = held.pid();
        let log = match CodeLog::begin(pid, &host::cpus::online()) {
            // `kernel.perf_event_paranoid` may refuse it.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
            log => log.unwrap(),
        };
        let mut child = held.go().unwrap();
        assert!(child.wait().unwrap().success());
        let mut logged = MappingLog::new(log);
        logged.read();
        let process = logged.process(pid).unwrap();
        let files: Vec<_> = process
            .maps()
            .code_files()
            .into_iter()
            .filter_map(Mapping::file)
            .collect();
        assert!(
            files.iter().any(|file| file.ends_with("libc.so.6")),
            "{files:?}"
        );
        assert!(files.iter().all(|file| file.is_absolute()), "{files:?}");
    }
}
