//! Attaches to a process that hits its probes all the time, and detaches again and again, with
//! every kind of link. The process does not notice, and nothing is left of it, in this process or
//! in the kernel.
//!
//! Without root or BPF it prints `SKIPPED (kernel): reason` and passes; with
//! `DPTRACE_REQUIRE_KERNEL_TESTS=1` a skip is a failure.

#[path = "../../../../../app/dptrace/tests/it/common/code.rs"]
mod code;
mod leftovers;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bpf_program::event::{self, EventId, RING, Setting, Source};
use bpf_program::{FieldKind, Layout, Module, Payload, ProgramDef, ProgramKind};
use bpf_session::{Features, RingReader, Session, UprobePlace, Uprobes};
use host::FilePlace;
use probe::{probe, probe_lazy};
use testkit::kernel::{may_run, skip};
use usdt::UsdtProbes;

use leftovers::{assert_gone, own_descriptors, own_ids, uprobe_events};

/// Number of simultaneous workers: on detach, the kernel makes each wait for all CPUs, a tenth of a
/// second and more.
const WORKERS: usize = 20;
/// Number of rounds of all workers together.
const DEFAULT_ROUNDS: usize = 1000;
/// Number of rounds with perf events, whose uprobes are detached one after the other.
const PERF_EVENT_ROUNDS: usize = 60;
/// Variable that overrides the number of rounds.
const ROUNDS_VARIABLE: &str = "DPTRACE_TEST_ROUNDS";
/// Number of rounds of which one waits until every probe was heard.
const LISTEN: usize = 3;
/// Minimum time of that wait.
const LISTENS: Duration = Duration::from_millis(30);
const RING_BYTES: u32 = 1 << 16;
/// Variable that makes this program the process to trace.
const TARGET: &str = "BPF_SESSION_TEST_TARGET";
const TIMEOUT: Duration = Duration::from_mins(1);

/// Returns the permission to run a kernel test, and the features of the kernel; `None` if either is
/// missing.
fn kernel() -> Option<(testkit::kernel::Turn, Features)> {
    let guard = may_run("kernel")?;
    match Features::detect() {
        Ok(features) => Some((guard, features)),
        Err(error) => {
            skip("kernel", &format!("BPF is refused: {error}"));
            None
        }
    }
}

/// Hits each probe; the process calls it all the time. Returns true if somebody listened to the
/// probe with the semaphore.
#[inline(never)]
fn hit(n: u64, text: &std::ffi::CStr) -> bool {
    let pointer = text.as_ptr().expose_provenance() as u64;
    probe!(rounds, tick, n, pointer);
    let listened = probe_lazy!(rounds, lazy, n);
    probe!(rounds, tock, pointer, n);
    listened
}

/// Runs the traced process: a thread hits probes until a line arrives, and checks its sum. Then the
/// counts are printed.
#[test]
#[ignore = "it is the process that the other tests trace"]
fn target() {
    if std::env::var_os(TARGET).is_none() {
        return;
    }
    let (stop, lazy) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let threads = [c"one"].map(|text| {
        let (stop, lazy) = (Arc::clone(&stop), Arc::clone(&lazy));
        std::thread::spawn(move || {
            let (mut n, mut sum) = (0_u64, 0_u64);
            while !stop.load(Ordering::Relaxed) {
                lazy.fetch_add(u64::from(hit(n, text)), Ordering::Relaxed);
                sum = sum.wrapping_add(n);
                n += 1;
            }
            assert_eq!(sum, n * (n - 1) / 2, "nothing was done to its registers");
            n
        })
    });
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    stop.store(true, Ordering::Relaxed);
    let hits: u64 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    let listened = lazy.load(Ordering::Relaxed);
    let still = (0..1000).filter(|&n| hit(n, c"now")).count();
    println!("\nhits {hits} listened {listened} still {still}");
}

/// Traced process as a child of ours, killed if the test fails.
struct Target {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    fn start() -> Self {
        let mut command = testkit::command(std::env::current_exe().unwrap());
        command
            .args(["rounds::target", "--exact", "--ignored", "--nocapture"])
            .env(TARGET, "1");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        let mut target = Self {
            child,
            input,
            output,
        };
        target.wait_for("ready");
        target
    }

    fn wait_for(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "it ended before {part:?}"
            );
        }
        line
    }

    /// Stops it. Returns the number of its hits, the number of hits of the lazy probe, and how many
    /// there are now that nobody listens.
    fn end(mut self) -> [u64; 3] {
        self.input.write_all(b"stop\n").unwrap();
        let line = self.wait_for("hits ");
        let words: Vec<&str> = line.split_whitespace().collect();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        [1, 3, 5].map(|at| words[at].parse().unwrap())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        testkit::end(&mut self.child);
    }
}

