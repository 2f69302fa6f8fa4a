//! Links: each keeps a program attached for as long as the link exists.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use zerocopy::{Immutable, IntoBytes, KnownLayout};

use super::{AttachType, Command, Program, address, make, make_apart};
use crate::apart::Descriptor;
use crate::perf::PerfEvent;

/// An attachment. It ends when dropped, and with this process, even if that is killed.
#[derive(Debug)]
pub struct Link {
    fd: Descriptor,
    /// True if the kernel closes it without waiting.
    quick: bool,
    /// The perf event that the program is attached to, if any.
    event: Option<PerfEvent>,
}

/// Parameters for attaching to many locations of one file.
#[derive(Clone, Copy, Debug)]
pub struct UprobeMulti<'a> {
    /// Path of the file, which we can open.
    pub path: &'a Path,
    /// File offsets of the locations.
    pub offsets: &'a [u64],
    /// File offsets of the locations' semaphores, 0 for a location without one; empty if there are
    /// none at all.
    pub semaphores: &'a [u64],
    /// Cookies that the program can read at the locations.
    pub cookies: &'a [u64],
    /// True to run the program when the function returns.
    pub on_return: bool,
    /// Process id, or 0 for all processes.
    pub pid: u32,
}

/// `BPF_F_UPROBE_MULTI_RETURN`.
const MULTI_RETURN: u32 = 1;

