//! Names of the stages, and the party that ends each.

use spdk_trace_writer::nvmf::Stages;
use spdk_trace_writer::{Era, TraceBuilder};

use super::cause::EndedBy;

/// Stages that end when data has come from the host or gone to it (`enum spdk_nvmf_tcp_req_state`,
/// `spdk_nvmf_rdma_request_state`).
const BY_HOST: [&str; 6] = [
    "TCP_REQ_AWAIT_R2T_ACK",
    "TCP_REQ_TX_H_TO_C",
    "TCP_REQ_TRANSFER_C2H",
    "RDMA_REQ_TX_H2C",
    "RDMA_REQ_COMPLETING_C2H",
    "RDMA_REQ_COMPLETING",
];
/// Stages that end when the bdev is done.
const BY_DEVICE: [&str; 2] = ["TCP_REQ_EXECUTING", "RDMA_REQ_EXECUTING"];

/// Name and ending party of each stage, by the id of the tracepoint that begins it.
#[derive(Debug)]
pub(crate) struct StageTable(Vec<Option<(String, EndedBy)>>);

impl StageTable {
    /// Creates the table of all tracepoints of this era.
    pub(crate) fn new(era: Era, stages: &Stages) -> Self {
        let mut trace = TraceBuilder::new(era);
        stages.declare(&mut trace);
        let mut table = Vec::new();
        for tpoint in trace.tpoints() {
            let name = tpoint.name.as_str();
            let ended_by = match name {
                name if BY_HOST.contains(&name) => EndedBy::Host,
                name if BY_DEVICE.contains(&name) => EndedBy::Device,
                _ => EndedBy::Reactor,
            };
            let id = usize::from(tpoint.id);
            table.resize(table.len().max(id + 1), None);
            table[id] = Some((name.to_owned(), ended_by));
        }
        Self(table)
    }

    /// Returns the tracepoint's name.
    pub(crate) fn name(&self, tpoint: u16) -> String {
        self.get(tpoint)
            .map(|(name, _)| name.clone())
            .unwrap_or_default()
    }

    /// Returns the party that ends the stage begun by this tracepoint.
    pub(crate) fn ended_by(&self, tpoint: u16) -> EndedBy {
        self.get(tpoint)
            .map_or(EndedBy::Reactor, |(_, ended_by)| *ended_by)
    }

    fn get(&self, tpoint: u16) -> Option<&(String, EndedBy)> {
        self.0.get(usize::from(tpoint)).and_then(Option::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_era_has_the_stages_that_others_end() {
        for era in Era::ALL {
            let stages = Stages::new(era);
            let table = StageTable::new(era, &stages);
            let named = |name: &str| {
                table
                    .0
                    .iter()
                    .flatten()
                    .filter(|(known, _)| known == name)
                    .count()
            };
            for name in BY_HOST.iter().chain(&BY_DEVICE) {
                assert_eq!(named(name), 1, "{name} of era {era:?}");
            }
        }
    }
}
