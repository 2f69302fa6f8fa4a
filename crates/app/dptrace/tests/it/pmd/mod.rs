//! `dptrace pmd` on a real Open vSwitch with DPDK, from Debian's packages. Its PMD thread forwards
//! packets that DPDK's null device makes without end, which takes neither huge pages nor devices.

mod silent;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, kernel, skip};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tempfile::TempDir;

const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
/// Timeout for anything that is sure to come, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);
/// CPU of the PMD thread: not the first, on which the daemon's other threads run.
const CPU: usize = 1;

/// Open vSwitch instance with its files in a folder and its bridge in a network namespace of its
/// own.
struct OpenVSwitch {
    folder: TempDir,
    database: Child,
    daemon: Option<Child>,
}

impl Drop for OpenVSwitch {
    fn drop(&mut self) {
        for child in self.daemon.iter_mut().chain([&mut self.database]) {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }
}

impl OpenVSwitch {
    /// Starts it, and waits until packets flow. `None` if it can't be tested here.
    fn start(metrics: bool) -> Option<Self> {
        if !Path::new(DAEMON).exists() {
            skip("kernel", "no openvswitch-switch-dpdk here");
            return None;
        }
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            skip("kernel", "a PMD thread needs a CPU beside the first one");
            return None;
        }
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        run(testkit::command("ovsdb-tool")
            .arg("create")
            .arg(path("conf.db"))
            .arg(schema));
        let remote = format!("--remote=punix:{}", path("db.sock").display());
        let control = format!("--unixctl={}", path("o.ctl").display());
        let mut database = testkit::command("ovsdb-server");
        database
            .arg(path("conf.db"))
            .args([remote, control])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let database = database.spawn().expect("it starts");
        let mut switch = Self {
            folder,
            database,
            daemon: None,
        };
        until("the database listens", || {
            switch.folder.path().join("db.sock").exists()
        });
        switch.set_up(metrics);
        Some(switch)
    }

    fn set_up(&mut self, metrics: bool) {
        let prefix = format!("dptrace-pmd-{}", std::process::id());
        let other = |setting: &str| format!("other_config:{setting}");
        self.vsctl(&["--no-wait", "init"]);
        self.vsctl(&[
            "--no-wait",
            "set",
            "Open_vSwitch",
            ".",
            &other("dpdk-init=true"),
            &other(&format!(
                "dpdk-extra=--no-huge --no-pci --legacy-mem --file-prefix {prefix}"
            )),
            &other("dpdk-alloc-mem=256"),
            &other(&format!("pmd-cpu-mask={:#x}", 1 << CPU)),
            &other("dpdk-lcore-mask=0x1"),
            &other(&format!("pmd-perf-metrics={metrics}")),
        ]);
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let mut daemon = testkit::command("unshare");
        daemon.args([
            "--net",
            DAEMON,
            &format!("unix:{}", file("db.sock")),
            &format!("--unixctl={}", file("v.ctl")),
        ]);
        // Sockets of bridges and of DPDK go to the folder too.
        daemon
            .env("OVS_RUNDIR", self.folder.path())
            .env("RUNTIME_DIRECTORY", self.folder.path());
        daemon
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.daemon = Some(daemon.spawn().expect("it starts"));
        self.add_bridge();
        until("the PMD thread is there", || self.pmd().is_some());
    }

    /// Adds a bridge whose first port forwards to the second one.
    fn add_bridge(&self) {
        self.vsctl(&[
            "add-br",
            "br0",
            "--",
            "set",
            "bridge",
            "br0",
            "datapath_type=netdev",
            "fail-mode=standalone",
        ]);
        for (port, options) in [
            ("null0", "net_null0,size=64"),
            ("null1", "net_null1,no-rx=1"),
        ] {
            let options = format!("options:dpdk-devargs={options}");
            self.vsctl(&[
                "add-port",
                "br0",
                port,
                "--",
                "set",
                "Interface",
                port,
                "type=dpdk",
                &options,
            ]);
        }
        let bridge = self.folder.path().join("br0.mgmt");
        let bridge = format!("unix:{}", bridge.display());
        run(testkit::command("ovs-ofctl").args([
            "add-flow",
            &bridge,
            "priority=9,in_port=null0,actions=output:null1",
        ]));
    }

