//! The server and its client in each model, with each system call.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use testkit::requests::{
    Answer, Cause, Model, ReceiveCall, Request, SendCall, Server, ServerOptions, Wait,
};

const MODELS: [Model; 4] = [Model::Thread, Model::Epoll, Model::Pool, Model::Fork];

#[test]
#[ignore = "it is the server that the other tests start"]
fn server() {
    testkit::requests::serve_if_started();
}

fn start(options: &ServerOptions) -> Server {
    Server::start("server", options)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns one request of each kind.
fn all_kinds(file: &Path) -> Vec<Request> {
    vec![
        Request::Echo(100),
        Request::Sleep(millis(5)),
        Request::Spin(millis(3)),
        Request::Lock(millis(4)),
        Request::Read(file.to_owned()),
        Request::Parts(3, millis(2)),
        Request::Echo(1),
    ]
}

/// Returns the causes of the waits for a request, and the least duration of each.
fn expected_waits(request: &Request) -> Vec<(Cause, Duration)> {
    match request {
        Request::Echo(_) => vec![],
        Request::Sleep(time) => vec![(Cause::Sleep, *time)],
        Request::Spin(time) => vec![(Cause::Spin, *time)],
        Request::Lock(time) => vec![(Cause::Lock, *time)],
        Request::Read(_) => vec![(Cause::Read, Duration::ZERO)],
        Request::Parts(parts, gap) => vec![(Cause::Gap, *gap); *parts as usize - 1],
    }
}

/// Checks that the answers are whole and in order, and that the waits are those of the requests,
/// within the client's times.
fn check(connections: u32, requests: &[Request], answers: &[Answer], waits: &[Wait]) {
    let mut by_request: BTreeMap<(u32, u32), Vec<&Wait>> = BTreeMap::new();
    for wait in waits {
        let of_request = by_request.entry((wait.connection, wait.request));
        of_request.or_default().push(wait);
    }
    assert_eq!(answers.len(), connections as usize * requests.len());
    for (number, answer) in answers.iter().enumerate() {
        let number = number % requests.len();
        let request = &requests[number];
        assert_eq!(answer.request as usize, number + 1);
        if let Some(length) = request.reply_length() {
            assert_eq!(answer.reply.len(), length, "{request}");
        }
        assert!(answer.reply.ends_with(b"\n"), "{request}");
        assert!(!answer.reply.starts_with(b"refused"), "{request}");
        let found = by_request
            .remove(&(answer.connection, answer.request))
            .unwrap_or_default();
        let expected = expected_waits(request);
        let causes: Vec<_> = found.iter().map(|wait| wait.cause).collect();
        let expected_causes: Vec<_> = expected.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(causes, expected_causes, "{request}");
        for (wait, (_, least)) in found.iter().zip(expected) {
            assert!(
                answer.begin <= wait.begin && wait.end <= answer.end,
                "{request}: {wait:?} in {answer:?}"
            );
            let lasted = Duration::from_nanos(wait.end - wait.begin);
            assert!(lasted >= least, "{request}: {lasted:?}");
        }
    }
    assert!(by_request.is_empty(), "waits without a request");
    let numbers: BTreeSet<_> = answers.iter().map(|answer| answer.connection).collect();
    assert_eq!(numbers.len(), connections as usize);
}

/// Returns a folder with a file of 10,000 bytes.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, [7; 10_000]).unwrap();
    (folder, file)
}

#[test]
fn each_model_knows_its_waits_on_both_kinds_open_sockets() {
    let (folder, file) = folder();
    let requests = all_kinds(&file);
    for model in MODELS {
        let unix = folder.path().join(format!("{model:?}"));
        for unix in [None, Some(unix)] {
            let mut server = start(&ServerOptions {
                unix,
                ..ServerOptions::new(model)
            });
            let mut client = server.connect(3);
            let answers = client.send(&requests).unwrap();
            assert_eq!(
                answers[4].reply, b"10000\n",
                "the size of the file, {model:?}"
            );
            drop(client);
            let pid = server.pid();
            let waits = server.end();
            check(3, &requests, &answers, &waits);
            check_threads(model, pid, &waits);
        }
    }
}

/// Checks that the waits are on the threads and in the processes of the model.
fn check_threads(model: Model, server: u32, waits: &[Wait]) {
    let pids: BTreeSet<_> = waits.iter().map(|wait| wait.pid).collect();
    let tids: BTreeSet<_> = waits.iter().map(|wait| wait.tid).collect();
    let pairs: BTreeSet<_> = waits
        .iter()
        .map(|wait| (wait.connection, wait.tid))
        .collect();
    match model {
        Model::Thread => assert_eq!((pids.len(), tids.len(), pairs.len()), (1, 3, 3)),
        Model::Epoll => assert_eq!((pids.len(), tids.len()), (1, 1)),
        Model::Pool => assert_eq!((pids.len(), tids.len()), (1, 2)),
        Model::Fork => assert_eq!((pids.len(), tids.len(), pairs.len()), (3, 3, 3)),
    }
    assert_eq!(pids.contains(&server), model != Model::Fork, "{model:?}");
}

