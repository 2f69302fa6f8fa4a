//! Trials: one for each kernel feature or permission.
//!
//! A trial loads a program that does nothing, attaches it at most to this process or to a kernel
//! function that nobody calls meanwhile, and removes it again. It mounts nothing, changes no
//! setting and leaves nothing behind.

mod loading;
mod uprobes;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use bpf_insn::btf::{Btf as BtfWriter, Linkage, Param, TypeId};
use bpf_insn::{Asm, AtomicOp, Helper, Imm64, Reg, Size, Width};
use bpf_program::License;
use host::{HostError, PerfSource, Tracefs, TracepointName};
use sys::bpf::{AttachType, Btf, FuncInfo, Link, Map, MapSpec, Program, ProgramSpec, ProgramType};
use sys::perf::{PerfEvent, Scope};
use typeinfo::{NameKind, TypeStore};
use uapi::Arch;
use uapi::bpf::{MapKind, NO_PREALLOC};
use uapi::perf::{CPU_CLOCK, CPU_CYCLES, Counter};

use super::answer::Answer;
use crate::features::trials::loading::{bytes_of, load_code, load_spec, with_program, with_target};
pub(super) use loading::load;
pub(super) use uprobes::sleepable_program;
pub use uprobes::{semaphores, sleepable_uprobes, uprobe_multi, uprobe_multi_filter, uprobes};

/// Default size of `dptrace record`'s ring buffer, in bytes.
const RING_BYTES: u32 = 4 << 20;
/// Tracepoint that every kernel has and that is hit only when a thread changes its name
/// (`trace/events/task.h`).
const TRACEPOINT: (&str, &str) = ("task", "task_rename");
/// Function that exists to be attached to: only BPF's test runs call it (`net/bpf/test_run.c`,
/// since Linux 5.5).
const FUNCTION: &str = "bpf_fentry_test1";
/// Sample period long enough that no sample is taken during a trial: minutes of time or of cycles.
const PERIOD: u64 = 1 << 40;

/// Messages of the verifier for an unknown helper number (`check_helper_call`,
/// `kernel/bpf/verifier.c`).
const UNKNOWN: [&str; 2] = ["invalid func", "unknown func"];

/// Tries `bpf(2)`: loads a program of the type that probes need.
pub fn bpf_call() -> Answer {
    load(ProgramType::Kprobe, AttachType::None, &[])
        .map(|_| Answer::YES)
        .into()
}

/// Tries whether programs are compiled to machine code, not interpreted.
pub fn jit() -> Answer {
    let program = match load(ProgramType::Kprobe, AttachType::None, &[]) {
        Ok(program) => program,
        Err(error) => return Answer::from(Err(error)),
    };
    match program.stats() {
        Ok(stats) if stats.translated_bytes > 0 => Answer::YES,
        Ok(_) => Answer::no("a program was loaded but not compiled"),
        Err(error) => Answer::from_error(&error),
    }
}

/// Tries a ring buffer as large as a recording's.
pub fn ring_buffer() -> Answer {
    let spec = MapSpec {
        name: "try",
        kind: MapKind::RingBuf,
        key_size: 0,
        value_size: 0,
        max_entries: RING_BYTES,
        flags: 0,
    };
    Map::create(&spec).into()
}

/// Tries whether programs may read the kernel's memory.
pub fn kernel_memory() -> Answer {
    let arguments = |asm: &mut Asm| {
        asm.mov(Reg::R1, Reg::R10)
            .add(Reg::R1, -8)
            .mov(Reg::R2, 8)
            .mov(Reg::R3, 0)
            .call(Helper::PROBE_READ_KERNEL);
    };
    load_code(ProgramType::Kprobe, AttachType::None, arguments)
        .map(|_| Answer::YES)
        .into()
}

/// Tries the attach cookie, by which a program knows which of its places was hit.
pub fn attach_cookies() -> Answer {
    load(
        ProgramType::Kprobe,
        AttachType::None,
        &[Helper::GET_ATTACH_COOKIE],
    )
    .map(|_| Answer::YES)
    .into()
}

/// Tries a link that attaches a program to a perf event.
pub fn perf_links() -> Answer {
    with_program(ProgramType::PerfEvent, AttachType::None, |program| {
        counter(CPU_CLOCK).and_then(|event| Link::perf_event(program, event, 0))
    })
}

/// Tries to exchange a word of memory atomically, here on the program's stack.
pub fn exchange() -> Answer {
    let exchange = |asm: &mut Asm| {
        asm.store(Size::DW, Reg::R10.at(-8), 0).mov(Reg::R1, 1);
        asm.atomic(AtomicOp::Xchg, Width::W64, Reg::R10.at(-8), Reg::R1);
    };
    load_code(ProgramType::Kprobe, AttachType::None, exchange)
        .map(|_| Answer::YES)
        .into()
}