    fn vsctl(&self, words: &[&str]) {
        let database = format!("--db=unix:{}", self.folder.path().join("db.sock").display());
        run(testkit::command("ovs-vsctl")
            .args(["--timeout=100", &database])
            .args(words));
    }

    fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("it runs").id()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).expect("a number")).expect("a number");
        kill_process(pid, signal).expect("it is ours");
    }

    /// Returns the thread id of the PMD thread.
    fn pmd(&self) -> Option<u32> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid()))
            .ok()?
            .flatten();
        let name = |path: &Path| fs::read_to_string(path.join("comm")).unwrap_or_default();
        let pmd = threads
            .map(|thread| thread.path())
            .find(|path| name(path).starts_with("pmd-c"))?;
        pmd.file_name()?.to_str()?.parse().ok()
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts `dptrace pmd` for longer than the test takes, and waits until it measures.
fn looking(pid: u32) -> Child {
    let pid = pid.to_string();
    let mut command = testkit::command(PROGRAM);
    command
        .args(["pmd", "-p", &pid, "--for", "10m", "--json"])
        .stdin(Stdio::null());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    until("it asks, once everything is attached", || {
        let threads = fs::read_dir(&tasks).expect("it runs").flatten();
        let name = |path: &Path| fs::read_to_string(path.join("comm")).unwrap_or_default();
        threads
            .map(|thread| thread.path())
            .any(|path| name(&path).trim_end() == "questions")
    });
    child
}

/// Ends it as a user does; returns its report.
fn end(child: Child) -> Value {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a number");
    kill_process(pid, Signal::INT).expect("it is ours");
    report(&child.wait_with_output().expect("it is ours"))
}

#[track_caller]
fn report(output: &Output) -> Value {
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{:?}\n{errors}\n{text}",
        output.status
    );
    crate::common::schema::validated(&text).remove(0)
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Returns `CLOCK_MONOTONIC` in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).expect("a time") * 1_000_000_000
        + u64::try_from(now.tv_nsec).expect("a time")
}

/// Returns the nanoseconds of a reason among a stretch's shares.
fn share(stretch: &Value, reason: &str) -> u64 {
    let shares = stretch["shares"].as_array().expect("a list");
    shares
        .iter()
        .filter(|share| share["reason"] == reason)
        .map(|share| number(&share["ns"]))
        .sum()
}

fn slow(report: &Value) -> &Vec<Value> {
    report["threads"][0]["slow"]
        .as_array()
        .unwrap_or_else(|| panic!("no history: {report:#}"))
}

#[test]
#[ignore = "deep peers: it needs Open vSwitch with DPDK, and judges times within 2 ms"]
fn a_stop_is_one_slow_stretch() {
    let Some(_guard) = kernel() else { return };
    let Some(switch) = OpenVSwitch::start(true) else {
        return;
    };
    let child = looking(switch.pid());
    std::thread::sleep(Duration::from_millis(300));
    let before = now();
    switch.signal(Signal::STOP);
    let stopped = now();
    std::thread::sleep(Duration::from_millis(120));
    let still = now();
    switch.signal(Signal::CONT);
    let after = now();
    std::thread::sleep(Duration::from_millis(500));
    let report = end(child);
    let found: Vec<&Value> = slow(&report)
        .iter()
        .filter(|stretch| stretch["reason"] == "stopped")
        .collect();
    let [one] = found.as_slice() else {
        panic!("{found:#?}\n{report:#}")
    };
    let nanos = share(one, "stopped");
    let (least, most) = (still - stopped, after - before);
    // On a busy machine the thread may have waited for its CPU when the signal came: it stopped
    // only once it ran.
    let waited = share(one, "waited");
    assert!(
        (least.saturating_sub(2_000_000 + waited)..=most + 2_000_000).contains(&nanos),
        "{least} to {most}: {one:#}"
    );
    // The history has the stop, and the thread's waits after it.
    let length = number(&one["length_ms"]) * 1_000_000;
    let all: u64 = one["shares"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|share| number(&share["ns"]))
        .sum();
    assert!(
        (nanos.saturating_sub(2_000_000)..=all + 3_000_000).contains(&length),
        "{one:#}"
    );
    assert_eq!(report["threads"][0]["name"], format!("pmd-c{CPU:02}"));
    let sentence = report["threads"][0]["sentence"]
        .as_str()
        .expect("a sentence");
    assert!(sentence.contains("1 stopped"), "{sentence}");
}
