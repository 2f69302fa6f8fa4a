//! Programs: loads them, and reads the kernel's counters for them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use thiserror::Error;
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout};

use super::{Btf, Command, address, call, make, object_name};

/// Type of a program, which decides its context: `enum bpf_prog_type` of `linux/bpf.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum ProgramType {
    /// Entry or return of a function, in the kernel or in a process. Context: the registers.
    Kprobe = 2,
    /// A tracepoint. Context: its record.
    Tracepoint = 5,
    /// A sample of a perf event.
    PerfEvent = 7,
    /// A tracepoint before its record is made. Context: its arguments.
    RawTracepoint = 17,
    /// Tracepoints and functions, typed by the kernel's BTF.
    Tracing = 26,
}

/// Future attachment of a program, if its type leaves that open: `enum bpf_attach_type` of
/// `linux/bpf.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum AttachType {
    /// Determined by the program type.
    None = 0,
    /// A tracepoint by its BTF. Since Linux 5.5.
    RawTracepoint = 23,
    /// A kernel function's entry. Since Linux 5.5.
    FunctionEntry = 24,
    /// A kernel function's return. Since Linux 5.5.
    FunctionExit = 25,
    /// An iterator over objects of the kernel's. Since Linux 5.8.
    Iterator = 28,
    /// A perf event's link. Since Linux 5.15.
    PerfEvent = 41,
    /// Many kernel functions in one link. Since Linux 5.18.
    KprobeMulti = 42,
    /// Many locations of one file in one link. Since Linux 6.6.
    UprobeMulti = 48,
}

/// Start of a subprogram, and its BTF function: `struct bpf_func_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FuncInfo {
    /// First instruction slot.
    pub slot: u32,
    /// Type id in the program's BTF.
    pub type_id: u32,
}

/// Parameters for loading a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec<'a> {
    /// Name, of which the kernel keeps 15 bytes.
    pub name: &'a str,
    /// Type of the program.
    pub kind: ProgramType,
    /// Future attachment.
    pub attach: AttachType,
    /// BTF id of the kernel type to attach to, for [`ProgramType::Tracing`].
    pub attach_btf_id: u32,
    /// True if it may wait for a page of memory. Since Linux 5.10, for user probes 6.0.
    pub sleepable: bool,
    /// Instructions, 8 bytes each, with descriptors in place.
    pub insns: &'a [u8],
    /// Licence. The kernel allows many helpers only to programs whose licence is compatible with
    /// its own.
    pub license: &'a CStr,
    /// Functions and their types, if it has callbacks.
    pub functions: Option<(&'a Btf, &'a [FuncInfo])>,
}

/// Error for a rejected program.
#[derive(Debug, Error)]
#[error("the kernel rejected the program {name}")]
pub struct LoadError {
    /// Name of the program.
    pub name: String,
    /// Error of the system call.
    pub source: io::Error,
    /// Log of the verifier; empty if it did not run.
    pub log: String,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct LoadAttr {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
}

/// `BPF_F_SLEEPABLE`.
const SLEEPABLE: u32 = 1 << 4;
/// Size of the buffer for the verifier's log. The reason is at its end; a longer log loses its
/// beginning (since Linux 6.4; before, the load fails with ENOSPC, which is an answer too).
const LOG_BYTES: usize = 1 << 20;

/// A loaded program.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// Kernel's counters for a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProgramStats {
    /// Number of runs skipped because a program was running already. Since Linux 5.12; for perf
    /// events since 6.7.
    pub misses: u64,
    /// Size of the translated machine code, in bytes; 0 if the program is interpreted, or we may
    /// not see it.
    pub translated_bytes: u32,
    /// Number of instructions that the verifier processed. Since Linux 5.16.
    pub verified_insns: u32,
}

