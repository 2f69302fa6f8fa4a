//! Requests at sockets, against a server and a client that know when each was sent, answered and
//! kept waiting.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::requests::{
    Answer, Cause, Client, Model, ReceiveCall, Request, SendCall, Server, ServerOptions, Wait,
};

use crate::common::kernel::{PROGRAM, Process, kernel};
use crate::common::program::printed;
use crate::common::schema;

#[test]
#[ignore = "it is the server that the other tests start"]
fn server() {
    testkit::requests::serve_if_started();
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A request as `dptrace report --json` has it.
struct Seen {
    begin: u64,
    end: u64,
    stages: Vec<Value>,
}

impl Seen {
    /// Returns the time at which the server received it.
    fn received(&self) -> u64 {
        let first = &self.stages[0];
        let queued = if first["from"] == "SOCK_REQ_QUEUED" {
            first["length_ns"].as_u64().expect("a length")
        } else {
            0
        };
        self.begin + queued
    }
}

/// What a capture and the server know of the same requests.
struct Both {
    answers: Vec<Answer>,
    waits: Vec<Wait>,
    /// Requests seen, by connection in the order of time.
    seen: BTreeMap<u32, Vec<Seen>>,
    messages: Vec<String>,
}

/// Captures a server while its clients send requests by `send`.
#[track_caller]
fn captured(options: &ServerOptions, send: impl FnOnce(&mut Client) -> Vec<Answer>) -> Both {
    let mut server = Server::start("sockets::server", options);
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("x.capture");
    let mut tracer = Process::start(&mut capture(server.pid(), &folder));
    tracer.wait_for("capturing process");
    let mut client = server.connect(3);
    let answers = send(&mut client);
    // The thread of a connection lives a moment longer than its last request.
    std::thread::sleep(millis(50));
    drop(client);
    tracer.signal("INT");
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let seen = requests(&folder);
    let waits = server.end();
    Both {
        answers,
        waits,
        seen,
        messages,
    }
}

fn capture(pid: u32, folder: &Path) -> Command {
    let mut command = testkit::command(PROGRAM);
    command
        .args([
            "capture",
            "--requests",
            "sockets",
            "--no-verdict",
            "--for",
            "60s",
        ])
        .args(["-p", &pid.to_string(), "-o"])
        .arg(folder)
        .env("NO_COLOR", "1");
    command.stdout(Stdio::null()).stdin(Stdio::null());
    command
}

/// Returns the requests of a capture, by connection in the order of time.
fn requests(folder: &Path) -> BTreeMap<u32, Vec<Seen>> {
    let folder = folder.to_str().expect("a path");
    let text = printed(["report", "--json", "--slowest", "100000", folder]);
    let mut seen: BTreeMap<u32, Vec<Seen>> = BTreeMap::new();
    for line in schema::validated(&text) {
        if line["type"] != "timeline.request" {
            continue;
        }
        let whose = line["whose"].as_str().expect("a connection");
        let (peer, _) = whose.split_once(" ->").unwrap_or_else(|| panic!("{line}"));
        let (_, port) = peer.rsplit_once(':').expect("a port");
        let begin = line["boot_ns"].as_u64().expect("a time");
        seen.entry(port.parse().expect("a number"))
            .or_default()
            .push(Seen {
                begin,
                end: begin + line["length_ns"].as_u64().expect("a length"),
                stages: line["stages"].as_array().expect("stages").clone(),
            });
    }
    for requests in seen.values_mut() {
        requests.sort_by_key(|request| request.begin);
    }
    seen
}

impl Both {
    /// Checks that each request of a client was seen once, at its time: it began after the client sent
    /// it, and ended before the server received the next one. The client may have a reply before the
    /// server's send has returned, so its own end is a bound for most requests only.
    #[track_caller]
    fn check_times(&self) {
        let mut lengths = Vec::new();
        let mut sent: BTreeMap<u32, Vec<&Answer>> = BTreeMap::new();
        for answer in &self.answers {
            sent.entry(answer.connection).or_default().push(answer);
        }
        for (connection, answers) in &mut sent {
            answers.sort_by_key(|answer| answer.request);
            let seen = self.seen.get(connection).map_or(&[][..], Vec::as_slice);
            assert_eq!(seen.len(), answers.len(), "{:#?}", self.messages);
            let next = seen.iter().skip(1).map(Seen::received).chain([u64::MAX]);
            for ((answer, seen), next) in answers.iter().zip(seen).zip(next) {
                assert!(
                    (answer.begin..answer.end).contains(&seen.begin) && seen.end <= next,
                    "{answer:?}: {} to {}, the next one at {next}",
                    seen.begin,
                    seen.end
                );
                lengths.push((seen.end - seen.begin, answer.end - answer.begin));
            }
        }
        let is_within = |(seen, by_client): &(u64, u64)| seen <= by_client;
        let within = lengths.iter().filter(|it| is_within(it)).count();
        assert!(within * 2 > lengths.len(), "{lengths:?}");
    }

    /// Checks that at least 95 % of each wait is given to the cause that `of` reads from a stage, in
    /// the right request.
    #[track_caller]
    fn check_waits(&self, cause: Cause, of: impl Fn(&Value) -> u64) {
        let mut waits = self.waits.iter().filter(|wait| wait.cause == cause);
        let first = waits.next().expect("a wait");
        for wait in waits.chain([first]) {
            let request = &self.seen[&wait.connection][wait.request as usize - 1];
            let given: u64 = request.stages.iter().map(&of).sum();
            let least = (wait.end - wait.begin) * 95 / 100;
            assert!(
                given >= least,
                "{wait:?}: {given} of {least} ns: {:#?}",
                request.stages
            );
        }
    }
}

/// Returns a function that sums up the time blocked in one of these calls, with that from the end of
/// the wait until the thread had a CPU; 0 if it was not blocked there.
fn blocked_in(calls: &'static [&'static str]) -> impl Fn(&Value) -> u64 {
    move |stage| {
        let shares = stage["shares"].as_array().expect("shares");
        let is_of_call = |share: &&Value| {
            share["activity"] == "blocked" && calls.iter().any(|call| share["call"] == *call)
        };
        if !shares.iter().any(|share| is_of_call(&share)) {
            return 0;
        }
        let kept = ["woken", "preempted", "interrupted"];
        let of_call = shares.iter().filter(|share| {
            is_of_call(share) || kept.iter().any(|activity| share["activity"] == *activity)
        });
        of_call
            .map(|share| share["at_least_ns"].as_u64().expect("a time"))
            .sum()
    }
}

