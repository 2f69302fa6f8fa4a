//! The connections of the workload, and the recording of their three probes.

use std::fmt::Write;

use spdk_trace_writer::Rng;
use spdk_trace_writer::nvmf::Transport;

/// One qpair, from its add probe to its remove probe: the expected annotation of a record in
/// between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Pointer; another connection may reuse it later.
    pub qpair: u64,
    /// Id of the thread that polls it.
    pub thread: u64,
    /// Number within the controller.
    pub qid: u16,
    /// NQN of the subsystem.
    pub subnqn: String,
    /// NQN of the host.
    pub hostnqn: String,
    /// Transport of the connection.
    pub transport: Transport,
    /// The lcore that records for it.
    pub lcore: u32,
    /// Owner id in the eras with owners, `qid` in the others.
    pub owner: u16,
    /// Time of the hit of `nvmf_poll_group_add_qpair`, in ticks.
    pub added: u64,
    /// Time of the hit of `nvmf_ctrlr_add_qpair`, in ticks.
    pub named: u64,
    /// Time of the hit of `nvmf_poll_group_remove_qpair`, in ticks, if any.
    pub removed: Option<u64>,
}

impl Connection {
    /// Returns the owner's description as SPDK writes it (`with_listener`: from v26.05 on).
    pub(super) fn description(&self, port: u64, with_listener: bool) -> String {
        let mut text = format!("127.0.0.1:{port} {}", self.subnqn);
        if with_listener {
            // SANITY: writing to a String does not fail.
            let _ = write!(text, " 127.0.0.1:4420 qid:{}", self.qid);
        }
        text
    }

    fn hits(&self) -> Vec<(u64, String)> {
        let Self {
            qpair,
            thread,
            qid,
            subnqn,
            hostnqn,
            added,
            named,
            ..
        } = self;
        let poll_group = |what: &str, tsc: u64| {
            (
                tsc,
                format!(
                    "nvmf_poll_group_{what}_qpair: tsc={tsc:#x}, qpair={qpair:#x}, thread={thread:#x}"
                ),
            )
        };
        let name = format!(
            "nvmf_ctrlr_add_qpair: tsc={named:#x}, qpair={qpair:#x}, qid={qid:#x}, subnqn='{subnqn}', hostnqn='{hostnqn}'"
        );
        let mut hits = vec![poll_group("add", *added), (*named, name)];
        hits.extend(self.removed.map(|tsc| poll_group("remove", tsc)));
        hits
    }
}

/// Returns the recording as bpftrace prints it: nearly in order, since it reads one per-CPU buffer
/// after another.
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
