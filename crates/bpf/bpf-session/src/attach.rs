//! Attaches programs: one function for each kind of link.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use bpf_program::{ProgramKind, UprobePlace};
use host::proc::stand_in;
use host::{Capability, PerfSource, Pid};
use sys::bpf::{Link, UprobeMulti};
use sys::perf::{PerfEvent, Scope, Uprobe};
use uapi::Arch;
use uapi::perf::Counter;

use crate::error::SessionError;
use crate::features::trials;
use crate::session::Session;

/// Missing feature of a kernel that loads fentry programs but cannot attach them.
const NO_DIRECT_CALLS: &str = if matches!(Arch::HOST, Arch::Aarch64) {
    "fentry: on aarch64, Linux 6.4 has it, with CONFIG_FUNCTION_TRACER and \
     CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"
} else {
    "fentry (CONFIG_FUNCTION_TRACER with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)"
};

/// Places in one file, for one program.
#[derive(Clone, Copy, Debug)]
pub struct Uprobes<'a> {
    /// Path of the file, by a name that we can open.
    pub path: &'a Path,
    /// Places in the file.
    pub places: &'a [UprobePlace],
    /// Process; `None` for all that run the file.
    pub pid: Option<u32>,
}

impl Session {
    /// Attaches a [`ProgramKind::Uprobe`] or [`ProgramKind::UprobeReturn`] program: with one link
    /// if the kernel supports it, otherwise with one link for each place.
    pub fn attach_uprobes(&mut self, program: usize, to: &Uprobes<'_>) -> Result<(), SessionError> {
        if to.places.is_empty() {
            return Ok(());
        }
        if self.features().uprobe_multi {
            self.attach_multi(program, to)
        } else {
            self.attach_each(program, to)
        }
    }

    fn attach_multi(&mut self, program: usize, to: &Uprobes<'_>) -> Result<(), SessionError> {
        let offsets: Vec<u64> = to.places.iter().map(|place| place.at.offset().0).collect();
        let cookies: Vec<u64> = to.places.iter().map(|place| place.cookie).collect();
        let mut semaphores: Vec<u64> = to
            .places
            .iter()
            .map(|place| place.semaphore.unwrap_or(0))
            .collect();
        if semaphores.iter().all(|&semaphore| semaphore == 0) {
            semaphores.clear();
        }
        let loaded = self.loaded(program);
        let multi = UprobeMulti {
            path: to.path,
            offsets: &offsets,
            semaphores: &semaphores,
            cookies: &cookies,
            on_return: loaded.kind == ProgramKind::UprobeReturn,
            pid: to.pid.unwrap_or(0),
        };
        let link = Link::uprobe_multi(&loaded.program, &multi);
        let link = link.map_err(|source| failed(to.path, offsets, source))?;
        self.links.push(link);
        Ok(())
    }

