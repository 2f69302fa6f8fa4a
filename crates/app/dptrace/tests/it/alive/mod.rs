//! Names of connections from a process's memory, compared with the process's own record.

mod names;
mod rpc;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The demo target with all hosts connected, waiting to begin; it writes its truth to a file.
struct Target {
    child: Child,
    messages: BufReader<ChildStderr>,
    dir: TempDir,
}

impl Target {
    fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::spawn(
            Path::new(PROGRAM),
            dir,
            &[&["--wait-connected", "--no-probes"], args].concat(),
        )
    }

    /// Starts a target with probes. Its trace file lives as long as this value.
    fn with_probes(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::spawn(
            Path::new(PROGRAM),
            dir,
            &[&["--wait-connected", "--keep"], args].concat(),
        )
    }

    /// Starts a program without symbols and debug information, like a release build.
    fn stripped(wait: &str, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("stripped");
        strip(Path::new(PROGRAM), &program);
        Self::spawn(&program, dir, &[&[wait, "--no-probes"], args].concat())
    }

    fn spawn(program: &Path, dir: TempDir, args: &[&str]) -> Self {
        let mut child = testkit::command(program)
            .args(["demo-target", "--for", "1m", "--truth"])
            .arg(dir.path().join("truth"))
            .args(args)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        messages.read_line(&mut String::new()).unwrap();
        Self {
            child,
            messages,
            dir,
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn truth(&self) -> Value {
        serde_json::from_slice(&fs::read(self.dir.path().join("truth")).unwrap()).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn trace(&self) -> PathBuf {
        format!("/dev/shm/demo_trace.pid{}", self.pid()).into()
    }

    /// Ends it by a signal that it handles: it writes the truth and removes its trace file.
    fn end(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = testkit::command("kill").arg(self.pid()).status();
        }
        let _ = self.child.wait();
        let _ = self.messages.read_line(&mut String::new());
    }

    /// Lets its requests begin.
    fn begin(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.end();
        // A trace file left behind by `--keep`.
        let _ = fs::remove_file(self.trace());
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_dptrace");

/// Copies the loaded parts of a program without its section headers, and so without symbols.
fn strip(from: &Path, to: &Path) {
    let mut bytes = fs::read(from).unwrap();
    let number = |bytes: &[u8], at: usize, size: usize| {
        bytes[at..at + size]
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)) as usize
    };
    // Elf64_Ehdr: e_phoff, e_phentsize and e_phnum; of each Elf64_Phdr p_offset and p_filesz.
    let (first, size, count) = (
        number(&bytes, 32, 8),
        number(&bytes, 54, 2),
        number(&bytes, 56, 2),
    );
    let end = |at: usize| {
        number(&bytes, first + size * at + 8, 8) + number(&bytes, first + size * at + 32, 8)
    };
    let end = (0..count).map(end).max().unwrap();
    bytes.truncate(end);
    // e_shoff, e_shnum and e_shstrndx.
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    testkit::write_program(to, &bytes);
}

/// Returns the output and the messages of a command, which must succeed.
fn printed(args: &[&str]) -> (String, String) {
    let done = testkit::command(PROGRAM)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{args:?}: {messages}");
    (String::from_utf8(done.stdout).unwrap(), messages)
}

/// Returns the connections of a listing, sorted.
fn listed(json: &str) -> Vec<[String; 5]> {
    let number = |value: &Value| value.as_u64().unwrap().to_string();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> = (json.lines())
        .map(|line| {
            let q: Value = serde_json::from_str(line).unwrap();
            [
                text(&q["qpair"]),
                number(&q["qid"]),
                number(&q["thread"]),
                text(&q["subnqn"]),
                text(&q["hostnqn"]),
            ]
        })
        .collect();
    found.sort();
    found
}

/// Returns the target's own connections in the same form.
fn expected(truth: &Value) -> Vec<[String; 5]> {
    let number = |value: &Value| value.as_u64().unwrap().to_string();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut expected: Vec<_> = (truth["qpairs"].as_array().unwrap().iter())
        .map(|q| {
            let pointer = format!("{:#x}", q["pointer"].as_u64().unwrap());
            [
                pointer,
                number(&q["qid"]),
                number(&q["thread"]),
                text(&q["subnqn"]),
                text(&q["hostnqn"]),
            ]
        })
        .collect();
    expected.sort();
    expected
}

#[test]
fn connections_are_listed_as_they_are() {
    let target = Target::start(&["--connections", "12"]);
    let (found, _) = printed(&["objects", "qpair", "--json", "-p", &target.pid()]);
    assert_eq!(listed(&found), expected(&target.truth()));
    assert_eq!(listed(&found).len(), 12);
}

/// The program's trace has the addresses of RDMA connections, which lead to the lists that contain
/// the others.
#[test]
fn connections_of_a_program_without_symbols_are_listed() {
    for era in ["v24.09", "v22.09"] {
        let target = Target::stripped("--wait-connected", &["--connections", "24", "--era", era]);
        let pid = target.pid();
        let (found, messages) = printed(&["objects", "qpair", "--json", "-v", "-p", &pid]);
        assert_eq!(listed(&found), expected(&target.truth()), "{messages}");
        assert_eq!(listed(&found).len(), 24);
        assert!(
            messages.contains(&format!("layout of SPDK {era}")),
            "{messages}"
        );
        // Other objects in these lists; objects reached from elsewhere are not found.
        let (all, messages) = printed(&["objects", "-p", &pid]);
        for kind in ["24 qpairs", "4 subsystems", "3 threads", "1 target"] {
            assert!(all.contains(&format!("{kind}\n")), "{kind}: {all}");
        }
        assert!(!all.contains("bdevs\n"), "{all}");
        assert!(!messages.contains("rejected"), "{messages}");
        let (lines, _) = printed(&["record", "--no-probes", "-p", &pid, "--for", "100ms"]);
        assert_eq!(
            lines
                .lines()
                .filter(|line| line.starts_with("alive_qpair: "))
                .count(),
            24,
            "{lines}"
        );
    }
}

/// Each ring has been overwritten, and begins at another time: records from before the last one's
/// start have names too. The rings of the second target hold a few milliseconds, less than it takes
/// to read the memory and then the trace.
#[test]
fn each_connection_of_a_process_is_one_row() {
    for (slots, rate) in [("512", "2000"), ("256", "20000")] {
        has_one_row_for_each(slots, rate);
    }
}

#[track_caller]
fn has_one_row_for_each(slots: &str, rate: &str) {
    let args = [
        "--connections",
        "8",
        "--life",
        "1000000",
        "--trace-era",
        "C",
        "--slots",
        slots,
        "--rate",
        rate,
    ];
    let mut target = Target::start(&args);
    target.begin();
    let (pid, trace) = (target.pid(), target.trace());
    let listed = |tpoint: &str| {
        let args = [
            "trace",
            "-i",
            trace.to_str().unwrap(),
            "--head",
            "1",
            "--tpoint",
            tpoint,
        ];
        !printed(&args).0.is_empty()
    };
    let started = Instant::now();
    // Records of requests are there, and those of connection starts have been overwritten.
    while !listed("RDMA_REQ_NEW") || listed("RDMA_QP_CREATE") {
        assert!(started.elapsed() < TIMEOUT, "no ring was overwritten");
        std::thread::sleep(Duration::from_millis(100));
    }
    // A ring that is overwritten while it is copied is left out, which is reported: the reader was
    // off its CPU for too long.
    loop {
        let (rows, messages) = connections_of(&pid);
        if rows > 4 {
            return;
        }
        assert!(
            messages.contains("overwritten by the application while they were read"),
            "{messages}{rows} rows"
        );
        assert!(
            started.elapsed() < TIMEOUT,
            "a ring was overwritten in each copy"
        );
    }
}

/// Reads the trace of a process once; each connection must have one row. Returns the number of
/// rows, and the messages.
#[track_caller]
fn connections_of(pid: &str) -> (usize, String) {
    let (summary, messages) = printed(&[
        "latency",
        "-p",
        pid,
        "--summary",
        "--json",
        "--tpoint",
        "RDMA_*",
    ]);
    let name =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["group"]["qpair"].to_string();
    let names: Vec<_> = summary.lines().map(name).collect();
    let addresses: BTreeSet<_> = names.iter().map(|name| name.split(' ').next()).collect();
    assert!(
        names.iter().all(|name| name.contains("nqn.")) && addresses.len() == names.len(),
        "{messages}{summary}"
    );
    (names.len(), messages)
}

/// Returns the command `dptrace trace -p` without probes.
fn trace(target: &Target, records: &Path) -> Command {
    let mut trace = testkit::command(PROGRAM);
    trace
        .args([
            "trace",
            "--no-probes",
            "--format",
            "ndjson",
            "-p",
            &target.pid(),
            "-o",
        ])
        .arg(records);
    trace
}

/// Timeout, longer than a target runs.
const TIMEOUT: Duration = Duration::from_mins(3);
