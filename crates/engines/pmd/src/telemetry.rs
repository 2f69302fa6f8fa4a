//! The counters of DPDK's ports, from its telemetry socket (`lib/telemetry`; one message per
//! message).

use std::collections::BTreeMap;
use std::path::Path;

use host::Pid;
use host::control::{Connection, SocketKind, SocketOwner};
use serde_json::Value;

use crate::ask::ANSWER_TIMEOUT;
use crate::rpc::telemetry;

/// Limit on the ports queried (`RTE_MAX_ETHPORTS` is 32).
const MAX_PORTS: usize = 64;
/// Counters to read (`struct rte_eth_stats`).
const COUNTERS: [&str; 5] = ["ipackets", "opackets", "imissed", "ierrors", "rx_nombuf"];

/// Counters by port and name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports(pub(crate) BTreeMap<u64, BTreeMap<&'static str, u64>>);

impl Ports {
    /// Reads the current counters; `None` if there is no answer.
    pub(crate) fn read(pid: u32, socket: &Path) -> Option<Self> {
        let connection = Connection::open(
            Pid(pid),
            socket,
            SocketKind::Packets,
            SocketOwner::Process,
            ANSWER_TIMEOUT,
        )
        .ok()?;
        // DPDK greets with its version.
        connection.receive(&mut Vec::new()).ok()?;
        let ask = |question: &str| -> Option<Value> {
            connection.send(question.as_bytes()).ok()?;
            let mut answer = Vec::new();
            connection.receive(&mut answer).ok()?;
            telemetry(&answer)
        };
        let ports: Vec<u64> = ask("/ethdev/list")?
            .as_array()?
            .iter()
            .filter_map(Value::as_u64)
            .take(MAX_PORTS)
            .collect();
        let counters = |port: u64| {
            let stats = ask(&format!("/ethdev/stats,{port}"))?;
            let counter = |name: &'static str| Some((name, stats.get(name)?.as_u64()?));
            Some((port, COUNTERS.into_iter().filter_map(counter).collect()))
        };
        Some(Self(ports.into_iter().filter_map(counters).collect()))
    }

    /// Returns the growth of the counters.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let grown = |(port, after): (&u64, &BTreeMap<&'static str, u64>)| {
            let before = before.0.get(port)?;
            let since = |(name, after): (&&'static str, &u64)| {
                Some((*name, after.checked_sub(*before.get(name)?)?))
            };
            Some((*port, after.iter().filter_map(since).collect()))
        };
        Self(self.0.iter().filter_map(grown).collect())
    }
}
