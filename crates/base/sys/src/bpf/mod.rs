//! `bpf(2)`: one system call with many commands. They are grouped by what they create: a [`Map`], a [`Program`], a [`Link`].
//!
//! Each command has its own structure, laid out like its part of `union bpf_attr` in `linux/bpf.h`
//! (Linux 6.18). The kernel accepts a shorter `bpf_attr` and treats the missing tail as zero, so
//! each structure ends at the last field that we set.

mod link;
mod map;
mod program;

pub use link::{Link, UprobeMulti};
pub use map::{Map, MapSpec};
pub use program::{
    AttachType, FuncInfo, LoadError, Program, ProgramSpec, ProgramStats, ProgramType,
};

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use zerocopy::{Immutable, IntoBytes, KnownLayout};

use crate::apart;

/// `ENOTSUPP` of `include/linux/errno.h`: the kernel's internal error for features that it was
/// built without. Programs should not see it, but do (`register_fentry` of
/// `kernel/bpf/trampoline.c`).
pub const ENOTSUPP: i32 = 524;

/// Command: `enum bpf_cmd` of `linux/bpf.h`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgramLoad = 5,
    ProgramRun = 10,
    InfoByFd = 15,
    RawTracepointOpen = 17,
    BtfLoad = 18,
    LinkCreate = 28,
    IteratorCreate = 33,
}

/// Makes the call. `attr` has no padding, so the kernel reads only bytes that we wrote.
///
/// # Safety
/// Each pointer and length in `attr` must be right for `command`: the kernel reads and writes there.
unsafe fn call<A: IntoBytes + Immutable + KnownLayout>(
    command: Command,
    attr: &mut A,
) -> io::Result<i32> {
    loop {
        // SAFETY: `attr` is valid for reads and writes of its size; the caller answers for the
        // memory it points to.
        let done = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                command as u32,
                std::ptr::from_mut(attr),
                size_of::<A>(),
            )
        };
        if done >= 0 {
            return Ok(done as i32);
        }
        let error = io::Error::last_os_error();
        // The verifier gives up a load when a signal arrives (bpf_prog_load: EAGAIN); it may be
        // tried again.
        if error.kind() != io::ErrorKind::Interrupted && error.raw_os_error() != Some(libc::EAGAIN)
        {
            return Err(error);
        }
    }
}

/// Makes a [`call`] of a form that creates a descriptor.
///
/// # Safety
/// As for [`call`].
unsafe fn make<A: IntoBytes + Immutable + KnownLayout>(
    command: Command,
    attr: &mut A,
) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise is the same.
    let fd = match unsafe { call(command, attr) } {
        // Before Linux 5.11 maps and programs count as locked memory, whose limit is 64 KiB as a
        // rule.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && raise_memory_limit() => {
            // SAFETY: as above.
            unsafe { call(command, attr) }?
        }
        made => made?,
    };
    // SAFETY: the kernel has just created this descriptor for us, and closes it on exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a [`make`] call that a SIGKILL does not interrupt. Kernels with the objects that this
/// creates do not count them as locked memory.
///
/// # Safety
/// As for [`call`].
unsafe fn make_apart<A: IntoBytes + Immutable + KnownLayout>(
    command: Command,
    attr: &mut A,
) -> io::Result<OwnedFd> {
    let attr = std::ptr::from_mut(attr) as libc::c_long;
    let arguments = [
        command as libc::c_long,
        attr,
        size_of::<A>().cast_signed() as libc::c_long,
        0,
        0,
        0,
    ];
    // SAFETY: `attr` is valid for reads and writes of its size; the caller answers for the memory
    // it points to.
    let fd = unsafe { apart::syscall(libc::SYS_bpf, arguments) }?;
    // SAFETY: the kernel has just created this descriptor for us, and closes it on exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Raises this process's limit on locked memory as far as possible. Returns whether that changed
/// anything, which it can do only once.
fn raise_memory_limit() -> bool {
    let limit = getrlimit(Resource::Memlock);
    let to = |maximum| Rlimit {
        current: maximum,
        maximum,
    };
    // Only CAP_SYS_RESOURCE raises the maximum, too.
    limit.current.is_some()
        && (setrlimit(Resource::Memlock, to(None)).is_ok()
            || limit.current != limit.maximum
                && setrlimit(Resource::Memlock, to(limit.maximum)).is_ok())
}

/// Returns an address for the kernel's 64-bit fields.
fn address<T: ?Sized>(pointer: *const T) -> u64 {
    pointer.cast::<u8>() as u64
}

/// Converts a name for the kernel's 16 bytes, the last of them 0 (`BPF_OBJ_NAME_LEN`): letters,
/// digits, `_` and `.` are allowed.
fn object_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes[..15].iter_mut().zip(name.bytes()) {
        *to = if from.is_ascii_alphanumeric() || from == b'.' {
            from
        } else {
            b'_'
        };
    }
    bytes
}

/// Type information loaded into the kernel, for programs with callbacks.
#[derive(Debug)]
pub struct Btf {
    fd: OwnedFd,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct BtfLoadAttr {
    btf: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    log_true_size: u32,
}

impl Btf {
    /// Loads the bytes of a `.BTF` section. Since Linux 4.18.
    pub fn load(bytes: &[u8]) -> io::Result<Self> {
        let size = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut attr = BtfLoadAttr {
            btf: address(bytes),
            log: 0,
            size,
            log_size: 0,
            log_level: 0,
            log_true_size: 0,
        };
        // SAFETY: `btf` and `size` describe `bytes`; there is no log.
        let fd = unsafe { make(Command::BtfLoad, &mut attr) }?;
        Ok(Self { fd })
    }
}
