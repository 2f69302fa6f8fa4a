//! Names of connections from the memory of a process, compared with what the process says of itself.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The demo target with all hosts connected, waiting to begin; its truth is in a file.
struct Target {
    child: Child,
    messages: BufReader<ChildStderr>,
    dir: TempDir,
}

impl Target {
    fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::of(Path::new(PROGRAM), dir, "--wait-connected", args)
    }

    /// The same of a program without symbols and debug information, as it is released.
    fn stripped(wait: &str, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("stripped");
        strip(Path::new(PROGRAM), &program);
        Self::of(&program, dir, wait, args)
    }

    fn of(program: &Path, dir: TempDir, wait: &str, args: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(["demo-target", "--for", "1m", "--no-probes", wait, "--truth"])
            .arg(dir.path().join("truth"))
            .args(args)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        messages.read_line(&mut String::new()).unwrap();
        Self { child, messages, dir }
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

    /// Lets it begin.
    fn begin(&mut self) {
        drop(self.child.stdin.take());
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Its own way to end, which takes its trace file away.
        let _ = Command::new("kill").arg(self.pid()).status();
        let _ = self.child.wait();
        let _ = self.messages.read_line(&mut String::new());
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_dptrace");

/// Copies what of a program is loaded, and lets it have no sections: so no symbols.
fn strip(from: &Path, to: &Path) {
    let mut bytes = fs::read(from).unwrap();
    let number = |bytes: &[u8], at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)) as usize
    };
    // Elf64_Ehdr: e_phoff, e_phentsize and e_phnum; of each Elf64_Phdr p_offset and p_filesz.
    let (first, size, count) = (number(&bytes, 32, 8), number(&bytes, 54, 2), number(&bytes, 56, 2));
    let end = |at: usize| number(&bytes, first + size * at + 8, 8) + number(&bytes, first + size * at + 32, 8);
    let end = (0..count).map(end).max().unwrap();
    bytes.truncate(end);
    // e_shoff, e_shnum and e_shstrndx.
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    fs::write(to, bytes).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a command prints, which must work.
fn printed(args: &[&str]) -> (String, String) {
    let done = Command::new(PROGRAM).args(args).stdin(Stdio::null()).output().unwrap();
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{args:?}: {messages}");
    (String::from_utf8(done.stdout).unwrap(), messages)
}

/// The connections of a listing, sorted.
fn listed(json: &str) -> Vec<[String; 5]> {
    let number = |value: &Value| value.as_u64().unwrap().to_string();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> = (json.lines())
        .map(|line| {
            let q: Value = serde_json::from_str(line).unwrap();
            [text(&q["qpair"]), number(&q["qid"]), number(&q["thread"]), text(&q["subnqn"]), text(&q["hostnqn"])]
        })
        .collect();
    found.sort();
    found
}

