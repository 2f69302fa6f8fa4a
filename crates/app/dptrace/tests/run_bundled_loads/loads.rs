//! The loads: the test program, started again. A line on standard input starts them.
#![expect(
    unsafe_code,
    reason = "the scripts know the functions by the names that C programs have them under"
)]

use std::ffi::{CStr, c_char};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::Mutex;
use std::time::Duration;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn pgstat_report_activity(state: i32, text: *const c_char) {
    black_box((state, text));
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn BecomeLockGroupMember(leader: u64, pid: i32) -> bool {
    black_box((leader, pid)).1 > 0
}

/// First fields of `LOCALLOCK`.
#[repr(C)]
struct AwaitedLock {
    fields: [u32; 3],
    field4: u16,
    kind: u8,
    method: u8,
    mode: i32,
    hash: u32,
    /// Null if nothing is known of the lock's holders.
    shared: *const SharedLock,
}

// SAFETY: the pointers lead to statics that never change.
unsafe impl Sync for AwaitedLock {}

/// First fields of `LOCK`.
#[repr(C)]
struct SharedLock {
    tag: [u32; 4],
    masks: [i32; 2],
    holders: Links,
}

/// `dlist_node`, and `SHM_QUEUE` before version 16.
#[repr(C)]
struct Links {
    before: *const Links,
    next: *const Links,
}

/// First fields of `PROCLOCK`.
#[repr(C)]
struct Holder {
    lock: *const SharedLock,
    backend: *const Backend,
    leader: *const Backend,
    masks: [i32; 2],
    of_lock: Links,
}

/// First fields of `PGPROC`.
#[repr(C)]
struct Backend {
    pointers: [u64; 4],
    wait_status: i32,
    latch: [i32; 3],
    latch_owner: i32,
}

// SAFETY: the pointers lead to statics that never change.
unsafe impl Sync for SharedLock {}
// SAFETY: as above.
unsafe impl Sync for Holder {}

static READER: Backend = backend(4710);
static WRITER: Backend = backend(4711);

const fn backend(pid: i32) -> Backend {
    Backend {
        pointers: [0; 4],
        wait_status: 0,
        latch: [0; 3],
        latch_owner: pid,
    }
}

/// A lock that two hold: the first reads (`AccessShare`), the second writes (`RowExclusive`).
static HELD: SharedLock = SharedLock {
    tag: [0; 4],
    masks: [0; 2],
    holders: Links {
        before: std::ptr::null(),
        next: &raw const FIRST.of_lock,
    },
};
static FIRST: Holder = holder(&READER, 1, &raw const SECOND.of_lock);
static SECOND: Holder = holder(&WRITER, 3, &raw const HELD.holders);

const fn holder(backend: &'static Backend, mode: i32, next: *const Links) -> Holder {
    Holder {
        lock: &raw const HELD,
        backend,
        leader: backend,
        masks: [1 << mode, 0],
        of_lock: Links {
            before: std::ptr::null(),
            next,
        },
    }
}

const fn lock(kind: u8, fields: [u32; 3], mode: i32) -> AwaitedLock {
    AwaitedLock {
        fields,
        field4: 0,
        kind,
        method: 1,
        mode,
        hash: 0,
        shared: std::ptr::null(),
    }
}

static STUCK: AwaitedLock = lock(10, [5, 0, 78], 7);

/// Returns as `ProcSleep` does: 0 if it has the lock, 2 after a deadlock. A negative result stands
/// for a cancelled query, after which the real one does not return.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ProcSleep(lock: *const AwaitedLock, result: i32, milliseconds: u64) -> i32 {
    std::thread::sleep(Duration::from_millis(milliseconds));
    if result < 0 {
        LockErrorCleanup();
    }
    black_box((lock, result)).1
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn LockErrorCleanup() {
    black_box(());
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn SSL_do_handshake(ssl: u64, result: i32) -> i32 {
    black_box(ssl);
    black_box(result)
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn SSL_free(ssl: u64) {
    black_box(ssl);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spin_here() {
    // A second of CPU time, so that a profile's timer fires however busy the machine is.
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec;
    while used() < 1 {
        let mut n = 0;
        // Iterators would be functions of their own.
        while n < 1_000_000 {
            n += if n % 1000 == 0 { black_box(1) } else { 1 };
        }
    }
}

/// Runs a slow query, a fast one, one with a long text, one of a worker, and one that does not end.
fn queries() {
    let query = |text: &CStr, time| {
        pgstat_report_activity(2, text.as_ptr());
        std::thread::sleep(time);
        pgstat_report_activity(1, std::ptr::null());
    };
    query(c"SELECT slow FROM load", SLOW);
    query(c"SELECT fast FROM load", Duration::ZERO);
    let long = format!("SELECT long, {}", "x".repeat(20_000));
    query(&std::ffi::CString::new(long).expect("no NUL"), SLOW);
    let worker = std::thread::spawn(|| {
        BecomeLockGroupMember(0, 4711);
        pgstat_report_activity(2, c"SELECT part FROM load".as_ptr());
        std::thread::sleep(SLOW);
    });
    assert!(worker.join().is_ok());
    // The process ends during this query.
    pgstat_report_activity(2, c"SELECT last FROM load".as_ptr());
    std::thread::sleep(SLOW);
}

/// Waits that end in each way, one of them after a long time.
fn waits() {
    let wait = |text: &CStr, lock: AwaitedLock, result, milliseconds| {
        pgstat_report_activity(2, text.as_ptr());
        ProcSleep(&raw const lock, result, milliseconds);
        pgstat_report_activity(1, std::ptr::null());
    };
    let held = |mode| AwaitedLock {
        shared: &raw const HELD,
        ..lock(0, [5, 16384, 0], mode)
    };
    wait(c"SELECT granted FROM load", held(8), 0, 200);
    wait(c"SELECT shared FROM load", held(5), 0, 200);
    wait(c"SELECT queued FROM load", held(2), 0, 200);
    wait(c"SELECT fast FROM load", lock(0, [5, 16384, 0], 8), 0, 0);
    wait(c"SELECT crossed FROM load", lock(5, [741, 0, 0], 5), 2, 200);
    wait(
        c"SELECT cancelled FROM load",
        lock(10, [5, 0, 77], 7),
        -1,
        200,
    );
    std::thread::spawn(move || {
        wait(
            c"SELECT last FROM load",
            lock(4, [5, 16385, 3], 7),
            0,
            600_000,
        );
    });
    wait_for_sleepers(1);
    std::thread::sleep(SLOW);
}

/// Makes two handshakes, one of them in two steps, and one that is given up.
fn handshakes() {
    for (ssl, result) in [(1, 1), (2, -1), (2, 1), (3, -1)] {
        SSL_do_handshake(ssl, result);
    }
    (1..4).for_each(|ssl| SSL_free(ssl));
}

fn files() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = dir.path().join("load.dat");
    let mut file = std::fs::File::create(&path).expect("a file");
    for _ in 0..5 {
        file.write_all(&[1; 1000]).expect("there is space");
    }
    file.sync_all().expect("it is a file");
    file.sync_data().expect("it is a file");
    assert!((0..4).all(|_| file.read(&mut [0; 10]).is_err()));
    for _ in 0..3 {
        assert!(std::fs::File::open("/no-such-directory/load").is_err());
    }
}

fn connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut client =
        TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (mut server, _) = listener.accept().expect("it connects");
    for _ in 0..6 {
        client.write_all(b"hello").expect("it is connected");
        server.read_exact(&mut [0; 5]).expect("it is connected");
    }
    assert!(TcpStream::connect("127.0.0.1:1").is_err());
}

fn names() {
    assert!(("localhost", 1).to_socket_addrs().is_ok());
}

/// Unwinds three times, which is the work of a library.
fn unwinds() {
    for _ in 0..3 {
        let unwound = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(())));
        assert!(unwound.is_err());
    }
}

