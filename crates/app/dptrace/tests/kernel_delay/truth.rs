//! The program of known truth: it plays a part, and prints what it did.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use probe::probe;
use rustix::process::{Resource, getgid, getppid, getpriority_process, getrlimit, getuid};

/// Environment variable that selects the program's part.
pub(super) const PART: &str = "DPTRACE_DELAY_TRUTH";

/// Number of calls in the window.
pub(super) const CALLS: u64 = 1000;
pub(super) const OTHER_CALLS: u64 = 321;
pub(super) const SLEEPS: u32 = 20;
/// Number of calls that return an error.
pub(super) const ERRORS: u64 = 17;
pub(super) const SLEEP: Duration = Duration::from_millis(3);

/// The program: it prints that it is ready, waits for a line, plays its part, prints that it is
/// done, and waits for its end.
#[test]
#[ignore = "it is the program that the other tests look at"]
fn truth() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    match part.as_str() {
        "calls" => calls(),
        "spin" => spin(),
        "rounds" => rounds(),
        "storm" => storm(),
        "storm_at_once" => storm_at_once(),
        "exec" => exec(),
        "deep" => deep(),
        "crowd" => crowd(),
        #[cfg(target_arch = "x86_64")]
        "narrow" => super::narrow::narrow(),
        "parent" => parent(),
        "polls" => super::polls::polls(),
        "patient" => super::long_waits::patient(),
        "rivals" => super::long_waits::rivals(),
        "woken" => super::long_waits::woken(),
        _ => idle(),
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

pub(super) fn say(text: &str) {
    // The harness has printed something on this line.
    println!("\n{text}");
    std::io::stdout().flush().unwrap();
}

pub(super) fn wait_for_go() {
    say("ready");
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

/// Starts a thread that has its name when this returns: the thread sets the name itself.
pub(super) fn named(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> std::thread::JoinHandle<()> {
    let (started, wait) = std::sync::mpsc::channel();
    let thread = move || {
        started.send(()).unwrap();
        run();
    };
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(thread)
        .unwrap();
    wait.recv().unwrap();
    thread
}

/// Makes a call from within its caller's code, at any optimization level.
#[expect(clippy::inline_always, reason = "it is what is tested")]
#[inline(always)]
fn inlined_call() {
    let _ = getppid();
}

fn make_calls() {
    for _ in 0..CALLS {
        inlined_call();
    }
    for _ in 0..OTHER_CALLS {
        let _ = getuid();
    }
}

/// Makes counted calls and known sleeps. One thread exists before the window and ends; another
/// starts and ends in it.
fn calls() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let old = named("old", move || {
        let _ = wait.recv();
        make_calls();
    });
    named("blocked", || {
        let (from, _to) = rustix::pipe::pipe().unwrap();
        let _ = rustix::io::read(&from, &mut [0; 1]);
    });
    wait_for_go();
    let born = named("born", make_calls);
    go.send(()).unwrap();
    let sleeper = named("sleeper", || {
        let begun = Instant::now();
        for _ in 0..SLEEPS {
            std::thread::sleep(SLEEP);
        }
        say(&format!("slept {}", begun.elapsed().as_nanos()));
    });
    let failing = named("failing", || {
        for _ in 0..ERRORS {
            assert!(rustix::fs::access("/no/such/file", rustix::fs::Access::EXISTS).is_err());
        }
        let _ = getppid();
    });
    for thread in [old, born, sleeper, failing] {
        thread.join().unwrap();
    }
    say("done");
}

/// Runs one thread that makes no call at all, and two that share a CPU.
fn spin() {
    let pinned = || {
        testkit::stay_on_last_cpu();
        loop {
            std::hint::spin_loop();
        }
    };
    named("spinner", || {
        loop {
            std::hint::spin_loop();
        }
    });
    named("left", pinned);
    named("right", pinned);
    wait_for_go();
}

/// Plays round after round until it is killed: a call that begins the round, counted calls and a
/// sleep, a call that ends it.
fn rounds() {
    wait_for_go();
    loop {
        round_begins();
        for _ in 0..CALLS {
            let _ = getppid();
        }
        std::thread::sleep(SLEEP);
        round_ends();
        std::thread::sleep(SLEEP);
    }
}

/// Carries the triggers that begin a round: this function, its probe and its call.
#[inline(never)]
fn round_begins() {
    probe!(rounds, begins);
    let _ = (getuid(), getpriority_process(None));
}

/// Ends a round; see [`round_begins`].
#[inline(never)]
fn round_ends() {
    let _ = (getgid(), getrlimit(Resource::Nofile));
    probe!(rounds, ends);
}

/// Runs another program from a thread that is not the first.
fn exec() {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    wait_for_go();
    let error = Command::new("/bin/sleep").arg("0.2").exec();
    panic!("no sleep: {error}");
}

/// Makes calls without end.
fn storm() {
    wait_for_go();
    loop {
        let _ = getppid();
    }
}

/// Makes calls without end from the start, in a thread named `storm`.
fn storm_at_once() {
    named("storm", || {
        loop {
            let _ = getppid();
        }
    });
    say("ready");
}

/// Number of threads that exist at once.
pub(super) const CROWD: u64 = 200;
/// Number of calls that each of them makes.
pub(super) const CROWD_CALLS: u64 = 10;

/// Starts many threads at once, each with a name of its own.
fn crowd() {
    wait_for_go();
    let member = |number: u64| {
        let calls = || {
            for _ in 0..CROWD_CALLS {
                let _ = getppid();
            }
            std::thread::sleep(SLEEP);
        };
        std::thread::Builder::new()
            .name(format!("member{number}"))
            .stack_size(1 << 16)
            .spawn(calls)
            .unwrap()
    };
    let members: Vec<_> = (0..CROWD).map(member).collect();
    for member in members {
        member.join().unwrap();
    }
    say("done");
}

/// Number of functions above the deepest one, with more than a KiB of stack each.
const DEPTH: u32 = 12;

/// Calls a function that recurses, and finally the kernel.
fn deep() {
    #[inline(never)]
    fn deeper(left: u32) -> u8 {
        let mut room = [0_u8; 1024];
        std::hint::black_box(&mut room);
        if left == 0 {
            let _ = getuid();
        } else {
            room[0] = deeper(left - 1);
        }
        std::hint::black_box(&mut room)[0]
    }
    wait_for_go();
    let thread = named("deep", || {
        deeper(DEPTH);
    });
    thread.join().unwrap();
    say("done");
}

/// Starts a busy child and waits for it. The child ends when its input does.
fn parent() {
    let mut command = testkit::command(std::env::current_exe().unwrap());
    command
        .args(std::env::args_os().skip(1))
        .env(PART, "spin")
        .stderr(Stdio::null());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    wait_for_go();
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Has only threads that wait.
fn idle() {
    wait_for_go();
}
