//! Connections and controllers, which come and go.

use std::sync::Arc;

use spdk_trace_writer::nvmf::Transport;

use super::block::Block;
use super::{World, locked};

/// Connection without a host yet, as the transport creates it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewQpair {
    pub(crate) transport: Transport,
    /// Id of the owner in the trace.
    pub(crate) owner: u16,
    /// TCP port of the host.
    pub(crate) port: u16,
}

/// Association of a host's controller with its subsystem.
#[derive(Debug)]
pub(crate) struct Association<'a> {
    pub(crate) ctrlr: &'a Arc<Block>,
    /// Index of the subsystem.
    pub(crate) subsystem: usize,
    pub(crate) hostnqn: &'a [u8],
}

impl World {
    /// Allocates memory for a connection of either transport.
    pub(crate) fn new_qpair(&self) -> Arc<Block> {
        Block::new(self.layout.tcp_qpair_size)
    }

    /// Allocates memory for a controller.
    pub(crate) fn new_ctrlr(&self) -> Arc<Block> {
        Block::new(self.layout.ctrlr_size)
    }

    /// Writes a connection that has just been accepted.
    pub(crate) fn accept(&self, qpair: &Block, new: NewQpair) {
        let at = self.layout;
        qpair.clear();
        let tcp = new.transport == Transport::Tcp;
        qpair.set64(
            at.qpair_transport,
            self.transports[usize::from(tcp)].address(),
        );
        qpair.set16(at.qpair_trace_id, new.owner);
        if tcp {
            qpair.set_text(at.tcp_qpair_initiator_addr, b"127.0.0.1");
            qpair.set_text(at.tcp_qpair_target_addr, b"127.0.0.1");
            qpair.set16(at.tcp_qpair_initiator_port, new.port);
            qpair.set16(at.tcp_qpair_target_port, 4420);
        }
    }

    /// Does the part of `spdk_nvmf_poll_group_add` before its probe.
    pub(crate) fn join_group(&self, lcore: u32, qpair: &Block) {
        qpair.set64(self.layout.qpair_group, self.group(lcore));
    }

    /// Does the part of `spdk_nvmf_poll_group_add` after its probe.
    pub(crate) fn link_qpair(&self, lcore: u32, qpair: &Arc<Block>) {
        locked(&self.groups[lcore as usize].qpairs).push(Arc::clone(qpair));
        // CONNECTING; before v24.01 ACTIVE.
        qpair.set8(self.layout.qpair_state, 1);
    }

    /// Does `nvmf_ctrlr_create`: creates the controller with a pointer to its subsystem, and sets
    /// the admin queue's pointer to it.
    pub(crate) fn create_ctrlr(&self, lcore: u32, new: &Association<'_>, admin: &Block) {
        let at = self.layout;
        new.ctrlr.clear();
        new.ctrlr.set_text(2, new.hostnqn);
        new.ctrlr
            .set64(232, self.subsystems[new.subsystem].block.address());
        new.ctrlr
            .set64(at.ctrlr_thread, self.groups[lcore as usize].thread);
        admin.set64(at.qpair_ctrlr, new.ctrlr.address());
    }

    /// Does `nvmf_subsystem_add_ctrlr` and `_nvmf_ctrlr_add_admin_qpair`: gives the controller its
    /// number, and returns it.
    pub(crate) fn add_ctrlr(&self, new: &Association<'_>, admin: &Block) -> u16 {
        let at = self.layout;
        let subsystem = &self.subsystems[new.subsystem];
        let mut controllers = locked(&subsystem.controllers);
        let cntlid = controllers.next_cntlid;
        // The largest is 0xffef (NVMe over Fabrics 1.1, 1.5.2).
        controllers.next_cntlid = if cntlid == 0xffef { 1 } else { cntlid + 1 };
        subsystem
            .block
            .set16(at.subsystem_next_cntlid, controllers.next_cntlid);
        new.ctrlr.set16(0, cntlid);
        controllers.list.push(Arc::clone(new.ctrlr));
        new.ctrlr.set64(at.ctrlr_admin_qpair, admin.address());
        cntlid
    }

    /// Does the part of `nvmf_ctrlr_add_qpair` after its probe.
    pub(crate) fn name_qpair(&self, qpair: &Block, ctrlr: &Block, qid: u16) {
        let at = self.layout;
        qpair.set16(at.qpair_qid, qid);
        qpair.set64(at.qpair_ctrlr, ctrlr.address());
        qpair.set8(at.qpair_state, at.qpair_enabled as u8);
    }

    /// Does the part of `spdk_nvmf_poll_group_remove` after its probe.
    pub(crate) fn unlink_qpair(&self, lcore: u32, qpair: &Block) {
        qpair.set8(self.layout.qpair_state, self.layout.qpair_error as u8);
        locked(&self.groups[lcore as usize].qpairs).remove(qpair.address());
        qpair.set64(self.layout.qpair_group, 0);
    }

    /// Does `nvmf_ctrlr_destruct`: removes the controller from its subsystem.
    pub(crate) fn remove_ctrlr(&self, subsystem: usize, ctrlr: &Block) {
        ctrlr.set64(self.layout.ctrlr_admin_qpair, 0);
        locked(&self.subsystems[subsystem].controllers)
            .list
            .remove(ctrlr.address());
    }
}