/// Tries map keys larger than a program's stack.
pub fn large_keys() -> Answer {
    let keys = MapSpec {
        name: "try",
        kind: MapKind::Hash,
        key_size: 1024,
        value_size: 8,
        max_entries: 1,
        flags: 0,
    };
    Map::create(&keys).map_or_else(|error| Answer::from_error(&error), |_| Answer::YES)
}

/// Returns true if programs of all types may use maps that allocate their entries on demand. Since
/// Linux 6.1. Before, most types may, too, but the kernel warns, since the program may have
/// interrupted its allocator.
pub(crate) fn safe_allocation() -> bool {
    let map = MapSpec {
        name: "try",
        kind: MapKind::Hash,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        flags: NO_PREALLOC,
    };
    let Ok(map) = Map::create(&map) else {
        return false;
    };
    let lookup = |asm: &mut Asm| {
        asm.store(Size::W, Reg::R10.at(-4), 0)
            .mov(Reg::R2, Reg::R10)
            .add(Reg::R2, -4);
        asm.load_imm64(Reg::R1, Imm64::MapFd(map.as_fd().as_raw_fd()))
            .call(Helper::MAP_LOOKUP_ELEM);
    };
    load_code(ProgramType::PerfEvent, AttachType::None, lookup).is_ok()
}

/// Returns true if the kernel knows the helper: then it rejects the call for its missing arguments
/// and not for its number.
pub(crate) fn knows(
    helper: Helper,
    kind: ProgramType,
    attach: AttachType,
    attach_btf_id: u32,
) -> bool {
    let mut asm = Asm::new();
    asm.call(helper).mov(Reg::R0, 0).exit();
    let done = load_spec(kind, attach, attach_btf_id, false, &bytes_of(asm));
    done.map_or_else(
        |error| !UNKNOWN.iter().any(|words| error.log.contains(words)),
        |_| true,
    )
}

/// Tries `bpf_loop`: a loop of any length, whose body is a subprogram with BTF.
pub fn loops() -> Answer {
    let mut writer = BtfWriter::new();
    let int = writer.int("int", 4, true);
    let context = writer.pointer(TypeId::VOID);
    let main = writer.prototype(
        int,
        &[Param {
            name: "context",
            ty: context,
        }],
    );
    let main = writer.function("main", main, Linkage::Global);
    let body = writer.prototype(
        int,
        &[
            Param {
                name: "index",
                ty: int,
            },
            Param {
                name: "context",
                ty: context,
            },
        ],
    );
    let body = writer.function("body", body, Linkage::Static);
    let types = match Btf::load(&writer.to_bytes()) {
        Ok(types) => types,
        Err(error) => return Answer::from_error(&error),
    };
    let mut asm = Asm::new();
    // The body starts at slot 8. The constant takes slots 1 and 2, and its distance counts from
    // slot 2.
    asm.mov(Reg::R1, 1)
        .load_imm64(Reg::R2, Imm64::Func(6))
        .mov(Reg::R3, 0)
        .mov(Reg::R4, 0)
        .call(Helper::LOOP);
    asm.mov(Reg::R0, 0).exit();
    asm.mov(Reg::R0, 0).exit();
    let functions = [
        FuncInfo {
            slot: 0,
            type_id: main.number(),
        },
        FuncInfo {
            slot: 8,
            type_id: body.number(),
        },
    ];
    let insns = bytes_of(asm);
    let spec = ProgramSpec {
        name: "try",
        kind: ProgramType::Kprobe,
        attach: AttachType::None,
        attach_btf_id: 0,
        sleepable: false,
        license: License::default().name(),
        insns: &insns,
        functions: Some((&types, &functions)),
    };
    Program::load(&spec).map(|_| Answer::YES).into()
}

/// Tries the record of a tracepoint.
pub fn tracepoints() -> Answer {
    let id = match tracepoint_id() {
        Ok(id) => id,
        Err(why) => return Answer::Unknown(why),
    };
    with_program(ProgramType::Tracepoint, AttachType::None, |program| {
        attach(program, || PerfEvent::tracepoint(id, ourselves()))
    })
}

/// Tries the arguments of a tracepoint.
pub fn raw_tracepoints() -> Answer {
    with_program(ProgramType::RawTracepoint, AttachType::None, |program| {
        Link::raw_tracepoint(program, Some(&CString::new(TRACEPOINT.1)?))
    })
}