#[test]
fn requests_in_one_write_are_answered_in_order() {
    let (_folder, file) = folder();
    // More than is received at once, and the second worker has the rest while the first one sleeps.
    let echoes = (0..400).flat_map(|_| [Request::Echo(30), Request::Echo(70)]);
    let requests: Vec<_> = std::iter::once(Request::Sleep(millis(10)))
        .chain(echoes)
        .chain(all_kinds(&file))
        .collect();
    for model in MODELS {
        // With one connection both workers are free.
        for connections in [1, 2] {
            let mut server = start(&ServerOptions::new(model));
            let mut client = server.connect(connections);
            let answers = client.send_pipelined(&requests, requests.len()).unwrap();
            drop(client);
            check(connections, &requests, &answers, &server.end());
        }
    }
}

#[test]
fn every_system_call_receives_and_sends() {
    let (folder, file) = folder();
    let path = folder.path().join("socket");
    let requests = [all_kinds(&file), vec![Request::Echo(3_000_000)]].concat();
    let calls = ReceiveCall::value_variants()
        .iter()
        .zip(SendCall::value_variants());
    for (receive, send) in calls {
        // A Unix socket has less room than the long reply needs, so that it is sent in parts.
        for (model, unix) in [(Model::Thread, None), (Model::Epoll, Some(&path))] {
            let mut server = start(&ServerOptions {
                unix: unix.cloned(),
                receive: *receive,
                send: *send,
                ..ServerOptions::new(model)
            });
            let mut client = server.connect(2);
            let answers = client.send(&requests).unwrap();
            drop(client);
            check(2, &requests, &answers, &server.end());
            // It may not have been used.
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[test]
fn a_client_goes_on_and_others_come() {
    for model in MODELS {
        let mut server = start(&ServerOptions::new(model));
        let requests = [Request::Echo(5), Request::Sleep(millis(1))];
        let mut first = server.connect(1);
        let one = first.send(&requests).unwrap();
        let mut second = server.connect(2);
        let two = second.send(&requests).unwrap();
        let three = first.send(&requests).unwrap();
        let numbers: Vec<_> = [&one, &three].map(|it| it[0].request).into();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(first.connections().next(), Some(three[0].connection));
        drop((first, second));
        let end = Instant::now();
        let waits = server.end();
        assert!(end.elapsed() < Duration::from_secs(30), "not by its limit");
        check(2, &requests, &two, &without(&waits, one[0].connection));
        let sleeps = waits.iter().filter(|it| it.connection == one[0].connection);
        let sleeps: Vec<_> = sleeps.map(|wait| wait.request).collect();
        assert_eq!(sleeps, [2, 4], "{model:?}");
    }
}

fn without(waits: &[Wait], connection: u32) -> Vec<Wait> {
    let others = waits.iter().filter(|wait| wait.connection != connection);
    others.cloned().collect()
}

#[test]
fn what_is_beyond_the_limits_is_refused() {
    let mut server = start(&ServerOptions::new(Model::Thread));
    let mut client = server.connect(1);
    let refused = [
        Request::Echo(0),
        Request::Echo(usize::MAX),
        Request::Spin(millis(51)),
        Request::Sleep(Duration::MAX),
        Request::Lock(millis(10_001)),
        Request::Parts(0, millis(1)),
        Request::Parts(1_001, millis(1)),
        Request::Read("/no/such/file".into()),
    ];
    for answer in client.send(&refused).unwrap() {
        assert!(answer.reply.starts_with(b"refused: "), "{answer:?}");
    }
    assert_eq!(client.send(&[Request::Echo(3)]).unwrap()[0].reply, b"xx\n");
}

#[test]
fn a_server_ends_by_its_time_limit_and_its_connections_with_it() {
    let ends = |model| {
        let begin = Instant::now();
        let mut server = start(&ServerOptions {
            seconds: 2,
            ..ServerOptions::new(model)
        });
        let mut client = server.connect(1);
        let goes_on = |_: &u32| client.send(&[Request::Sleep(millis(20))]).is_ok();
        let answered = (0..1_000).take_while(goes_on).count();
        assert!((1..1_000).contains(&answered), "{model:?}: {answered}");
        assert!(begin.elapsed() >= Duration::from_secs(2), "{model:?}");
    };
    std::thread::scope(|scope| {
        for model in MODELS {
            scope.spawn(move || ends(model));
        }
    });
}

#[test]
fn texts_are_parsed_back() {
    for request in all_kinds(Path::new("/a b")) {
        assert_eq!(request.to_string().parse(), Ok(request));
    }
    for cause in Cause::value_variants() {
        let wait = Wait {
            connection: 1,
            request: 2,
            pid: 3,
            tid: 4,
            cause: *cause,
            begin: 5,
            end: u64::MAX,
        };
        assert_eq!(wait.to_string().parse(), Ok(wait));
    }
}
