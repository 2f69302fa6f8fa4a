//! The bundled scripts at work: what they print of the demo target matches the target's own record.

#![expect(
    clippy::expect_used,
    reason = "a test that is not set up as it should be fails"
)]

#[path = "it/common/kernel.rs"]
#[expect(dead_code, reason = "recordings are of no interest here")]
mod kernel;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use demo_target::Truth;
use kernel::{Demo, PROGRAM, Process, kernel, until};

/// Starts a bundled script.
fn tracer(script: &str, args: &[&str]) -> Process {
    let mut command = testkit::command(PROGRAM);
    command
        .args(["run", script])
        .args(args)
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped());
    Process::start(&mut command)
}

/// Runs a script over the whole life of a target; returns its output and the truth.
#[track_caller]
fn printed_of_demo(script: &str, demo_args: &[&str], script_args: &[&str]) -> (String, Truth) {
    let mut demo = Demo::start(demo_args);
    let pid = demo.process.pid().to_string();
    let mut tracer = tracer(script, &[script_args, &["-p", &pid]].concat());
    tracer.wait_for("Attached");
    demo.go();
    let (status, output, messages) = tracer.end();
    assert!(status.success(), "{script}: {status}: {messages:#?}");
    (output, demo.truth())
}

/// Returns the number of lines that contain `part`.
fn count(output: &str, part: &str) -> u64 {
    output.lines().filter(|line| line.contains(part)).count() as u64
}

#[track_caller]
fn assert_counts(output: &str, truth: &Truth, parts: &[(&str, &str)]) {
    for (part, probe) in parts {
        let hits = truth.hits[&format!("spdk:{probe}")];
        assert_eq!(count(output, part), hits, "{probe}, by {part:?}:\n{output}");
    }
}

#[test]
#[ignore = "deep truth: no thread may stand still for 50 ms between its clock and its probe"]
fn nvmf_lists_in_order() {
    let Some(_alone) = kernel() else { return };
    let (output, _) = printed_of_demo("nvmf", &["--requests", "300"], &[]);
    // As in bpftrace, an empty line stands between events and maps.
    let lines = output.lines().filter(|line| !line.is_empty());
    let times = lines.map(|line| {
        line.split(':')
            .next()
            .and_then(|time| time.parse::<f64>().ok())
    });
    let times: Vec<f64> = times
        .map(|time| time.expect("a line begins with its time"))
        .collect();
    // Lines wait 50 ms for earlier ones; an emulated processor stands still for longer than that.
    assert!(times.is_sorted() || is_emulated(), "{output}");
}

#[test]
fn nvmf_lists_the_control_plane() {
    let Some(_alone) = kernel() else { return };
    let (output, truth) = printed_of_demo("nvmf", &["--requests", "300"], &[]);
    assert!(
        output.contains(": nvmf_tgt reached state RUNNING\n"),
        "{output}"
    );
    assert!(
        output
            .contains(": nqn.2016-06.io.spdk:cnode1 change state from INACTIVE to ACTIVE start\n"),
        "{output}"
    );
    assert!(
        output.contains(": nqn.2016-06.io.spdk:cnode1 on thread 2 state to ACTIVE done\n"),
        "{output}"
    );
    let parts = [
        ("to poll group on thread", "nvmf_poll_group_add_qpair"),
        ("from poll group on thread", "nvmf_poll_group_remove_qpair"),
        (": disconnect qpair", "nvmf_qpair_disconnect"),
        (": create controller", "nvmf_ctrlr_create"),
        (": destruct controller", "nvmf_ctrlr_destruct"),
        (", qid ", "nvmf_ctrlr_add_qpair"),
        (" add namespace ", "nvmf_subsystem_add_ns"),
        (" add host ", "nvmf_subsystem_add_host"),
        (" add listener ", "nvmf_subsystem_add_listener"),
    ];
    // Two lines have a qpair's id; one of them has its controller too.
    let without: String = output
        .lines()
        .filter(|line| !line.contains(": controller"))
        .flat_map(|it| [it, "\n"])
        .collect();
    assert_counts(&without, &truth, &parts);
    for qpair in &truth.qpairs {
        let line = format!(
            "{} add qpair {:#x}, qid {}, for host {}\n",
            qpair.subnqn, qpair.pointer, qpair.qid, qpair.hostnqn
        );
        assert!(output.contains(&line), "{line} is not in:\n{output}");
    }
}

