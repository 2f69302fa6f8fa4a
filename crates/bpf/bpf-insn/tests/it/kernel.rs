//! The object on the live kernel: loaded and attached by aya, and loaded by bpftool (libbpf).
//!
//! Without root or BPF the tests print `SKIPPED (kernel): reason` and pass; with
//! `DPTRACE_REQUIRE_KERNEL_TESTS=1` a skip is a failure. They run one at a time: the kernel may
//! skip programs that meet on one CPU.

use aya::maps::{Array, HashMap, RingBuf};
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope};
use aya::programs::{BtfTracePoint, RawTracePoint, TracePoint, UProbe};
use aya::{Btf, Ebpf, EbpfLoader};
use bpf_insn::Reg::*;
use bpf_insn::*;
use std::error::Error;
use std::process::{self};
use std::time::{Duration, Instant};
use testkit::kernel::{may_run, skip};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Returns the permission to run a kernel test, if there is one.
fn kernel() -> Option<testkit::kernel::Turn> {
    let guard = may_run("kernel")?;
    let mut asm = Asm::new();
    asm.mov(R0, 0).exit();
    let mut object = ObjectBuilder::new("GPL");
    object.program("raw_tp", "may_i", asm.finish().ok()?);
    match load_raw_tracepoint(&object) {
        Ok(_) => Some(guard),
        Err(error) => {
            skip("kernel", &format!("BPF is refused: {error}"));
            None
        }
    }
}

fn load_raw_tracepoint(object: &ObjectBuilder) -> Result<Ebpf> {
    let mut ebpf = EbpfLoader::new().load(&object.build()?)?;
    let program: &mut RawTracePoint = ebpf.program_mut("may_i").ok_or("no program")?.try_into()?;
    program.load()?;
    Ok(ebpf)
}

/// Event of [`crate::common::sample::object`].
#[derive(Debug, PartialEq, Eq)]
struct Event {
    magic: u64,
    first: u64,
    second: u64,
}

/// Returns the first event within a minute; `poke` is called repeatedly until then.
fn wait_for_event(ring: &mut RingBuf<aya::maps::MapData>, mut poke: impl FnMut()) -> Option<Event> {
    let end = Instant::now() + Duration::from_mins(1);
    while Instant::now() < end {
        poke();
        if let Some(item) = ring.next() {
            let word = |at: usize| {
                item[at..]
                    .first_chunk()
                    .copied()
                    .map_or(0, u64::from_le_bytes)
            };
            return Some(Event {
                magic: word(0),
                first: word(8),
                second: word(16),
            });
        }
    }
    None
}

fn ring(ebpf: &mut Ebpf) -> Result<RingBuf<aya::maps::MapData>> {
    Ok(RingBuf::try_from(
        ebpf.take_map("events").ok_or("no map `events`")?,
    )?)
}

#[test]
fn a_raw_tracepoint_counts_and_reports() {
    let Some(_guard) = kernel() else { return };
    let tgid = process::id();
    let mut ebpf = EbpfLoader::new()
        .load(&crate::common::sample::object(tgid).unwrap())
        .unwrap();
    let mut ring = ring(&mut ebpf).unwrap();
    let program: &mut RawTracePoint = ebpf.program_mut("on_enter").unwrap().try_into().unwrap();
    program.load().unwrap();
    let link = program.attach("sys_enter").unwrap();
    let event = wait_for_event(&mut ring, std::thread::yield_now);
    program.detach(link).unwrap();
    assert_eq!(
        event,
        Some(Event {
            magic: crate::common::sample::MAGIC,
            first: u64::from(tgid),
            second: 0
        })
    );
    let counts: HashMap<_, u32, u64> = HashMap::try_from(ebpf.map("counts").unwrap()).unwrap();
    assert!(counts.get(&tgid, 0).unwrap() >= 1);
    // The callback added `step`, which is 3, in each round, and nothing touched the bytes before
    // it. Two threads of this process can both be the first.
    let zeroed: Array<_, [u64; 2]> = Array::try_from(ebpf.map(".bss").unwrap()).unwrap();
    let [unused, rounds] = zeroed.get(&0, 0).unwrap();
    let once = 3 * crate::common::sample::ROUNDS as u64;
    assert!(
        unused == 0 && rounds > 0 && rounds % once == 0,
        "{unused} {rounds}"
    );
}

/// Serves as the probed function.
#[inline(never)]
extern "C" fn probed(argument: u64) -> u64 {
    std::hint::black_box(argument).wrapping_mul(3)
}

/// Returns the function's offset in our executable's file: from its address and the mapping that
/// contains it (proc_pid_maps(5)).
fn file_offset(address: u64) -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let offset = fields.nth(1)?;
        let [start, end, offset] =
            [start, end, offset].map(|hex| u64::from_str_radix(hex, 16).ok());
        let (start, end) = (start?, end?);
        (start..end)
            .contains(&address)
            .then(|| Some(address - start + offset?))?
    })
}

