//! `perf_event_open(2)`: events for attaching programs if there is no special kind of link.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use uapi::perf::{Counter, DUMMY, TYPE_BREAKPOINT, TYPE_TRACEPOINT};
use zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::apart::{self, Descriptor};
use crate::bpf::Program;

/// `struct perf_event_attr` of `linux/perf_event.h` up to its size in Linux 4.1 (`PERF_ATTR_SIZE_VER5`).
#[derive(FromZeros, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    /// Period, or frequency if the flag is set.
    sample: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    /// Address of a breakpoint, of a path, or of a function's name.
    config1: u64,
    /// Length of a breakpoint, or an offset.
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// The flag `inherit`, the second bit: also counts threads and processes that start later.
const INHERIT: u64 = 1 << 1;
/// The flag `inherit_thread`, the 36th bit: restricts `inherit` to threads. Since Linux 5.13.
const INHERIT_THREAD: u64 = 1 << 35;
/// The flag `freq`, the 11th bit.
const FREQUENCY: u64 = 1 << 10;
/// The flag `exclude_kernel`, the 6th bit.
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// The flags `mmap`, `task` and `mmap2`, the 9th, 14th and 24th bit: records of mapped code, with
/// its files' numbers, and of started threads.
const CODE: u64 = 1 << 8 | 1 << 13 | 1 << 23;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Tasks and CPUs that an event counts: pid and cpu of `perf_event_open(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// One process, on any CPU.
    Process(u32),
    /// One thread, on any CPU, and the threads that it starts, for counted events. With `forks`,
    /// also the processes that it starts. Without `forks` since Linux 5.13; before, processes are
    /// included anyway.
    Threads {
        /// Thread id.
        tid: u32,
        /// True to include processes that it starts.
        forks: bool,
    },
    /// All tasks on one CPU.
    Cpu(u32),
}

impl Scope {
    /// Returns the flags that include threads starting later.
    fn inheritance(self) -> u64 {
        match self {
            Self::Threads { forks: true, .. } => INHERIT,
            Self::Threads { forks: false, .. } => INHERIT | INHERIT_THREAD,
            Self::Process(_) | Self::Cpu(_) => 0,
        }
    }
}

/// A location of a file, where a process stops for a moment.
#[derive(Clone, Copy, Debug)]
pub struct Uprobe<'a> {
    /// Kernel's number for such events: `/sys/bus/event_source/devices/uprobe/type`.
    pub kind: u32,
    /// Bit that selects the function's return, if wanted:
    /// `/sys/bus/event_source/devices/uprobe/format/retprobe`.
    pub return_bit: Option<u8>,
    /// Path of the file, which we can open.
    pub path: &'a Path,
    /// File offset of the location.
    pub offset: u64,
    /// File offset of the semaphore to raise while attached, or 0. Since Linux 4.20.
    pub semaphore: u64,
}

/// An event, disabled until a program is attached to it.
#[derive(Debug)]
pub struct PerfEvent {
    fd: Descriptor,
    /// True if programs run at its samples. Those of a tracepoint, kprobe or uprobe run whenever
    /// that is hit, even if the event is disabled (`perf_trace_run_bpf_submit` in
    /// `kernel/events/core.c`).
    samples: bool,
}

/// Position of the semaphore in an uprobe's `config` (`PERF_UPROBE_REF_CTR_OFFSET_SHIFT` in
/// `kernel/events/core.c`).
const SEMAPHORE_SHIFT: u32 = 32;

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PerfEvent {
    /// Opens an event at a location in a file. A semaphore must lie in the file's first 4 GiB:
    /// there are 32 bits for it.
    pub fn uprobe(uprobe: &Uprobe<'_>, scope: Scope) -> io::Result<Self> {
        let path = CString::new(uprobe.path.as_os_str().as_bytes())?;
        let semaphore = u32::try_from(uprobe.semaphore).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut attr = Attr::new(uprobe.kind);
        attr.config = u64::from(semaphore) << SEMAPHORE_SHIFT
            | uprobe.return_bit.map_or(0, |bit| 1 << (bit & 31));
        attr.config1 = path.as_ptr() as u64;
        attr.config2 = uprobe.offset;
        // SAFETY: the path ends with a NUL and lives until the call is done.
        unsafe { open_apart(&attr, scope) }
    }

    /// Opens an event at a kernel function's entry, or at its return (`return_bit` as for an
    /// uprobe). Since Linux 4.17.
    pub fn kprobe(
        kind: u32,
        return_bit: Option<u8>,
        function: &str,
        offset: u64,
        scope: Scope,
    ) -> io::Result<Self> {
        let function = CString::new(function)?;
        let mut attr = Attr::new(kind);
        attr.config = return_bit.map_or(0, |bit| 1 << (bit & 31));
        attr.config1 = function.as_ptr() as u64;
        attr.config2 = offset;
        // SAFETY: the name ends with a NUL and lives until the call is done.
        unsafe { open(&attr, scope) }
    }

    /// Opens a tracepoint by its number in tracefs.
    pub fn tracepoint(id: u64, scope: Scope) -> io::Result<Self> {
        let mut attr = Attr::new(TYPE_TRACEPOINT);
        attr.config = id;
        attr.sample = 1;
        // SAFETY: this kind has no pointers.
        unsafe { open(&attr, scope) }
    }

    /// Opens a counter of the kernel or the processor, sampled once per `period` events.
    pub fn counter((kind, config): Counter, period: u64, scope: Scope) -> io::Result<Self> {
        let mut attr = Attr::new(kind);
        (attr.config, attr.sample) = (config, period);
        attr.open_counter(scope)
    }

    /// Opens a counter of events in user code, excluding the kernel's, and samples each one.
    pub fn user_counter((kind, config): Counter, scope: Scope) -> io::Result<Self> {
        let mut attr = Attr::new(kind);
        (attr.config, attr.sample, attr.flags) = (config, 1, attr.flags | EXCLUDE_KERNEL);
        attr.open_counter(scope)
    }

    /// Opens a counter like [`PerfEvent::counter`], sampled `hertz` times per second.
    pub fn frequency((kind, config): Counter, hertz: u64, scope: Scope) -> io::Result<Self> {
        let mut attr = Attr::new(kind);
        (attr.config, attr.sample, attr.flags) = (config, hertz, attr.flags | FREQUENCY);
        attr.open_counter(scope)
    }

    /// Opens a hardware breakpoint for accesses to memory. `access` is made of `uapi::perf`'s
    /// `BREAKPOINT_READ` and its like. For a process, watches one thread, and those that it starts
    /// later.
    pub fn breakpoint(address: u64, length: u64, access: u32, scope: Scope) -> io::Result<Self> {
        let mut attr = Attr::new(TYPE_BREAKPOINT);
        (
            attr.config1,
            attr.config2,
            attr.breakpoint_type,
            attr.sample,
        ) = (address, length, access, 1);
        if let Scope::Process(_) = scope {
            attr.flags |= INHERIT;
        }
        // SAFETY: this kind has no pointers of ours.
        let event = unsafe { open(&attr, scope) }?;
        Ok(Self {
            samples: true,
            ..event
        })
    }

    /// Opens an event that reports the code mapped on a CPU by a thread, and by all threads and
    /// processes that it starts.
    pub(crate) fn code_log(tid: u32, cpu: u32) -> io::Result<Self> {
        let mut attr = Attr::new(DUMMY.0);
        (attr.config, attr.flags) = (DUMMY.1, INHERIT | EXCLUDE_KERNEL | CODE);
        // SAFETY: this kind has no pointers.
        unsafe { open_on(&attr, tid.cast_signed(), cpu.cast_signed()) }
    }

    pub(crate) fn raw_fd(&self) -> u32 {
        self.fd.as_fd().as_raw_fd() as u32
    }

    pub(crate) fn into_fd(self) -> Descriptor {
        self.fd
    }

    pub(crate) fn enable(&self) -> io::Result<()> {
        self.ioctl(IOC_ENABLE, 0)
    }

    /// Disables the event, if that stops its program. Returns whether it did.
    pub(crate) fn disable(&self) -> bool {
        self.samples && self.ioctl(IOC_DISABLE, 0).is_ok()
    }

    pub(crate) fn set_program(&self, program: &Program) -> io::Result<()> {
        self.ioctl(IOC_SET_BPF, program.raw_fd())
    }

    fn ioctl(&self, request: libc::Ioctl, argument: u32) -> io::Result<()> {
        // SAFETY: none of the requests takes a pointer.
        let done = unsafe {
            libc::ioctl(
                self.fd.as_fd().as_raw_fd(),
                request,
                libc::c_ulong::from(argument),
            )
        };
        if done < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

/// `PERF_EVENT_IOC_ENABLE`, `_IO('$', 0)`.
const IOC_ENABLE: libc::Ioctl = 0x2400;
/// `PERF_EVENT_IOC_DISABLE`, `_IO('$', 1)`.
const IOC_DISABLE: libc::Ioctl = 0x2401;
/// `PERF_EVENT_IOC_SET_BPF`, `_IOW('$', 8, __u32)`.
const IOC_SET_BPF: libc::Ioctl = 0x4004_2408;

impl Attr {
    fn new(kind: u32) -> Self {
        let mut attr = Self::new_zeroed();
        attr.kind = kind;
        attr.size = size_of::<Self>() as u32;
        // The flag `disabled`: nothing must happen before a program is attached.
        attr.flags = 1;
        attr
    }

    /// Opens a counted event.
    fn open_counter(mut self, scope: Scope) -> io::Result<PerfEvent> {
        let flags = self.flags;
        self.flags = flags | scope.inheritance();
        // SAFETY: these kinds have no pointers.
        let event = match unsafe { open(&self, scope) } {
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL)
                    && self.flags & INHERIT_THREAD != 0 =>
            {
                self.flags = flags | INHERIT;
                // SAFETY: as above.
                unsafe { open(&self, scope) }
            }
            opened => opened,
        };
        Ok(PerfEvent {
            samples: true,
            ..event?
        })
    }
}

/// Opens an event in a call that a SIGKILL does not interrupt.
///
/// # Safety
/// As for [`open`].
unsafe fn open_apart(attr: &Attr, scope: Scope) -> io::Result<PerfEvent> {
    let (pid, cpu) = scope_args(scope);
    let attr = std::ptr::from_ref(attr) as libc::c_long;
    let arguments = [
        attr,
        pid.into(),
        cpu.into(),
        -1,
        CLOSE_ON_EXEC.cast_signed(),
        0,
    ];
    // SAFETY: `attr` has the size that it states; the caller answers for its pointers. The kernel
    // only reads.
    let fd = unsafe { apart::syscall(libc::SYS_perf_event_open, arguments) }?;
    // SAFETY: the kernel has just created this descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    Ok(PerfEvent {
        fd: Descriptor::apart(fd),
        samples: false,
    })
}

/// Returns the process and the CPU as arguments of the call.
fn scope_args(scope: Scope) -> (i32, i32) {
    match scope {
        Scope::Process(pid) | Scope::Threads { tid: pid, .. } => (pid.cast_signed(), -1),
        Scope::Cpu(cpu) => (-1, cpu.cast_signed()),
    }
}

/// Opens an event.
///
/// # Safety
/// The pointers in `attr` must be to strings that end with a NUL.
unsafe fn open(attr: &Attr, scope: Scope) -> io::Result<PerfEvent> {
    let (pid, cpu) = scope_args(scope);
    // SAFETY: the caller answers for the pointers.
    unsafe { open_on(attr, pid, cpu) }
}

/// Opens an event for a process and a CPU.
///
/// # Safety
/// As for [`open`].
unsafe fn open_on(attr: &Attr, pid: i32, cpu: i32) -> io::Result<PerfEvent> {
    // SAFETY: `attr` has the size that it states; the caller answers for its pointers. The kernel
    // only reads.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attr),
            pid,
            cpu,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    Ok(PerfEvent {
        fd: Descriptor::plain(fd),
        samples: false,
    })
}