fn is_emulated() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("QEMU TCG"))
}

#[test]
fn nvme_and_timeouts_list_the_controllers() {
    let Some(_alone) = kernel() else { return };
    let (output, truth) = printed_of_demo("nvme", &["--requests", "300"], &[]);
    let parts = [
        (" create qpair ", "bdev_nvme_create_qpair"),
        (": delete controller ", "bdev_nvme_ctrlr_delete"),
        (": remove disk ", "bdev_nvme_destruct"),
    ];
    assert_counts(&output, &truth, &parts);
    let (output, truth) = printed_of_demo("nvmf_timeout", &["--requests", "300"], &[]);
    let parts = [
        (" is reset", "bdev_nvme_ctrlr_reset"),
        (
            " waits before it connects again",
            "bdev_nvme_ctrlr_reconnect_delay",
        ),
        (" connects again", "bdev_nvme_ctrlr_reconnect"),
    ];
    // The last part's words occur in both lines.
    let without: String = output.replace(" waits before it connects again", " waits");
    assert_counts(&output, &truth, &parts[..2]);
    assert_counts(&without, &truth, &parts[2..]);
}

#[test]
fn sched_lists_cores_and_moves() {
    let Some(_alone) = kernel() else { return };
    // On a busy machine the target may not balance its cores in 2 s.
    let life = || printed_of_demo("sched", &["--for", "2s"], &[]);
    let (output, truth) = until(life, |(_, truth)| truth.hits["spdk:dynsched_core_info"] > 0);
    let parts = [
        ("balance of 2 cores", "dynsched_balance"),
        ("core  ", "dynsched_core_info"),
        (" of its core", "dynsched_move"),
    ];
    let cores: String = output
        .lines()
        .filter(|line| !line.contains(" -> "))
        .flat_map(|it| [it, "\n"])
        .collect();
    assert_counts(&output, &truth, &parts[..1]);
    assert_counts(&cores, &truth, &parts[1..2]);
    assert_counts(&output, &truth, &parts[2..]);
    let shares = output.lines().filter_map(|line| {
        line.split("busy ")
            .nth(1)?
            .split(' ')
            .find(|word| !word.is_empty())
    });
    let shares: Vec<u32> = shares
        .map(|share| share.parse().expect("a percentage"))
        .collect();
    assert!(
        !shares.is_empty() && shares.iter().all(|&share| share <= 100),
        "{output}"
    );
}

#[test]
fn usdt_count_counts_every_probe() {
    let Some(_alone) = kernel() else { return };
    let (output, truth) = printed_of_demo("usdt-count", &["--requests", "300"], &[]);
    let messages: BTreeMap<String, u64> = output
        .lines()
        .filter_map(|line| line.strip_prefix("@hits[usdt:")?.split_once("]: "))
        .map(|(probe, hits)| (probe.rsplitn(3, ':').collect::<Vec<_>>(), hits))
        .map(|(parts, hits)| {
            (
                format!("{}:{}", parts[1], parts[0]),
                hits.parse().expect("a number"),
            )
        })
        .collect();
    let functions = ["demo_request_start", "demo_request_complete"];
    let hit = truth
        .hits
        .iter()
        .filter(|(name, hits)| **hits > 0 && !functions.contains(&name.as_str()));
    let hit: BTreeMap<String, u64> = hit.map(|(name, hits)| (name.clone(), *hits)).collect();
    assert_eq!(messages, hit);
}

