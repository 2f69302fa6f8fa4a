//! The examples work, on this kernel.
//!
//! Without root or BPF a test says `SKIPPED (kernel): reason` and passes; with `DPTRACE_REQUIRE_KERNEL_TESTS=1` a skip is a
//! failure.
#[expect(dead_code, reason = "its main is the example's")]
#[path = "../../examples/count_syscalls.rs"]
mod count_syscalls;
#[expect(dead_code, reason = "its main is the example's")]
#[path = "../../examples/histogram.rs"]
mod histogram;
#[expect(dead_code, reason = "its main is the example's")]
#[path = "../../examples/stream_events.rs"]
mod stream_events;
#[expect(dead_code, reason = "its main is the example's")]
#[path = "../../examples/syscalls_of_pid.rs"]
mod syscalls_of_pid;
#[expect(dead_code, reason = "its main is the example's")]
#[path = "../../examples/usdt_events.rs"]
mod usdt_events;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bt_engine::{Error, Event, Script, Target};
use probe::probe;
use testkit::kernel::{may_run, skip};

/// Returns the right to run a kernel test, if there is one.
fn kernel() -> Option<testkit::kernel::Turn> {
    let guard = may_run("kernel")?;
    match bpf_session::Features::detect() {
        Ok(_) => Some(guard),
        Err(error) => {
            skip("kernel", &format!("BPF is refused: {error}"));
            None
        }
    }
}

#[test]
fn system_calls_of_a_command_are_counted() {
    let Some(_guard) = kernel() else { return };
    let mut out = Vec::new();
    count_syscalls::count(["cat", "/dev/null"].map(Into::into).into_iter(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let count = |call: &str| {
        out.lines().find_map(|line| {
            line.strip_prefix(call)?
                .strip_prefix(": ")?
                .parse::<u64>()
                .ok()
        })
    };
    assert!(
        count("read") >= Some(1) && count("execve") >= Some(1),
        "{out}"
    );
}

#[test]
fn system_calls_of_a_process_are_counted() {
    let Some(_guard) = kernel() else { return };
    let mut busy = testkit::command("sh")
        .args(["-c", "while :; do read line < /dev/null; done"])
        .spawn()
        .unwrap();
    let mut out = Vec::new();
    let words = [&busy.id().to_string(), "0.5"].map(str::to_owned);
    let counted = syscalls_of_pid::count(&words, &mut out);
    testkit::end(&mut busy);
    counted.unwrap();
    let out = String::from_utf8(out).unwrap();
    let counts: Vec<u64> = out
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(out.lines().any(|line| line.ends_with(" read")), "{out}");
    assert!(counts.is_sorted_by(|one, next| one >= next), "{out}");
}

#[test]
fn a_histogram_is_numbers() {
    let Some(_guard) = kernel() else { return };
    let done = AtomicBool::new(false);
    let mut out = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::read("/proc/self/comm").unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let measured = histogram::measure("1", &mut out);
        done.store(true, Ordering::Relaxed);
        measured.unwrap();
    });
    let out = String::from_utf8(out).unwrap();
    let mut lines = out.lines();
    let all = lines.next().unwrap().strip_suffix(" reads").unwrap();
    let buckets: Vec<u64> = lines
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(out.contains("\n< 1 bytes [0]: "), "{out}");
    assert_eq!(buckets.iter().sum::<u64>(), all.parse().unwrap(), "{out}");
}

#[test]
fn events_are_streamed_until_the_caller_stops() {
    let Some(_guard) = kernel() else { return };
    let (mut out, started) = (Vec::new(), AtomicBool::new(false));
    // The condition is first asked when the probes are attached. What starts then is in the output.
    let stop = || {
        let is_started = started.swap(true, Ordering::Relaxed);
        if !is_started {
            testkit::command("true").status().unwrap();
        }
        is_started
    };
    let lost = stream_events::stream(stop, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(
        lost == 0 && out.lines().any(|line| line.ends_with("/true")),
        "{out}"
    );
}

#[test]
fn hits_of_a_static_probe_are_events() {
    let Some(_guard) = kernel() else { return };
    let done = AtomicBool::new(false);
    let mut out = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                probe!(engine_test, tick);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let words = [&std::process::id().to_string(), "engine_test:tick", "3"].map(str::to_owned);
        let listened = usdt_events::listen(&words, &mut out);
        done.store(true, Ordering::Relaxed);
        listened.unwrap();
    });
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.lines().count() == 3 && out.lines().all(|line| line.starts_with('(')),
        "{out}"
    );
}