/// Tries the arguments of a tracepoint with their types.
pub fn btf_tracepoints() -> Answer {
    with_target(
        AttachType::RawTracepoint,
        NameKind::Typedef,
        &format!("btf_trace_{}", TRACEPOINT.1),
    )
}

/// Tries the entry of a kernel function, without a breakpoint.
pub fn fentry() -> Answer {
    with_target(AttachType::FunctionEntry, NameKind::Func, FUNCTION)
}

/// Tries the return of a kernel function, without a breakpoint.
pub fn fexit() -> Answer {
    with_target(AttachType::FunctionExit, NameKind::Func, FUNCTION)
}

/// Tries any kernel function, with a breakpoint.
pub fn kprobes() -> Answer {
    let Some(source) = PerfSource::find("kprobe") else {
        return Answer::no("there is no perf event source called kprobe");
    };
    with_program(ProgramType::Kprobe, AttachType::None, |program| {
        attach(program, || {
            PerfEvent::kprobe(source.kind, None, FUNCTION, 0, Scope::Cpu(0))
        })
    })
}

/// Tries many kernel functions with one link.
pub fn kprobe_multi() -> Answer {
    with_program(ProgramType::Kprobe, AttachType::KprobeMulti, |program| {
        Link::kprobe_multi(program, &[FUNCTION], &[0])
    })
}

/// Tries events that the kernel counts: the time that this process uses.
pub fn software_events() -> Answer {
    with_program(ProgramType::PerfEvent, AttachType::None, |program| {
        attach(program, || counter(CPU_CLOCK))
    })
}

/// Tries events that the processor counts: the cycles that this process uses.
pub fn hardware_events() -> Answer {
    counter(CPU_CYCLES).into()
}

/// Tries the kernel's own types.
pub fn kernel_types() -> Answer {
    match kernel_type(NameKind::Typedef, &format!("btf_trace_{}", TRACEPOINT.1)) {
        Ok(Some(_)) => Answer::YES,
        Ok(None) => Answer::no("it exists, but lacks a type that every kernel has"),
        Err(error) => Answer::from_error(&error),
    }
}

/// Returns the BTF id of one of the kernel's types.
fn kernel_type(kind: NameKind, name: &str) -> io::Result<Option<u32>> {
    let bytes = host::kernel_btf()?;
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut types = TypeStore::new(Arch::HOST);
    types
        .add_btf(typeinfo::Btf::parse(&bytes).map_err(malformed)?)
        .map_err(malformed)?;
    let found = types.find(kind, name).map_err(malformed)?;
    Ok(found.and_then(|found| types.btf_id(found)).map(|id| id.id))
}

/// Tries the kernel's descriptions of tracepoints.
pub fn tracefs() -> Answer {
    match Tracefs::find() {
        Ok(found) => Answer::Yes(format!("at {}", found.mounted().display())),
        Err(HostError::TracefsForbidden { path, .. }) => Answer::No {
            why: format!("not permitted to read {}", path.display()),
            denied: true,
        },
        Err(_) => Answer::no(match sys::mount::detached("tracefs") {
            Ok(_) => "it is not mounted, although this kernel has it",
            Err(_) => "it is not mounted",
        }),
    }
}

fn tracepoint_id() -> Result<u64, String> {
    let name = TracepointName {
        category: TRACEPOINT.0.into(),
        name: TRACEPOINT.1.into(),
    };
    let found = match Tracefs::find() {
        Ok(found) => found,
        Err(error) => {
            let missing = |_| format!("{}, and this user cannot open it unmounted", brief(&error));
            Tracefs::detached(sys::mount::detached("tracefs").map_err(missing)?)
        }
    };
    found
        .format(&name)
        .map(|format| format.id)
        .map_err(|error| error.to_string())
}

/// Returns the message without its hint, which another row of the table gives.
fn brief(error: &HostError) -> String {
    match error {
        HostError::NoTracefs { .. } => "tracefs is not mounted".into(),
        other => other.to_string(),
    }
}

fn counter(of: Counter) -> io::Result<PerfEvent> {
    PerfEvent::counter(of, PERIOD, ourselves())
}

fn ourselves() -> Scope {
    Scope::Process(std::process::id())
}

/// Attaches with a link, or with an ioctl on kernels that have no links for perf events.
fn attach(program: &Program, event: impl Fn() -> io::Result<PerfEvent>) -> io::Result<Link> {
    match Link::perf_event(program, event()?, 0) {
        Ok(link) => Ok(link),
        Err(_) => Link::perf_event_ioctl(program, event()?),
    }
}
