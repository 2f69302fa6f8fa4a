//! `--requests sockets` of the commands that show requests as they come: `latency`, `trace` and
//! `top` of a server that knows no tracing.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use testkit::requests::{Model, Request, Server, ServerOptions};

use crate::common::dptrace;
use crate::common::kernel::{PROGRAM, Process, kernel, needs, without_bpf};
use crate::common::schema::validated;

#[test]
#[ignore = "it is the server that the other tests start"]
fn server() {
    testkit::requests::serve_if_started();
}

const MODELS: [Model; 4] = [Model::Thread, Model::Epoll, Model::Pool, Model::Fork];
/// Time of the slow request.
const SLOW: Duration = Duration::from_millis(30);

fn start(model: Model) -> Server {
    Server::start("live_sockets::server", &ServerOptions::new(model))
}

fn run(command: &str, server: &Server, more: &[&str]) -> Process {
    let mut started = testkit::command(PROGRAM);
    started
        .args([command, "--requests", "sockets", "-p"])
        .arg(server.pid().to_string())
        .args(more)
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped());
    Process::start(&mut started)
}

/// Sends ten requests on each of two connections, the last one slow.
fn talk(server: &mut Server) {
    let mut requests = vec![Request::Echo(100); 9];
    requests.push(Request::Sleep(SLOW));
    let answers = server.connect(2).send(&requests).expect("it replies");
    assert_eq!(answers.len(), 20);
}

/// Every request counts, with the time of the slow one, however the server divides its work.
#[test]
fn latency_measures_the_requests_of_any_server() {
    let Some(_guard) = kernel() else { return };
    for model in MODELS {
        let mut server = start(model);
        let mut latency = run("latency", &server, &["--json", "--by", "arg.op"]);
        latency.wait_for("recording requests until Ctrl-C");
        talk(&mut server);
        latency.signal("INT");
        let (status, printed, messages) = latency.end();
        assert!(status.success(), "{messages:#?}");
        assert!(
            messages
                .iter()
                .any(|it| it.contains("stopped: 20 requests on 2 connections")),
            "{model:?}: {messages:#?}"
        );
        let lines = validated(&printed);
        let whole: Vec<&Value> = lines
            .iter()
            .filter(|line| line["stage"] == "whole" || line["stage"].is_null())
            .collect();
        let count: u64 = whole.iter().filter_map(|it| it["count"].as_u64()).sum();
        assert_eq!(count, 20, "{model:?}: {printed}");
        let longest = whole.iter().filter_map(|it| it["max_ns"].as_u64()).max();
        assert!(
            longest >= Some(SLOW.as_nanos() as u64),
            "{model:?}: {printed}"
        );
    }
}

/// The records of the last moment come, too, though the recording writes them later.
#[test]
fn trace_lists_every_record_until_it_is_stopped() {
    let Some(_guard) = kernel() else { return };
    let mut server = start(Model::Thread);
    let mut trace = run("trace", &server, &["--json"]);
    trace.wait_for("following the requests of process");
    talk(&mut server);
    trace.signal("INT");
    let (status, printed, messages) = trace.end();
    assert!(status.success(), "{messages:#?}");
    let records = validated(&printed);
    let of = |name: &str| records.iter().filter(|it| it["tpoint"] == name).count();
    let begun = of("SOCK_REQ_QUEUED") + of("SOCK_REQ_NEW");
    assert_eq!(
        (begun, of("SOCK_REQ_REPLIED")),
        (20, 20),
        "{printed}{messages:#?}"
    );
    let port = server.address().rsplit_once(':').map(|it| it.1.to_owned());
    let own = format!(" -> :{}", port.expect("a port"));
    let is_named = |record: &Value| {
        let owner = record["owner"]["description"].as_str();
        owner.is_some_and(|owner| owner.starts_with("127.0.0.1:") && owner.ends_with(&own))
    };
    assert!(records.iter().all(is_named), "{printed}");
}

/// A connection's last request counts though no further one shows its end, and its thread is told
/// from others of the same name.
#[test]
fn top_shows_clients_and_their_threads() {
    let Some(_guard) = kernel() else { return };
    let mut server = start(Model::Fork);
    let mut client = server.connect(2);
    let top = run("top", &server, &["--json", "--batch", "3"]);
    // However late it begins, there are requests in its seconds.
    let (is_over, talks) = (AtomicBool::new(false), Duration::from_millis(100));
    let (status, printed, messages) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                client.send(&[Request::Sleep(SLOW)]).expect("it replies");
                std::thread::sleep(talks);
            }
        });
        let ended = top.end();
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    assert!(status.success(), "{messages:#?}");
    let seconds = validated(&printed);
    let connections: Vec<&Value> = seconds
        .iter()
        .filter_map(|second| second["connections"].as_array())
        .flatten()
        .collect();
    let with_requests = connections
        .iter()
        .filter(|it| it["requests"]["count"].as_u64() > Some(0));
    let number = |thread| str::rsplit_once(thread, ' ').map(|(_, number)| number);
    let clients: BTreeSet<(&str, &str)> = with_requests
        // A busy machine's first second may lack the threads, and with them their names.
        .filter_map(|it| Some((it["host"].as_str()?, number(it["thread"].as_str()?)?)))
        .collect();
    let hosts: BTreeSet<&str> = clients.iter().map(|(host, _)| *host).collect();
    let threads: BTreeSet<&str> = clients.iter().map(|(_, thread)| *thread).collect();
    assert_eq!(
        (clients.len(), hosts.len(), threads.len()),
        (2, 2, 2),
        "{clients:?}: {printed}"
    );
}

#[test]
fn a_process_without_requests_is_reported() {
    let Some(_guard) = kernel() else { return };
    let server = start(Model::Thread);
    let latency = run("latency", &server, &["--for", "300ms"]);
    let (status, printed, messages) = latency.end();
    let all = messages.join("\n");
    assert!(printed.is_empty(), "{printed}");
    assert!(
        all.contains("the process received no request at TCP or Unix sockets"),
        "{all}"
    );
    assert!(
        status.success() && !all.contains("no tracepoint was enabled"),
        "{all}"
    );
}

#[test]
fn without_the_right_to_bpf_the_reason_is_given() {
    let Some(_guard) = kernel() else { return };
    if !needs("setpriv") {
        return;
    }
    let server = start(Model::Thread);
    for command in ["latency", "trace"] {
        let done = without_bpf()
            .args([command, "--requests", "sockets", "--for", "1s", "-p"])
            .arg(server.pid().to_string())
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success(), "{said}");
        assert!(said.contains("not permitted to use BPF"), "{said}");
    }
}

#[test]
fn options_that_contradict_sockets_are_refused() {
    for (args, why) in [
        (
            &["latency", "--requests", "sockets"][..],
            "needs a running server: give -p PID or -p NAME",
        ),
        (
            &["trace", "--requests", "sockets", "no-such-server"],
            "no process is called no-such-server",
        ),
        (
            &["latency", "--requests", "sockets", "-i", "x.trace"],
            "cannot be used with",
        ),
        (
            &["trace", "--requests", "sockets", "-p", "1", "--info"],
            "cannot be used with",
        ),
        (&["latency", "--for", "1s"], "--requests"),
    ] {
        let done = dptrace().args(args).assert().code(2);
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(said.contains(why), "{args:?}: {said}");
    }
}