#[test]
fn intr_wakeups_names_functions() {
    let Some(_alone) = kernel() else { return };
    let mut demo = Demo::start(&["--for", "5m", "--life", "10"]);
    let pid = demo.process.pid().to_string();
    let mut tracer = tracer("intr-wakeups", &["all", "-B", "line", "-p", &pid]);
    tracer.wait_for("Attached");
    demo.go();
    let mut lines = BufReader::new(tracer.child.stdout.take().expect("it is piped")).lines();
    let mut wanted = vec!["message: demo_connect_msg(", "reactor_0 sleeps"];
    while !wanted.is_empty() {
        let line = lines.next().expect("the target goes on").expect("UTF-8");
        wanted.retain(|part| !line.contains(part));
    }
}

#[test]
fn kernel_activity_is_reported() {
    let Some(_alone) = kernel() else { return };
    for (script, part) in [
        ("syscalls", "@calls[clock_nanosleep]: "),
        ("syslat-hist", "@us[clock_nanosleep]:"),
        ("runqlat", "@us:"),
    ] {
        let (output, _) = printed_of_demo(script, &["--for", "2500ms"], &[]);
        assert!(
            output.contains(part),
            "{script} does not tell {part:?}:\n{output}"
        );
    }
}

/// A program that calls functions of these names. It is this test program, started again.
#[expect(
    unsafe_code,
    reason = "the scripts know the functions by the names that C programs have them under"
)]
mod functions {
    use std::ffi::c_void;

    type Function = extern "C" fn(*mut c_void);

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn one(_: *mut c_void) {
        std::hint::black_box(1);
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn two(_: *mut c_void) {
        std::hint::black_box(2);
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn spdk_thread_send_msg(_: u64, function: Function, _: u64) -> i32 {
        std::hint::black_box(function);
        0
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn spdk_for_each_channel(_: u64, function: Function, _: u64) {
        std::hint::black_box(function);
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn bridge_run() {
        for n in 0..1000 {
            std::hint::black_box(n);
        }
    }

    pub(super) fn call_them() {
        for n in 0..5 {
            spdk_thread_send_msg(0, if n < 3 { one } else { two }, 0);
        }
        (0..7).for_each(|_| spdk_for_each_channel(0, two, 0));
        (0..11).for_each(|_| bridge_run());
        let zeros = std::fs::File::open("/dev/zero").expect("it is there");
        let mut bytes = [0; 8192];
        let mut read = |from: &std::fs::File| {
            rustix::io::readv(from, &mut [std::io::IoSliceMut::new(&mut bytes)])
        };
        assert!((0..13).all(|_| read(&zeros).is_ok()));
        let only_for_writing = std::fs::File::options()
            .write(true)
            .open("/dev/null")
            .expect("it is there");
        assert!(read(&only_for_writing).is_err());
    }
}

#[test]
#[ignore = "it is the program that another test looks at"]
fn program() {
    functions::call_them();
    eprintln!("done");
    // The functions of an ended process have no names, so the process lives until it is killed.
    std::thread::sleep(std::time::Duration::from_mins(10));
}

#[test]
fn functions_of_other_programs_are_found() {
    let Some(_alone) = kernel() else { return };
    let own = std::env::current_exe().expect("this program");
    let command = format!("{} program --exact --ignored --nocapture", own.display());
    for (script, lines) in [
        (
            "send_msg",
            &[
                "@send_msg[two]: 2",
                "@send_msg[one]: 3",
                "@for_each_channel[two]: 7",
            ][..],
        ),
        (
            "readv",
            &[
                "[8K, 16K)             13 |",
                "@failed[Bad file descriptor]: 1",
            ],
        ),
        ("bridge_loop", &["@us:"]),
    ] {
        let mut tracer = tracer(script, &["-c", &command]);
        tracer.wait_for("done");
        tracer.signal("INT");
        let (status, output, messages) = tracer.end();
        assert!(status.success(), "{script}: {messages:#?}");
        for line in lines {
            assert!(
                output.contains(line),
                "{script}: no {line:?} in:\n{output}\n{messages:#?}"
            );
        }
    }
}