/// `struct bpf_prog_info` up to `verified_insns`; `unused` covers the fields that we don't request.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Info {
    kind_id_tag: [u64; 2],
    jited_prog_len: u32,
    xlated_prog_len: u32,
    unused: [u64; 23],
    recursion_misses: u64,
    verified_insns: u32,
    attach_btf_obj_id: u32,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct InfoAttr {
    fd: u32,
    length: u32,
    info: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RunAttr {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
}

/// `BPF_F_TEST_RUN_ON_CPU`.
const RUN_ON_CPU: u32 = 1;

impl Program {
    /// Loads a program. The verifier's log is requested only after a rejection: writing it costs
    /// more than verifying.
    pub fn load(spec: &ProgramSpec<'_>) -> Result<Self, LoadError> {
        if let Ok(fd) = load(spec, &mut []) {
            return Ok(Self { fd });
        }
        let mut log = vec![0; LOG_BYTES];
        // The second attempt may succeed: memory was short, or a signal arrived.
        load(spec, &mut log)
            .map(|fd| Self { fd })
            .map_err(|source| {
                let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
                let log = String::from_utf8_lossy(&log[..end]).into_owned();
                LoadError {
                    name: spec.name.to_owned(),
                    source,
                    log,
                }
            })
    }

    /// Returns the kernel's counters for it.
    pub fn stats(&self) -> io::Result<ProgramStats> {
        let mut info = Info::new_zeroed();
        let mut attr = InfoAttr {
            fd: self.fd.as_raw_fd() as u32,
            length: size_of::<Info>() as u32,
            info: address(&raw mut info),
        };
        // SAFETY: `info` is writable and has the stated size; all its bytes may be anything. It
        // requests no arrays.
        unsafe { call(Command::InfoByFd, &mut attr) }?;
        Ok(ProgramStats {
            misses: info.recursion_misses,
            translated_bytes: info.jited_prog_len,
            verified_insns: info.verified_insns,
        })
    }

    /// Runs a [`ProgramType::RawTracepoint`] program once, here and now, with these arguments.
    /// Since Linux 5.10.
    pub fn run(&self, arguments: &[u64]) -> io::Result<u32> {
        self.run_as(arguments, RunAttr::new_zeroed())
    }

    /// Runs the program as [`Program::run`] does, without arguments, in an interrupt of this CPU.
    /// The task running there is then the current task.
    pub fn run_on(&self, cpu: u32) -> io::Result<u32> {
        let mut attr = RunAttr::new_zeroed();
        (attr.flags, attr.cpu) = (RUN_ON_CPU, cpu);
        self.run_as(&[], attr)
    }

    fn run_as(&self, arguments: &[u64], mut attr: RunAttr) -> io::Result<u32> {
        attr.prog_fd = self.fd.as_raw_fd() as u32;
        // The kernel rejects a pointer without a size (bpf_prog_test_run in kernel/bpf/syscall.c).
        attr.ctx_in = if arguments.is_empty() {
            0
        } else {
            address(arguments)
        };
        attr.ctx_size_in = size_of_val(arguments) as u32;
        // SAFETY: the context and its size are those of `arguments`, which is only read; there are
        // no other pointers.
        unsafe { call(Command::ProgramRun, &mut attr) }?;
        Ok(attr.retval)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn load(spec: &ProgramSpec<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    let (btf, functions) = match spec.functions {
        Some((btf, functions)) => (btf.fd.as_raw_fd() as u32, functions),
        None => (0, [].as_slice()),
    };
    let mut attr = LoadAttr {
        prog_type: spec.kind as u32,
        insn_cnt: u32::try_from(spec.insns.len() / 8).map_err(|_| io::ErrorKind::InvalidInput)?,
        insns: address(spec.insns),
        license: address(spec.license.as_ptr()),
        log_level: u32::from(!log.is_empty()),
        log_size: log.len() as u32,
        log_buf: if log.is_empty() {
            0
        } else {
            address(log.as_mut_ptr())
        },
        kern_version: 0,
        prog_flags: if spec.sleepable { SLEEPABLE } else { 0 },
        prog_name: object_name(spec.name),
        prog_ifindex: 0,
        expected_attach_type: spec.attach as u32,
        prog_btf_fd: btf,
        func_info_rec_size: if functions.is_empty() {
            0
        } else {
            size_of::<FuncInfo>() as u32
        },
        func_info: if functions.is_empty() {
            0
        } else {
            address(functions)
        },
        func_info_cnt: functions.len() as u32,
        line_info_rec_size: 0,
        line_info: 0,
        line_info_cnt: 0,
        attach_btf_id: spec.attach_btf_id,
    };
    // SAFETY: every pointer is to a slice or a string that outlives the call, with its own length
    // beside it; the kernel writes to the log only.
    unsafe { make(Command::ProgramLoad, &mut attr) }
}