fn memory() {
    black_box(vec![1_u8; 64 << 20]);
}

fn locks() {
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let _held = lock.lock().expect("nobody panics");
                std::thread::sleep(Duration::from_millis(50));
            });
        }
    });
}

fn signals() {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::URG).expect("it is ours");
    for end in ["kill -URG $PPID; exit 3", "kill -9 $$"] {
        let mut shell = testkit::command("sh");
        let _ended = shell.args(["-c", end]).status().expect("it runs");
    }
}

/// Waits until `count` threads of this process are in a call to sleep (proc_pid_syscall(5)).
fn wait_for_sleepers(count: usize) {
    let call = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("syscall")).ok();
    let is_asleep = |call: &String| call.starts_with(&format!("{CLOCK_NANOSLEEP} "));
    let tasks = || {
        std::fs::read_dir("/proc/self/task")
            .expect("we live")
            .flatten()
    };
    while tasks().filter_map(call).filter(is_asleep).count() < count {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// System call number `__NR_clock_nanosleep`.
const CLOCK_NANOSLEEP: u32 = if cfg!(target_arch = "aarch64") {
    115
} else {
    230
};

/// Starts a query and calls that do not end.
fn running() {
    std::thread::spawn(|| std::thread::sleep(Duration::from_mins(10)));
    std::thread::spawn(|| {
        pgstat_report_activity(2, c"SELECT blocked FROM load".as_ptr());
        ProcSleep(&raw const STUCK, 0, 600_000);
    });
    pgstat_report_activity(2, c"SELECT stuck FROM load".as_ptr());
    wait_for_sleepers(2);
    std::thread::sleep(SLOW);
}

/// Duration above the 100 ms from which a query or a wait is slow.
const SLOW: Duration = Duration::from_millis(200);

pub(super) fn run(name: &str) {
    match name {
        "running" => running(),
        "queries" => queries(),
        "waits" => waits(),
        "handshakes" => handshakes(),
        "files" => files(),
        "connections" => connections(),
        "names" => names(),
        "memory" => memory(),
        "unwinds" => unwinds(),
        "locks" => locks(),
        "signals" => signals(),
        "spin" => spin_here(),
        "calls" => {
            (0..500).for_each(|_| _ = rustix::process::getppid());
            assert!((0..7).all(|_| rustix::fs::unlink("/no-such-directory/load").is_err()));
        }
        "sleep" => std::thread::sleep(Duration::from_millis(300)),
        _ => unreachable!("no load {name:?}"),
    }
}
