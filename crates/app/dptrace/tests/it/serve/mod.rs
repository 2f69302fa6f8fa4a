//! `dptrace serve`: its output is valid and true, and no client or target can end it.
#![expect(clippy::float_cmp, reason = "whole numbers are exact")]

mod cpus;
mod prometheus;
mod tables;
mod threads;
mod web;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::kernel::{PROGRAM, Process, kernel};
use serde_json::Value;
use web::{Metrics, Served, TIMEOUT, ask};

/// Name that no process has.
const NOBODY: &str = "nobody-has-this-name";

/// Starts a demo target.
fn target(args: &[&str]) -> Process {
    target_of(Path::new(PROGRAM), args)
}

fn target_of(program: &Path, args: &[&str]) -> Process {
    let mut command = testkit::command(program);
    command
        .args(["demo-target", "--for", "2m"])
        .args(args)
        .stdout(Stdio::null());
    let mut process = Process::start(&mut command);
    process.wait_for("demo-target: pid");
    process
}

fn follows(metrics: &Metrics, part: &str) -> bool {
    metrics.sum("dptrace_target_following", &[("part", part)]) > 0.0
}

fn truth(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a truth")).expect("JSON")
}

/// All requests of the target are counted, once.
#[test]
fn every_request_is_counted() {
    let Some(_guard) = kernel() else { return };
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("truth.json");
    let target = [
        "--app",
        "counted",
        "--wait",
        "--requests",
        "400",
        "--rate",
        "2000",
        "--slots",
        "65536",
        "--truth",
    ];
    let mut target = self::target(&[&target[..], &[path.to_str().unwrap()]].concat());
    let served = Served::start(&["-p", &target.pid().to_string(), "--no-kernel"]);
    served.wait_until("it is followed", |metrics| follows(metrics, "trace"));
    target.say("\n");
    let (status, ..) = target.end();
    assert!(status.success());
    let truth = truth(&path);
    let completed = truth["requests_completed"].as_f64().expect("a number");
    let counted = |metrics: &Metrics| {
        metrics.sum("dptrace_requests_total", &[])
            + metrics.sum("dptrace_requests_excluded_total", &[])
    };
    let metrics = served.wait_until("all are counted", |metrics| counted(metrics) >= completed);
    assert_eq!(metrics.sum("dptrace_lost_total", &[]), 0.0, "{metrics:#?}");
    assert_eq!(counted(&metrics), completed, "{metrics:#?}");
    let whole = metrics.sum("dptrace_stage_seconds_count", &[("stage", "whole")]);
    assert_eq!(whole, metrics.sum("dptrace_requests_total", &[]));
    assert!(
        metrics.exemplars > 0 && metrics.samples.len() < 5_000,
        "{}",
        metrics.samples.len()
    );
    // All names of known queue pairs are true.
    let known: Vec<&str> = truth["qpairs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["subnqn"].as_str())
        .collect();
    for name in metrics.values("subnqn") {
        // The space of owner descriptions is limited.
        let is_known = known.iter().any(|known| known.starts_with(name));
        assert!(name == "other" || is_known, "{name} is none of {known:?}");
    }
    let json = crate::common::schema::validated(&served.page("/connections", "*/*")).remove(0);
    let requests = json["connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["requests"].as_f64().unwrap());
    assert_eq!(
        requests.sum::<f64>(),
        metrics.sum("dptrace_requests_total", &[])
    );
    served.process.signal("TERM");
    assert!(served.process.end().0.success());
}

/// Without probes, names come from connections found in memory. They hold after the last reading,
/// and no request comes before the first.
#[test]
fn requests_of_connections_that_are_alive_have_names() {
    let target = target(&[
        "--app",
        "alive",
        "--no-probes",
        "--trace-era",
        "C",
        "--rate",
        "800",
        "--life",
        "1000000",
    ]);
    let served = Served::start(&[
        "-p",
        &target.pid().to_string(),
        "--no-kernel",
        "--no-probes",
    ]);
    let of_rdma = |metrics: &Metrics, labels: &[(&str, &str)]| {
        metrics.sum(
            "dptrace_requests_total",
            &[labels, &[("transport", "RDMA")]].concat(),
        )
    };
    let metrics = served.wait_until("some are counted", |metrics| {
        of_rdma(metrics, &[]) > 1_000.0
    });
    let named = metrics
        .values("hostnqn")
        .into_iter()
        .map(|host| of_rdma(&metrics, &[("hostnqn", host)]))
        .sum::<f64>();
    assert_eq!(named, of_rdma(&metrics, &[]), "{metrics:#?}");
}

/// Ten clients at once, one that sends nothing, one that reads nothing, and nonsense.
#[test]
fn the_server_survives_any_client() {
    let served = Served::start(&["--name", NOBODY, "--no-kernel"]);
    let address = served.address;
    let connect = || TcpStream::connect(address).expect("somebody listens");
    let silent = connect();
    let mut slow = connect();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost")
        .expect("sent");
    let clients: Vec<_> = (0..10)
        .map(|_| std::thread::spawn(move || ask(address, b"GET / HTTP/1.0\r\n\r\n")))
        .collect();
    for client in clients {
        assert!(
            client
                .join()
                .expect("no panic")
                .starts_with("HTTP/1.1 200 OK\r\n")
        );
    }
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(20_000));
    for (request, status) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], "400"),
        (b"\r\n\r\n\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", "400"),
        (b"GET /none HTTP/1.1\r\n\r\n", "404"),
        (
            b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            "405",
        ),
        (long.as_bytes(), "431"),
        (b"GET /healthz?x HTTP/1.1\r\n\r\n", "200"),
    ] {
        let answer = ask(address, request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer:?}"
        );
    }
    assert!(ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    // Slow clients eventually get an answer, and are disconnected.
    for mut stream in [silent, slow] {
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer:?}");
    }
    // More clients than the limit: some are turned away, and the others are answered.
    let waiting: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
    std::thread::sleep(Duration::from_millis(200));
    drop(waiting);
    assert!(ask(address, b"GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert!(
        served
            .page("/metrics", "text/plain")
            .contains("# TYPE dptrace_build_info gauge\n")
    );
    served.metrics();
    served.process.signal("TERM");
    assert!(served.process.end().0.success());
}

#[test]
fn a_token_is_asked_for() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("token");
    fs::write(&path, "s3cret\n").expect("written");
    let served = Served::start(&[
        "--name",
        NOBODY,
        "--no-kernel",
        "--token-file",
        path.to_str().unwrap(),
    ]);
    for (header, status) in [
        ("", "401"),
        ("Authorization: Bearer wrong\r\n", "401"),
        ("authorization: bearer s3cret\r\n", "200"),
    ] {
        let answer = ask(
            served.address,
            format!("GET /metrics HTTP/1.1\r\n{header}\r\n").as_bytes(),
        );
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{header}: {answer}"
        );
    }
    assert!(ask(served.address, b"GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn impossible_options_are_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    for (args, status, part) in [
        (&["--listen", "nowhere"][..], 2, "ADDRESS:PORT"),
        (&["--listen", &taken], 1, "--listen names another address"),
        (&["--connections", "0"], 2, "--connections"),
        (
            &["--connections", "5", "--with-stages", "6"],
            2,
            "must not exceed --connections 5",
        ),
        (
            &["--token-file", "/nonexistent/token"],
            1,
            "/nonexistent/token",
        ),
        (&["--token-file", "/dev/null"], 2, "visible ASCII"),
        (&["--forget", "1s"], 2, "--forget"),
    ] {
        let output = testkit::command(PROGRAM)
            .arg("serve")
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
    }
}
