//! Block devices, and the initiators that use others.

use crate::memory::block::{Block, List, Owner};
use crate::memory::roots::Root;
use crate::memory::setup::Setup;
use crate::names::BDEV_CTRLRS;
use spdk_trace_writer::nvmf::BDEVS;
use std::ffi::CStr;
use std::sync::Arc;

impl Setup {
    pub(super) fn bdevs(&mut self) -> Vec<Arc<Block>> {
        let at = self.layout;
        let mut list = List::new(Owner::Root(Root::BdevMgr), at.bdev_mgr_bdevs, at.bdev_link);
        let mut bdevs = Vec::new();
        for name in BDEVS {
            let bdev = self.block(at.bdev_size);
            let product = if name.starts_with("Malloc") {
                "Malloc disk"
            } else {
                "Demo disk"
            };
            bdev.set64(8, self.text(name));
            bdev.set64(32, self.text(product));
            bdev.set32(44, 512);
            bdev.set64(56, 1 << 20);
            list.push(Arc::clone(&bdev));
            self.found(
                "bdev",
                &bdev,
                [("name", name.to_owned()), ("product", product.to_owned())],
            );
            bdevs.push(bdev);
        }
        self.lists.push(list);
        bdevs
    }

    /// Creates the NVMe controllers behind bdevs.
    pub(super) fn initiators(&mut self) {
        let at = self.layout;
        let mut list = List::new(Owner::Root(Root::NvmeBdevCtrlrs), 0, 40);
        for (number, name) in BDEV_CTRLRS.map(CStr::to_string_lossy).iter().enumerate() {
            let group = self.block(56);
            group.set64(0, self.text(name));
            let mut ctrlrs = List::in_block(&group, 8, at.nvme_ctrlr_tailq);
            List::in_block(&group, 24, 0);
            let nvme = self.block(at.nvme_size);
            let (address, subnqn) = (
                format!("192.0.2.{}", number + 1),
                format!("nqn.2016-06.io.spdk:backend{number}"),
            );
            nvme.set16(at.nvme_cntlid, number as u16 + 1);
            nvme.set32(at.nvme_trid + 36, 3);
            nvme.set_text(at.nvme_trid + 44, address.as_bytes());
            nvme.set_text(at.nvme_trid + 301, b"4420");
            nvme.set_text(at.nvme_trid + 334, subnqn.as_bytes());
            let ctrlr = self.block(at.nvme_ctrlr_size);
            ctrlr.set64(0, nvme.address());
            ctrlr.set64(at.nvme_ctrlr_nbdev_ctrlr, group.address());
            self.found(
                "nvme_ctrlr",
                &ctrlr,
                [
                    ("name", name.to_string()),
                    ("traddr", address),
                    ("subnqn", subnqn),
                ],
            );
            ctrlrs.push(ctrlr);
            self.lists.push(ctrlrs);
            list.push(group);
        }
        self.lists.push(list);
    }
}