    fn attach_each(&mut self, program: usize, to: &Uprobes<'_>) -> Result<(), SessionError> {
        let source = PerfSource::find("uprobe").ok_or(SessionError::Unsupported {
            what: "uprobes (CONFIG_UPROBES)",
        })?;
        let on_return = self.loaded(program).kind == ProgramKind::UprobeReturn;
        let return_bit = if on_return {
            Some(source.return_bit.unwrap_or(0))
        } else {
            None
        };
        // Without a process, an event on one CPU is enough: the breakpoint is in the file, so the
        // program runs on all CPUs. With one, an event of any of its threads covers its memory; the
        // first thread may have ended (see `Features::for_process`).
        let thread = |pid| stand_in(Pid(pid)).map_or(pid, |thread| thread.0);
        let scope = to
            .pid
            .map_or(Scope::Cpu(0), |pid| Scope::Process(thread(pid)));
        for place in to.places {
            let (offset, semaphore) = (place.at.offset().0, place.semaphore.unwrap_or(0));
            let uprobe = Uprobe {
                kind: source.kind,
                return_bit,
                path: to.path,
                offset,
                semaphore,
            };
            let event = PerfEvent::uprobe(&uprobe, scope)
                .map_err(|source| event_failed(to.path, offset, source))?;
            let link = self.perf_link(program, event, place.cookie);
            let link = link.map_err(|source| failed(to.path, vec![offset], source))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Attaches a [`ProgramKind::Kprobe`] or [`ProgramKind::KprobeReturn`] program at this offset
    /// in bytes from a function's start; without a function (`""`), at this address
    /// (`perf_kprobe_init` of `kernel/trace/trace_event_perf.c`).
    pub fn attach_kprobe(
        &mut self,
        program: usize,
        function: &str,
        offset: u64,
    ) -> Result<(), SessionError> {
        let source = PerfSource::find("kprobe")
            .ok_or_else(|| SessionError::Unsupported { what: no_kprobes() })?;
        let on_return = self.loaded(program).kind == ProgramKind::KprobeReturn;
        let return_bit = if on_return {
            Some(source.return_bit.unwrap_or(0))
        } else {
            None
        };
        let event = PerfEvent::kprobe(source.kind, return_bit, function, offset, Scope::Cpu(0));
        self.keep(program, event, || match function {
            "" => format!("the kernel's address {offset:#x}"),
            function => format!("the kernel function {function}"),
        })
    }

    /// Attaches a [`ProgramKind::Tracepoint`] program to the tracepoint with this number in
    /// tracefs.
    pub fn attach_tracepoint(
        &mut self,
        program: usize,
        name: &str,
        id: u64,
    ) -> Result<(), SessionError> {
        let event = PerfEvent::tracepoint(id, Scope::Cpu(0));
        self.keep(program, event, || format!("the tracepoint {name}"))
    }

    /// Attaches a [`ProgramKind::RawTracepoint`] program.
    pub fn attach_raw_tracepoint(
        &mut self,
        program: usize,
        name: &str,
    ) -> Result<(), SessionError> {
        let what = || format!("the raw tracepoint {name}");
        let text = CString::new(name).map_err(|error| attach_error(what(), error.into()))?;
        let link = Link::raw_tracepoint(&self.loaded(program).program, Some(&text));
        self.links
            .push(link.map_err(|source| attach_error(what(), source))?);
        Ok(())
    }

    /// Attaches a program of a kind that was loaded for one target: [`ProgramKind::BtfTracepoint`],
    /// [`ProgramKind::Fentry`], [`ProgramKind::Fexit`].
    pub fn attach_loaded_target(&mut self, program: usize, what: &str) -> Result<(), SessionError> {
        let link = Link::raw_tracepoint(&self.loaded(program).program, None);
        self.links
            .push(link.map_err(|source| target_error(what.to_owned(), source))?);
        Ok(())
    }

    /// Runs a [`ProgramKind::Iterator`] program for all of its objects.
    pub fn iterate(&self, program: usize, what: &str) -> Result<(), SessionError> {
        let link = Link::iterator(&self.loaded(program).program);
        let through = link.and_then(|link| read_through(link.iteration()?));
        through.map_err(|source| attach_error(what.to_owned(), source))
    }

    /// Attaches a [`ProgramKind::PerfEvent`] program to a counted event, on one CPU or for one
    /// process. It runs once for every `period` events.
    pub fn attach_counter(
        &mut self,
        program: usize,
        counter: Counter,
        period: u64,
        scope: Scope,
    ) -> Result<(), SessionError> {
        let event = has_counter(PerfEvent::counter(counter, period, scope))?;
        self.keep(program, event, || {
            format!("the perf event {}:{}", counter.0, counter.1)
        })
    }

    /// Attaches like [`Session::attach_counter`], to each event of programs' own code: events in
    /// system calls do not count.
    pub fn attach_user_counter(
        &mut self,
        program: usize,
        counter: Counter,
        scope: Scope,
    ) -> Result<(), SessionError> {
        let event = has_counter(PerfEvent::user_counter(counter, scope))?;
        self.keep(program, event, || {
            format!("the perf event {}:{} of user code", counter.0, counter.1)
        })
    }

    /// Attaches like [`Session::attach_counter`], sampled `hertz` times a second.
    pub fn attach_frequency(
        &mut self,
        program: usize,
        counter: Counter,
        hertz: u64,
        scope: Scope,
    ) -> Result<(), SessionError> {
        let event = has_counter(PerfEvent::frequency(counter, hertz, scope))?;
        self.keep(program, event, || {
            format!("the perf event {}:{} at {hertz} Hz", counter.0, counter.1)
        })
    }

    /// Attaches a [`ProgramKind::PerfEvent`] program to accesses to `length` bytes of memory;
    /// `access` is that of [`PerfEvent::breakpoint`]. A processor has few such breakpoints, x86-64
    /// four.
    pub fn attach_breakpoint(
        &mut self,
        program: usize,
        (address, length): (u64, u64),
        access: u32,
        scope: Scope,
    ) -> Result<(), SessionError> {
        let event = PerfEvent::breakpoint(address, length, access, scope);
        self.keep(program, event, || {
            format!("the memory at {address:#x} ({length} bytes)")
        })
    }

    /// Runs a [`ProgramKind::RawTracepoint`] program once, here and now. Since Linux 5.10.
    pub fn run(&self, program: usize, arguments: &[u64]) -> Result<(), SessionError> {
        let done = self.loaded(program).program.run(arguments);
        done.map(drop)
            .map_err(|source| attach_error("nothing: the program could not be run".into(), source))
    }

    fn keep(
        &mut self,
        program: usize,
        event: io::Result<PerfEvent>,
        what: impl Fn() -> String,
    ) -> Result<(), SessionError> {
        let link = event.and_then(|event| self.perf_link(program, event, 0));
        self.links
            .push(link.map_err(|source| attach_error(what(), source))?);
        Ok(())
    }

    fn perf_link(&self, program: usize, event: PerfEvent, cookie: u64) -> io::Result<Link> {
        let program = &self.loaded(program).program;
        if self.features().cookies {
            Link::perf_event(program, event, cookie)
        } else {
            Link::perf_event_ioctl(program, event)
        }
    }
}

/// Reads to the end. A read that produces no output fails with `EAGAIN` after a million objects
/// (`MAX_ITER_OBJECTS` of `kernel/bpf/bpf_iter.c`); the next one continues from there.
fn read_through(mut iteration: File) -> io::Result<()> {
    let mut written = [0; 4096];
    loop {
        match iteration.read(&mut written) {
            Ok(0) => return Ok(()),
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
}

/// Returns an error if there is no such counter: a processor may lack it, or a virtual machine may
/// not expose it (perf_event_open(2), `ENOENT`).
fn has_counter(event: io::Result<PerfEvent>) -> Result<io::Result<PerfEvent>, SessionError> {
    let missing = event
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let what = "such counter (in a virtual machine, the host must provide it)";
    if missing {
        Err(SessionError::Unsupported { what })
    } else {
        Ok(event)
    }
}

/// Returns the message for a kernel without kprobes, with the alternatives that it has.
fn no_kprobes() -> &'static str {
    if trials::fentry().is_yes() {
        "kprobes (CONFIG_KPROBES); fentry and tracepoints work without them"
    } else {
        "kprobes (CONFIG_KPROBES), and no fentry either; tracepoints work without them"
    }
}

fn failed(path: &Path, places: Vec<u64>, source: io::Error) -> SessionError {
    SessionError::permission_or(source, |source| uprobe_error(path, places, source))
}

/// Returns the error for a rejected uprobe. `EINVAL` means that the kernel has a probe with another
/// semaphore at this place; its other causes (offsets beyond the file, semaphores at odd offsets)
/// do not come from a file's notes and symbols.
fn uprobe_error(path: &Path, places: Vec<u64>, source: io::Error) -> SessionError {
    let path = path.to_owned();
    if source.kind() == io::ErrorKind::InvalidInput {
        SessionError::OtherSemaphore {
            path,
            places,
            source,
        }
    } else {
        SessionError::Uprobe {
            path,
            places,
            source,
        }
    }
}

/// Returns the error for a rejected perf event. Since 2025 a probe's event needs more than
/// CAP_PERFMON ("perf: Revert to requiring CAP_SYS_ADMIN for uprobes", Linux 6.16 and the stable
/// releases of that time).
fn event_failed(path: &Path, place: u64, source: io::Error) -> SessionError {
    let other = |source| uprobe_error(path, vec![place], source);
    SessionError::lacking_or(&[Capability::SysAdmin], source, other)
}

/// Returns the error for a rejected target. A kernel without direct calls from ftrace loads the
/// program but refuses to attach it (`register_fentry`, `kernel/bpf/trampoline.c`), as on aarch64
/// before Linux 6.4.
fn target_error(what: String, source: io::Error) -> SessionError {
    if source.raw_os_error() == Some(sys::bpf::ENOTSUPP) {
        return SessionError::Unsupported {
            what: NO_DIRECT_CALLS,
        };
    }
    attach_error(what, source)
}

fn attach_error(what: String, source: io::Error) -> SessionError {
    SessionError::permission_or(source, |source| SessionError::Attach { what, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_direct_calls_is_unsupported_and_says_what_it_takes() {
        let refused = |number| target_error("f".into(), io::Error::from_raw_os_error(number));
        let error = refused(sys::bpf::ENOTSUPP);
        assert!(
            error.is_unsupported() && error.to_string().contains("CONFIG_FUNCTION_TRACER"),
            "{error}"
        );
        assert!(!refused(22).is_unsupported());
    }
}