#[test]
fn a_uprobe_reports_cookie_and_argument() {
    let Some(_guard) = kernel() else { return };
    let mut ebpf = EbpfLoader::new()
        .load(&crate::common::sample::object(0).unwrap())
        .unwrap();
    let mut ring = ring(&mut ebpf).unwrap();
    let program: &mut UProbe = ebpf.program_mut("on_call").unwrap().try_into().unwrap();
    program.load().unwrap();
    let offset = file_offset(probed as *const () as u64).unwrap();
    let point = UProbeAttachPoint {
        location: UProbeAttachLocation::AbsoluteOffset(offset),
        cookie: Some(4711),
    };
    let link = program
        .attach(point, "/proc/self/exe", UProbeScope::CallingProcess)
        .unwrap();
    let event = wait_for_event(&mut ring, || assert_eq!(probed(14), 42));
    program.detach(link).unwrap();
    assert_eq!(
        event,
        Some(Event {
            magic: crate::common::sample::MAGIC,
            first: 4711,
            second: 14
        })
    );
}

#[test]
fn all_kinds_of_programs_load_with_aya() {
    let Some(_guard) = kernel() else { return };
    let mut ebpf = EbpfLoader::new()
        .load(&crate::common::sample::object(0).unwrap())
        .unwrap();
    for name in ["on_call", "on_other_call", "on_return"] {
        let program: &mut UProbe = ebpf.program_mut(name).unwrap().try_into().unwrap();
        program.load().unwrap();
    }
    let program: &mut TracePoint = ebpf.program_mut("on_switch").unwrap().try_into().unwrap();
    program.load().unwrap();
}

#[test]
fn a_tp_btf_program_loads_with_aya() {
    let Some(_guard) = kernel() else { return };
    let Ok(btf) = Btf::from_sys_fs() else {
        skip("kernel", "no /sys/kernel/btf/vmlinux");
        return;
    };
    let mut asm = Asm::new();
    asm.comment("the task that goes")
        .load(Size::DW, R1, R1.at(8))
        .mov(R0, 0)
        .exit();
    let mut object = ObjectBuilder::new("GPL");
    object.program("tp_btf/sched_switch", "on_switch", asm.finish().unwrap());
    let mut ebpf = EbpfLoader::new().load(&object.build().unwrap()).unwrap();
    let program: &mut BtfTracePoint = ebpf.program_mut("on_switch").unwrap().try_into().unwrap();
    program.load("sched_switch", &btf).unwrap();
    let link = program.attach().unwrap();
    program.detach(link).unwrap();
}

#[test]
fn every_map_kind_is_created() {
    let Some(_guard) = kernel() else { return };
    for &kind in MapKind::ALL {
        let map = match kind {
            MapKind::RingBuf => MapDef::ring_buffer("m", 4096),
            MapKind::StackTrace => MapDef::new("m", kind, 4, 8 * 16, 8),
            MapKind::PerfEventArray | MapKind::ProgArray => MapDef::new("m", kind, 4, 4, 8),
            MapKind::Queue | MapKind::Stack => MapDef::new("m", kind, 0, 8, 8),
            _ => MapDef::new("m", kind, 4, 8, 8),
        };
        let mut object = ObjectBuilder::new("GPL");
        object.map(map);
        let loaded = EbpfLoader::new().load(&object.build().unwrap());
        assert!(loaded.is_ok(), "{kind:?}: {:?}", loaded.err());
    }
}

#[test]
fn the_verifiers_log_shows_our_notes() {
    let Some(_guard) = kernel() else { return };
    let mut asm = Asm::new();
    asm.mov(R6, 0)
        .comment("reads through a null pointer")
        .load(Size::DW, R0, R6.at(0))
        .exit();
    let mut object = ObjectBuilder::new("GPL");
    object.program("raw_tp", "may_i", asm.finish().unwrap());
    let error = load_raw_tracepoint(&object).unwrap_err().to_string();
    assert!(error.contains("; reads through a null pointer"), "{error}");
}

/// Runs bpftool in a mount namespace of its own, with a BPF file system that is unmounted with it.
fn bpftool_loads(object: &[u8]) -> Result<std::result::Result<String, String>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("all.o");
    std::fs::write(&file, object)?;
    let script =
        "mount -t bpf bpf \"$1\" && bpftool prog loadall \"$2\" \"$1/progs\" && ls \"$1/progs\"";
    let mount = dir.path().join("bpf");
    std::fs::create_dir(&mount)?;
    let output = testkit::command("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&mount)
        .arg(&file)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(if output.status.success() && output.stderr.is_empty() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    })
}

#[test]
fn bpftool_loads_the_object() {
    let Some(_guard) = kernel() else { return };
    if !std::path::Path::new("/usr/sbin/bpftool").exists() {
        // The kernel does not matter here: a machine without bpftool still has the aya tests.
        testkit::kernel::skip_if_permitted("bpftool", "no /usr/sbin/bpftool here");
        return;
    }
    let listed = bpftool_loads(&crate::common::sample::object(1).unwrap()).unwrap();
    let mut names: Vec<&str> = match &listed {
        Ok(listed) => listed.split_whitespace().collect(),
        Err(error) => panic!("bpftool refuses the object: {error}"),
    };
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "on_call",
            "on_enter",
            "on_other_call",
            "on_return",
            "on_switch",
            "on_tick"
        ]
    );
}