#[test]
fn maps_and_values_have_their_types() {
    let Some(_guard) = kernel() else { return };
    let text = "begin { @[\"a\"] = 1; @[\"b\"] = 2; print(@[\"b\"]); printf(\"%d %s\\n\", $1, str($2)); exit(7); } end { print(@); }";
    let mut session = Script::builder(text)
        .params(["5", "x"])
        .compile()
        .unwrap()
        .load()
        .unwrap();
    session.attach().unwrap();
    assert!(session.is_over());
    let finished = session.finish().unwrap();
    let [
        Event::Value(two) | Event::Element(bt_engine::Cell::Value(two)),
        Event::Printf { text, .. },
        Event::Exit(7),
        Event::Map(table),
    ] = finished.events.as_slice()
    else {
        panic!("{:?}", finished.events)
    };
    assert_eq!(
        (
            two.number(),
            text.as_str(),
            table.rows.len(),
            finished.exit_status
        ),
        (Some(2), "5 x\n", 2, 7)
    );
}

#[test]
fn a_whole_run_hands_out_all_events() {
    let Some(_guard) = kernel() else { return };
    let text = "begin { printf(\"first\"); } interval:ms:1 { @n = count(); exit(3); } \
                end { printf(\"last\"); }";
    let mut events = Vec::new();
    let session = Script::builder(text).compile().unwrap().load().unwrap();
    let result = session.run(|event| events.push(event)).unwrap();
    let texts: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Printf { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["first", "last"]);
    assert!(events.contains(&Event::Exit(3)) && result.events.is_empty());
    assert_eq!(result.exit_status, 3);
    let [(_, count)] = result.map("@n").unwrap().rows.as_slice() else {
        panic!("{result:?}")
    };
    assert!(count.to_string().parse::<u64>().unwrap() >= 1, "{count}");
    assert!(result.map("@m").is_none());
}

/// Needs no kernel: compiling only asks the machine for the names in the script.
#[test]
fn mistakes_are_values() {
    let Err(Error::Script(mistakes)) = Script::builder("begin { print($x); }\n")
        .name("my.bt")
        .compile()
    else {
        panic!("it has a mistake");
    };
    let [mistake] = mistakes.as_slice() else {
        panic!("{mistakes}")
    };
    assert!(
        mistake.is_error() && mistakes.to_string().contains("my.bt"),
        "{mistakes}"
    );
    let needs = Script::builder("interval:s:1 { print(__PID__); }").compile();
    assert!(matches!(needs, Err(Error::NeedsProcess)));
    let gone = Script::builder("begin { exit(); }")
        .target(Target::Pid(u32::MAX >> 1))
        .compile();
    assert!(matches!(gone, Err(Error::Host(_))));
}

/// A process that does nothing, and has a libc.
struct Idle(std::process::Child);

impl Idle {
    fn start() -> Self {
        let idle = Self(testkit::command("sleep").arg("600").spawn().unwrap());
        // Before it runs its own program, it has ours.
        while std::fs::read(format!("/proc/{}/comm", idle.pid())).unwrap() != b"sleep\n"
            || !std::fs::read_to_string(format!("/proc/{}/maps", idle.pid()))
                .unwrap()
                .contains("libc")
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        idle
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        testkit::end(&mut self.0);
    }
}

#[test]
fn processes_that_end_while_probes_are_attached_are_left_out() {
    const SCRIPT: &str = "uprobe:libc:malloc { @ = count(); }";
    let Some(_guard) = kernel() else { return };
    let (mut first, mut second) = (Idle::start(), Idle::start());
    let both = Target::Pids(vec![first.pid(), second.pid()]);
    let script = Script::builder(SCRIPT)
        .target(both.clone())
        .compile()
        .unwrap();
    first.end();
    let mut session = script.load().unwrap();
    assert_eq!(session.attach().unwrap().probes, 1);
    assert!(!session.is_over());
    drop(session);
    let session = |target| {
        Script::builder(SCRIPT)
            .target(target)
            .compile()
            .unwrap()
            .load()
            .unwrap()
    };
    let [mut of_both, mut of_one] = [both.clone(), Target::Pid(second.pid())].map(session);
    second.end();
    assert_eq!(
        of_both.attach().unwrap_err().to_string(),
        format!("process {} has ended", second.pid())
    );
    assert_eq!(
        of_one.attach().unwrap_err().to_string(),
        format!("process {} has ended", second.pid())
    );
    let error = Script::builder(SCRIPT)
        .target(both)
        .compile()
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "all 2 processes have ended");
}