/// `struct bpf_link_create` and `struct bpf_iter_create` of `union bpf_attr`.
#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IteratorLinkAttr {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IteratorAttr {
    link_fd: u32,
    flags: u32,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct UprobeMultiAttr {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    ref_ctr_offsets: u64,
    cookies: u64,
    count: u32,
    multi_flags: u32,
    pid: u32,
    padding: u32,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct KprobeMultiAttr {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    multi_flags: u32,
    count: u32,
    symbols: u64,
    addresses: u64,
    cookies: u64,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PerfLinkAttr {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RawTracepointAttr {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

impl Link {
    /// Attaches to many locations at once. Since Linux 6.6.
    pub fn uprobe_multi(program: &Program, to: &UprobeMulti<'_>) -> io::Result<Self> {
        let count = to.offsets.len();
        if to.cookies.len() != count || !(to.semaphores.is_empty() || to.semaphores.len() == count)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let path = CString::new(to.path.as_os_str().as_bytes())?;
        let mut attr = UprobeMultiAttr {
            prog_fd: program.raw_fd(),
            target_fd: 0,
            attach_type: AttachType::UprobeMulti as u32,
            flags: 0,
            path: address(path.as_ptr()),
            offsets: address(to.offsets),
            ref_ctr_offsets: if to.semaphores.is_empty() {
                0
            } else {
                address(to.semaphores)
            },
            cookies: address(to.cookies),
            count: u32::try_from(count).map_err(|_| io::ErrorKind::InvalidInput)?,
            multi_flags: if to.on_return { MULTI_RETURN } else { 0 },
            pid: to.pid,
            padding: 0,
        };
        // SAFETY: the arrays have `count` entries each (checked above) and are only read; the path
        // ends with a NUL.
        let fd = unsafe { make_apart(Command::LinkCreate, &mut attr) }?;
        Ok(Self {
            fd: Descriptor::apart(fd),
            quick: false,
            event: None,
        })
    }

    /// Attaches to the entries of many kernel functions at once, with a cookie for each. Since
    /// Linux 5.18.
    pub fn kprobe_multi(
        program: &Program,
        functions: &[&str],
        cookies: &[u64],
    ) -> io::Result<Self> {
        if cookies.len() != functions.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let names: Vec<CString> = functions
            .iter()
            .map(|&name| CString::new(name))
            .collect::<Result<_, _>>()?;
        let symbols: Vec<u64> = names.iter().map(|name| address(name.as_ptr())).collect();
        let mut attr = KprobeMultiAttr {
            prog_fd: program.raw_fd(),
            target_fd: 0,
            attach_type: AttachType::KprobeMulti as u32,
            flags: 0,
            multi_flags: 0,
            count: u32::try_from(symbols.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            symbols: address(symbols.as_slice()),
            addresses: 0,
            cookies: address(cookies),
        };
        // SAFETY: the arrays have `count` entries each and are only read; each name ends with a NUL
        // and outlives the call.
        let fd = unsafe { make(Command::LinkCreate, &mut attr) }?;
        Ok(Self {
            fd: Descriptor::plain(fd),
            quick: false,
            event: None,
        })
    }

    /// Attaches to a perf event, which the link then owns. Since Linux 5.15.
    pub fn perf_event(program: &Program, event: PerfEvent, cookie: u64) -> io::Result<Self> {
        let mut attr = PerfLinkAttr {
            prog_fd: program.raw_fd(),
            target_fd: event.raw_fd(),
            attach_type: AttachType::PerfEvent as u32,
            flags: 0,
            cookie,
        };
        // SAFETY: this form has no pointers.
        let fd = unsafe { make(Command::LinkCreate, &mut attr) }?;
        event.enable()?;
        Ok(Self {
            fd: Descriptor::plain(fd),
            quick: false,
            event: Some(event),
        })
    }

    /// Attaches to a perf event as on kernels before 5.15, without a cookie: the event holds the
    /// program.
    pub fn perf_event_ioctl(program: &Program, event: PerfEvent) -> io::Result<Self> {
        event.set_program(program)?;
        event.enable()?;
        Ok(Self {
            fd: event.into_fd(),
            quick: false,
            event: None,
        })
    }

    /// Prepares a program for iterations over the objects that it was loaded for. Since Linux 5.8.
    pub fn iterator(program: &Program) -> io::Result<Self> {
        let attach_type = AttachType::Iterator as u32;
        let mut attr = IteratorLinkAttr {
            prog_fd: program.raw_fd(),
            target_fd: 0,
            attach_type,
            flags: 0,
        };
        // SAFETY: this form has no pointers; fields left at 0 select an iteration over all objects.
        let fd = unsafe { make(Command::LinkCreate, &mut attr) }?;
        Ok(Self {
            fd: Descriptor::plain(fd),
            quick: true,
            event: None,
        })
    }

    /// Starts one iteration: reading the file runs the program for one object after another, until
    /// its end. Only for [`Self::iterator`].
    pub fn iteration(&self) -> io::Result<File> {
        let mut attr = IteratorAttr {
            link_fd: self.fd.as_fd().as_raw_fd().cast_unsigned(),
            flags: 0,
        };
        // SAFETY: this form has no pointers.
        let fd = unsafe { make(Command::IteratorCreate, &mut attr) }?;
        Ok(File::from(fd))
    }

    /// Returns whether the kernel closes it without waiting, as for raw tracepoints.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// Stops the program without closing the link, which would wait for an RCU grace period. Only a
    /// sampling perf event can be disabled; returns whether this link was.
    pub fn disable(&self) -> bool {
        self.event.as_ref().is_some_and(PerfEvent::disable)
    }

    /// Iterates over the descriptors that keep the attachment: the link's own, and that of the perf
    /// event.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.fd.as_fd()).chain(self.event.as_ref().map(AsFd::as_fd))
    }

    /// Ends the attachment, and returns the perf event, if any: closing that takes the kernel as
    /// long again.
    pub fn end(self) -> Option<PerfEvent> {
        drop(self.fd);
        self.event
    }

    /// Attaches to a tracepoint by name (since Linux 4.17). Without a name, attaches to the target
    /// for which a [`super::ProgramType::Tracing`] program was loaded (since Linux 5.5).
    pub fn raw_tracepoint(program: &Program, name: Option<&CStr>) -> io::Result<Self> {
        let name = name.map_or(0, |name| address(name.as_ptr()));
        let mut attr = RawTracepointAttr {
            name,
            prog_fd: program.raw_fd(),
            padding: 0,
        };
        // SAFETY: the name, if there is one, ends with a NUL and is only read.
        let fd = unsafe { make(Command::RawTracepointOpen, &mut attr) }?;
        Ok(Self {
            fd: Descriptor::plain(fd),
            quick: true,
            event: None,
        })
    }
}

impl Program {
    pub(crate) fn raw_fd(&self) -> u32 {
        use std::os::fd::AsFd as _;
        self.as_fd().as_raw_fd() as u32
    }
}
