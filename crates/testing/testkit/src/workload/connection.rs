//! The connections of the workload, and the recording of their three probes.

use std::fmt::Write;

use spdk_trace_writer::Rng;
use spdk_trace_writer::nvmf::Transport;

/// One qpair, from its add probe to its remove probe: what an annotation must say of a record in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its pointer; the same one may belong to another connection later.
    pub qpair: u64,
    /// Id of the thread that polls it.
    pub thread: u64,
    /// Its number within the controller.
    pub qid: u16,
    /// NQN of the subsystem.
    pub subnqn: String,
    /// NQN of the host.
    pub hostnqn: String,
    /// How it came.
    pub transport: Transport,
    /// The lcore that records for it.
    pub lcore: u32,
    /// Its owner id in the eras with owners, `qid` in the others.
    pub owner: u16,
    /// When `nvmf_poll_group_add_qpair` was hit, in ticks.
    pub added: u64,
    /// When `nvmf_ctrlr_add_qpair` was hit, in ticks.
    pub named: u64,
    /// When `nvmf_poll_group_remove_qpair` was hit, in ticks, if it was.
    pub removed: Option<u64>,
}

impl Connection {
    /// What SPDK writes as the owner's description (`with_listener`: from v26.05 on).
    pub(super) fn description(&self, port: u64, with_listener: bool) -> String {
        let mut text = format!("127.0.0.1:{port} {}", self.subnqn);
        if with_listener {
            // SANITY: writing to a String does not fail, so the result says nothing.
            let _ = write!(text, " 127.0.0.1:4420 qid:{}", self.qid);
        }
        text
    }

    fn hits(&self) -> Vec<(u64, String)> {
        let Self { qpair, thread, qid, subnqn, hostnqn, added, named, .. } = self;
        let poll_group = |what: &str, tsc: u64| {
            (tsc, format!("nvmf_poll_group_{what}_qpair: tsc={tsc:#x}, qpair={qpair:#x}, thread={thread:#x}"))
        };
        let name = format!(
            "nvmf_ctrlr_add_qpair: tsc={named:#x}, qpair={qpair:#x}, qid={qid:#x}, subnqn='{subnqn}', hostnqn='{hostnqn}'"
        );
        let mut hits = vec![poll_group("add", *added), (*named, name)];
        hits.extend(self.removed.map(|tsc| poll_group("remove", tsc)));
        hits
    }
}

/// The recording as bpftrace prints it: nearly in order, since it reads one buffer a CPU after another.
pub(super) fn recording(connections: &[Connection], rng: &mut Rng) -> String {
    let mut hits: Vec<_> = connections.iter().flat_map(Connection::hits).collect();
    hits.sort();
    for at in 1..hits.len() {
        if rng.chance(20) {
            hits.swap(at - 1, at);
        }
    }
    let mut text = String::from("Attaching 3 probes...\n");
    for (_, line) in hits {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("\n\n");
    text
}