/// Returns every probe of this program, each with a program of its own and its places.
fn plan(features: Features) -> (Module, Vec<Vec<UprobePlace>>) {
    let file = FilePlace::at(&std::env::current_exe().unwrap())
        .load_notes()
        .unwrap();
    let found = UsdtProbes::read_with(&file.image().unwrap(), &file.code().unwrap());
    let mut module = Module {
        maps: event::maps(RING_BYTES),
        ..Module::default()
    };
    let mut places = Vec::new();
    for (number, name) in (0_u32..).zip(["tick", "lazy", "tock"]) {
        let probe = found.get("rounds", name).unwrap();
        let kinds = match name {
            "tick" => vec![FieldKind::Number, FieldKind::Text { capacity: 64 }],
            _ => vec![FieldKind::Number],
        };
        let id = if features.cookies {
            EventId::Cookie
        } else {
            EventId::Fixed(number)
        };
        let sleepable = features.sleepable_uprobes();
        for place in &probe.places {
            let sources: Vec<Source> = place
                .args
                .iter()
                .take(kinds.len())
                .cloned()
                .map(Source::Arg)
                .collect();
            let code = event::program(
                &Layout::new(&kinds),
                &sources,
                Setting {
                    id,
                    sleepable,
                    ring_bytes: RING_BYTES,
                },
            );
            let (kind, name) = (
                ProgramKind::Uprobe,
                format!("rounds_{}", module.programs.len()),
            );
            module.programs.push(ProgramDef {
                name,
                kind,
                target: None,
                sleepable,
                code: code.unwrap(),
                subprograms: Vec::new(),
            });
            let semaphore = place.semaphore.map(|semaphore| semaphore.offset.0);
            assert_eq!(semaphore.is_some(), &*probe.name == "lazy");
            places.push(vec![UprobePlace {
                at: place.at,
                semaphore,
                cookie: u64::from(number),
            }]);
        }
    }
    (module, places)
}

/// Attaches and detaches once; returns the number of events of each probe, if it was to listen.
fn round(
    pid: u32,
    features: Features,
    module: &Module,
    places: &[Vec<UprobePlace>],
    listen: bool,
) -> [u64; 3] {
    let mut session = Session::load(module, features).unwrap();
    let reader = listen.then(|| {
        RingReader::start(&session, RING, move |bytes| {
            let payload = Payload::new(bytes)?;
            assert_eq!(payload.process(), pid);
            Some(payload.id())
        })
        .unwrap()
    });
    for (program, places) in places.iter().enumerate() {
        let path = Path::new("/proc/self/exe");
        session
            .attach_uprobes(
                program,
                &Uprobes {
                    path,
                    places,
                    pid: Some(pid),
                },
            )
            .unwrap();
    }
    let mut heard = [0; 3];
    let start = Instant::now();
    if let Some(reader) = reader {
        // A busy machine may not let the process hit anything for a while.
        while heard.contains(&0) || start.elapsed() < LISTENS {
            assert!(start.elapsed() < TIMEOUT, "{heard:?}");
            reader
                .next(Duration::from_millis(10))
                .iter()
                .for_each(|&id| heard[id as usize] += 1);
        }
        session.detach();
        reader.finish(|ids| ids.iter().for_each(|&id| heard[id as usize] += 1));
    }
    heard
}

fn rounds(features: Features, number: usize) {
    let reported = std::env::var(ROUNDS_VARIABLE).ok();
    let each = reported
        .map_or(number, |reported| reported.parse().expect("a number"))
        .div_ceil(WORKERS);
    let target = Target::start();
    let pid = target.child.id();
    let (module, places) = plan(features);
    // Leftovers of the first round, such as a library's own descriptors, are not counted.
    round(pid, features, &module, &places, true);
    let descriptors = own_descriptors();
    let target_descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count();
    let work = || {
        let mut heard = [0; 3];
        for number in 0..each {
            let here = round(pid, features, &module, &places, number % LISTEN == 0);
            (0..3).for_each(|probe| heard[probe] += here[probe]);
        }
        heard
    };
    let heard = std::thread::scope(|scope| {
        let workers = [(); WORKERS].map(|()| scope.spawn(work));
        workers
            .map(|worker| worker.join().unwrap())
            .into_iter()
            .reduce(|a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
    });
    let heard = heard.unwrap();
    assert!(heard.iter().all(|&events| events > 0), "{heard:?}");
    assert_eq!(own_descriptors(), descriptors);
    assert_eq!(
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count(),
        target_descriptors
    );
    code::assert_code_is_the_files(pid);
    let session = Session::load(&module, features).unwrap();
    let programs = own_ids("prog");
    assert!(programs.len() >= places.len());
    drop(session);
    assert_gone("prog", &programs);
    assert!(own_ids("prog").is_empty() && own_ids("link").is_empty() && own_ids("map").is_empty());
    assert_eq!(uprobe_events(), "");
    let [hits, listened, still] = target.end();
    assert!(hits > listened && listened > 0, "{hits} {listened}");
    assert_eq!(still, 0, "the semaphore is down again");
}

#[test]
#[ignore = "deep soak: a thousand rounds of attaching and leaving take long, and their coverage is luck"]
fn with_the_best_that_the_kernel_has() {
    let Some((_guard, features)) = kernel() else {
        return;
    };
    rounds(features, DEFAULT_ROUNDS);
}

/// Links of Linux 5.15 to 6.5.
#[test]
#[ignore = "deep soak: each round waits for all CPUs when it leaves, and the coverage is luck"]
fn with_links_of_perf_events() {
    let Some((_guard, features)) = kernel() else {
        return;
    };
    if !features.cookies {
        return testkit::kernel::skip_if_permitted(
            "perf links",
            "the kernel has no links of perf events",
        );
    }
    rounds(
        Features {
            uprobe_multi: false,
            ..features
        },
        PERF_EVENT_ROUNDS,
    );
}

/// Events before Linux 5.15.
#[test]
#[ignore = "deep soak: perf events leave one after the other, which takes up to 100 s"]
fn with_perf_events_alone() {
    let Some((_guard, _)) = kernel() else { return };
    rounds(Features::none(), PERF_EVENT_ROUNDS);
}
