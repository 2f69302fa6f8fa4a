//! Answers of the target's RPC server, beside what its memory shows.

use super::{PROGRAM, Target, printed};
use crate::common::rpc::Server;
use serde_json::{Value, json};

/// The RPC's answers complement the memory, and only the missing facts are requested.
#[test]
fn the_rpc_adds_what_memory_does_not_show() {
    let target = Target::start(&["--connections", "8"]);
    let server = rpc_server(&target);
    let socket = server.path().display().to_string();
    let rows = |kinds: &str| {
        let (rows, messages) = printed(&[
            "objects",
            kinds,
            "--json",
            "-p",
            &target.pid(),
            "--rpc",
            &socket,
        ]);
        (
            rows.lines()
                .map(|row| serde_json::from_str(row).unwrap())
                .collect::<Vec<Value>>(),
            messages,
        )
    };
    let (found, _) = rows("qpair");
    check_qpairs(&found);
    let (threads, _) = rows("thread");
    let busy: Vec<_> = threads
        .iter()
        .filter_map(|row| row["rpc"]["busy"].as_u64())
        .collect();
    assert_eq!((threads.len(), busy), (3, vec![70]));
    let (bdevs, messages) = rows("bdev");
    assert!(
        messages.contains("--rpc: bdev_get_bdevs: Method not found (code -32601)"),
        "{messages}"
    );
    assert!(!bdevs.is_empty() && bdevs.iter().all(|row| row.get("rpc").is_none()));
    let (table, _) = printed(&["objects", "qpair", "-p", &target.pid(), "--rpc", &socket]);
    assert!(
        table.contains("rpc.peer") && table.contains("enabled") && table.contains("\\x1b"),
        "{table}"
    );
    assert!(!table.contains('\x1b'));
    let asked = server.asked();
    assert_eq!(
        asked
            .iter()
            .filter(|method| *method == "thread_get_stats")
            .count(),
        1,
        "{asked:?}"
    );
}

/// Starts an RPC server with the connections of a target.
fn rpc_server(target: &Target) -> Server {
    let truth = target.truth();
    let connections = truth["qpairs"].clone();
    Server::start(
        target.file("spdk.sock"),
        move |method, params| match method {
            "thread_get_stats" => Ok(
                json!({ "tick_rate": 1, "threads": [{ "name": "x", "id": 2, "busy": 70, "idle": 30 }] }),
            ),
            "nvmf_get_subsystems" => Ok(subsystems(&connections)),
            "nvmf_subsystem_get_qpairs" => {
                Ok(qpairs(&connections, params["nqn"].as_str().unwrap()))
            }
            _ => Err("Method not found"),
        },
    )
}

/// Checks that all connections have the facts of the RPC, which has some that memory lacks.
#[track_caller]
fn check_qpairs(found: &[Value]) {
    let (both, rpc_only): (Vec<_>, Vec<_>) = found.iter().partition(|row| row["qpair"].is_string());
    assert_eq!(both.len(), 8);
    for row in both {
        assert_eq!(
            row["rpc"]["peer"],
            format!(
                "TCP 10.0.0.{}:{}",
                row["cntlid"],
                4000 + row["qid"].as_u64().unwrap()
            )
        );
        assert_eq!(
            (&row["rpc"]["state"], &row["rpc"]["listener"]),
            (&json!("enabled"), &Value::Null)
        );
    }
    assert!(
        !rpc_only.is_empty() && rpc_only.iter().all(|row| row["cntlid"] == "999"),
        "{rpc_only:#?}"
    );
}

fn subsystems(connections: &Value) -> Value {
    let mut nqns: Vec<_> = connections
        .as_array()
        .unwrap()
        .iter()
        .map(|q| q["subnqn"].as_str().unwrap())
        .collect();
    nqns.sort_unstable();
    nqns.dedup();
    let nvme = nqns
        .into_iter()
        .map(|nqn| json!({ "nqn": nqn, "subtype": "NVMe", "allow_any_host": true }));
    let discovery =
        json!({ "nqn": "nqn.2014-08.org.nvmexpress.discovery", "subtype": "Discovery" });
    nvme.chain([discovery]).collect()
}

/// Returns connections as `dump_nvmf_qpair` writes them, and one with a hostile name that is no
/// longer in memory.
fn qpairs(connections: &Value, nqn: &str) -> Value {
    let all = connections
        .as_array()
        .unwrap()
        .iter()
        .filter(|q| q["subnqn"] == nqn);
    let address = |q: &Value| {
        let port = 4000 + q["qid"].as_u64().unwrap();
        json!({ "trtype": "TCP", "adrfam": "IPv4", "traddr": format!("10.0.0.{}", q["cntlid"]), "trsvcid": port.to_string() })
    };
    let known = all.map(|q| {
        let (cntlid, qid) = (&q["cntlid"], &q["qid"]);
        json!({ "cntlid": cntlid, "qid": qid, "state": "enabled", "thread": "t", "hostnqn": "h", "peer_address": address(q) })
    });
    known
        .chain([json!({ "cntlid": 999, "qid": 0, "state": "\u{1b}[31mgone" })])
        .collect()
}

/// Any process may listen there.
#[test]
fn an_invalid_rpc_answer_is_an_error() {
    let target = Target::start(&["--connections", "4"]);
    for (name, text, part) in [
        ("endless", Vec::new(), "more than 262144 values"),
        (
            "objects",
            format!(
                "{{\"id\":1,\"result\":[{}0]}}",
                "{\"id\":0},".repeat(800_000)
            )
            .into_bytes(),
            "more than 262144 values",
        ),
        // Nothing is kept of members that nobody asked for.
        (
            "long",
            format!("{{\"x\":[{}]}}", "{\"\":0},".repeat(2 << 20)).into_bytes(),
            "longer than 8 MiB",
        ),
        ("closed", b"{\"jsonrpc\":".to_vec(), "the answer to"),
        (
            "web",
            b"HTTP/1.0 400 Bad Request\r\n\r\n".to_vec(),
            "expected",
        ),
        (
            "other",
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[]}".to_vec(),
            "belongs to another request",
        ),
    ] {
        let server = Server::with_reply(target.file(name), text);
        // JSON values took 128 times the bytes of their text.
        let done = testkit::command("sh")
            .args(["-c", "ulimit -v 500000; exec \"$@\"", "sh", PROGRAM])
            .args(["objects", "qpair", "-p", &target.pid(), "--rpc"])
            .arg(server.path())
            .output()
            .unwrap();
        let messages = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{name}: {messages}");
        assert!(
            messages.contains(part) && done.stdout.is_empty(),
            "{name}: {messages}"
        );
    }
    let done = testkit::command(PROGRAM)
        .args(["objects", "-p", &target.pid(), "--rpc", "/no/such.sock"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
}