/// Returns the time of a stage that the thread had its CPU, or was kept from it.
fn had_or_lost_cpu(stage: &Value) -> u64 {
    let did = stage["did"].as_array().expect("activities");
    let of_cpu = ["runs", "calls", "preempted", "interrupted", "woken"];
    let busy = did
        .iter()
        .filter(|did| of_cpu.iter().any(|activity| did["activity"] == *activity));
    busy.map(|did| did["ns"].as_u64().expect("a time")).sum()
}

fn all_kinds() -> Vec<Request> {
    let mut requests = vec![
        Request::Echo(100),
        Request::Sleep(millis(20)),
        Request::Spin(millis(10)),
        Request::Lock(millis(15)),
        Request::Parts(3, millis(15)),
        // 1 MiB does not fit into a socket at once.
        Request::Echo(1 << 20),
    ];
    requests.extend((0..50).map(Request::Echo).skip(1));
    requests
}

/// Calls in which a C library sleeps, and waits for a lock.
const SLEEPS: &[&str] = &["nanosleep", "clock_nanosleep"];
const LOCKS: &[&str] = &["futex"];

#[test]
fn requests_of_each_thread_are_counted_and_explained() {
    let Some(_guard) = kernel() else { return };
    for (model, receive, send) in [
        (Model::Thread, ReceiveCall::Read, SendCall::Write),
        (Model::Epoll, ReceiveCall::Recvfrom, SendCall::Sendto),
    ] {
        let options = ServerOptions {
            receive,
            send,
            ..ServerOptions::new(model)
        };
        let both = captured(&options, |client| {
            client.send(&all_kinds()).expect("answers")
        });
        both.check_times();
        both.check_waits(Cause::Sleep, blocked_in(SLEEPS));
        both.check_waits(Cause::Lock, blocked_in(LOCKS));
        both.check_waits(Cause::Gap, blocked_in(SLEEPS));
        both.check_waits(Cause::Spin, had_or_lost_cpu);
    }
}

#[test]
fn requests_of_processes_that_a_server_starts_are_its_own() {
    let Some(_guard) = kernel() else { return };
    let options = ServerOptions {
        receive: ReceiveCall::Recvmsg,
        send: SendCall::Sendmsg,
        ..ServerOptions::new(Model::Fork)
    };
    let both = captured(&options, |client| {
        client.send(&all_kinds()).expect("answers")
    });
    both.check_times();
    both.check_waits(Cause::Sleep, blocked_in(SLEEPS));
    both.check_waits(Cause::Lock, blocked_in(LOCKS));
}

#[test]
fn what_another_thread_replies_is_not_given_to_a_cause() {
    let Some(_guard) = kernel() else { return };
    let options = ServerOptions {
        receive: ReceiveCall::Readv,
        send: SendCall::Writev,
        ..ServerOptions::new(Model::Pool)
    };
    let both = captured(&options, |client| {
        client.send(&all_kinds()).expect("answers")
    });
    both.check_times();
    for request in both.seen.values().flatten() {
        // The stage before the first reply.
        let handed = request.stages.iter().rfind(|stage| {
            stage["from"] != "SOCK_REQ_REPLIED" && stage["to"] == "SOCK_REQ_REPLIED"
        });
        let handed = handed.expect("a reply");
        assert_eq!(handed["unknown_ns"], handed["length_ns"], "{handed:#}");
    }
}

#[test]
fn pipelined_requests_that_come_together_are_one() {
    let Some(_guard) = kernel() else { return };
    let requests = vec![Request::Echo(10); 40];
    let both = captured(&ServerOptions::new(Model::Thread), |client| {
        client.send_pipelined(&requests, 8).expect("answers")
    });
    for connection in both.answers.iter().map(|answer| answer.connection) {
        let seen = both.seen[&connection].len();
        assert!((5..=40).contains(&seen), "{seen}");
    }
}

#[test]
fn unix_sockets_have_requests() {
    let Some(_guard) = kernel() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path: PathBuf = dir.path().join("socket");
    let options = ServerOptions {
        unix: Some(path),
        ..ServerOptions::new(Model::Thread)
    };
    let mut server = Server::start("sockets::server", &options);
    let folder = dir.path().join("x.capture");
    let mut tracer = Process::start(&mut capture(server.pid(), &folder));
    tracer.wait_for("capturing process");
    let mut client = server.connect(2);
    let answers = client.send(&vec![Request::Echo(5); 20]).expect("answers");
    drop(client);
    tracer.signal("INT");
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let counted = format!("{} requests on 2 connections", answers.len());
    assert!(
        messages.iter().any(|message| message.contains(&counted)),
        "{messages:#?}"
    );
}