/// The same, as the target knows them.
fn expected(truth: &Value) -> Vec<[String; 5]> {
    let number = |value: &Value| value.as_u64().unwrap().to_string();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut expected: Vec<_> = (truth["qpairs"].as_array().unwrap().iter())
        .map(|q| {
            let pointer = format!("{:#x}", q["pointer"].as_u64().unwrap());
            [pointer, number(&q["qid"]), number(&q["thread"]), text(&q["subnqn"]), text(&q["hostnqn"])]
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

/// Its trace has the addresses of RDMA connections. From these the lists are found in which the others are, too.
#[test]
fn connections_of_a_program_without_symbols_are_listed() {
    for era in ["v24.09", "v22.09"] {
        let target = Target::stripped("--wait-connected", &["--connections", "24", "--era", era]);
        let pid = target.pid();
        let (found, messages) = printed(&["objects", "qpair", "--json", "-v", "-p", &pid]);
        assert_eq!(listed(&found), expected(&target.truth()), "{messages}");
        assert_eq!(listed(&found).len(), 24);
        assert!(messages.contains(&format!("layout of SPDK {era}")), "{messages}");
        // What else these lists have; what begins elsewhere is not found.
        let (all, messages) = printed(&["objects", "-p", &pid]);
        for kind in ["24 qpairs", "4 subsystems", "3 threads", "1 target"] {
            assert!(all.contains(&format!("{kind}\n")), "{kind}: {all}");
        }
        assert!(!all.contains("bdevs\n"), "{all}");
        assert!(!messages.contains("not believed"), "{messages}");
        let (lines, _) = printed(&["record", "--no-probes", "-p", &pid, "--for", "100ms"]);
        assert_eq!(lines.lines().filter(|line| line.starts_with("alive_qpair: ")).count(), 24, "{lines}");
    }
}

/// Connections that come and go, with addresses that are used again at once: no record gets the name of another connection, and
/// those of the first ones have names.
#[test]
fn no_record_gets_the_name_of_another_connection() {
    let mut target =
        Target::start(&["--connections", "32", "--life", "2", "--churn", "10000", "--slots", "262144", "--flat-out"]);
    let records = target.file("records");
    let seen = trace(&mut target, "found alive", &records);
    let truth = target.truth();
    let Count { all, named, wrong } = Count::of(&records, &truth);
    assert!(wrong.is_empty(), "{} of {named} records have another's name: {:#?}", wrong.len(), wrong.first());
    assert!(named > 100, "{named} of {all} records have names: {seen:#?}");
    assert_eq!(truth["qpairs"].as_array().unwrap().len(), 10_000);
    println!("{named} of {all} records have names");
}

/// There is nothing when the trace is begun, and the program has no symbols: what the trace points to later leads to the rest.
#[test]
fn connections_that_come_later_get_names() {
    let mut target = Target::stripped(
        "--wait",
        &["--connections", "16", "--life", "100000", "--rate", "8000", "--requests", "16000"],
    );
    let records = target.file("records");
    let seen = trace(&mut target, "are printed as pointers", &records);
    let Count { all, named, wrong } = Count::of(&records, &target.truth());
    assert!(wrong.is_empty(), "{} of {named} records have another's name: {:#?}", wrong.len(), wrong.first());
    assert!(named > 100, "{named} of {all} records have names: {seen:#?}");
}

/// Traces a target until it ends. It begins when a message has this in it.
fn trace(target: &mut Target, ready: &str, records: &Path) -> Vec<String> {
    let mut trace = Command::new(PROGRAM)
        .args(["trace", "--no-probes", "--format", "ndjson", "-p", &target.pid(), "-o"])
        .arg(records)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(trace.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    while let Some(Ok(line)) = messages.next() {
        let is_ready = line.contains(ready);
        seen.push(line);
        if is_ready {
            break;
        }
    }
    target.begin();
    seen.extend(messages.map_while(Result::ok));
    assert!(trace.wait().unwrap().success(), "{seen:#?}");
    seen
}

/// Records that point to connections.
#[derive(Default)]
struct Count {
    all: usize,
    named: usize,
    /// Those that have the name of another connection.
    wrong: Vec<String>,
}

impl Count {
    fn of(records: &Path, truth: &Value) -> Self {
        let mut by_pointer: HashMap<u64, Vec<&Value>> = HashMap::new();
        for qpair in truth["qpairs"].as_array().unwrap() {
            by_pointer.entry(qpair["pointer"].as_u64().unwrap()).or_default().push(qpair);
        }
        let mut this = Self::default();
        for line in fs::read_to_string(records).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let qpair = &record["annotations"]["qpair"];
            this.all += usize::from(qpair.is_object() || record["args"].get("qpair").is_some());
            let (Some(pointer), Some(tsc)) = (qpair["ptr"].as_str(), record["tsc"].as_u64()) else { continue };
            // A connection is created, and destroyed, some ticks beside the times that the truth has.
            if record["tpoint"].as_str().unwrap().contains("_QP_") {
                continue;
            }
            let pointer = u64::from_str_radix(pointer.trim_start_matches("0x"), 16).unwrap();
            let lived =
                |q: &&&Value| q["added"].as_u64().unwrap() <= tsc && q["removed"].as_u64().is_none_or(|end| tsc <= end);
            let same = |q: &Value| ["qid", "subnqn", "hostnqn"].iter().all(|name| q[*name] == qpair[*name]);
            this.named += 1;
            if !by_pointer[&pointer].iter().filter(lived).any(|q| same(q)) {
                this.wrong.push(line.to_owned());
            }
        }
        this
    }
}
