//! Sets up the fixed objects of a target: targets, subsystems, bdevs, threads, reactors, and its
//! own controllers.

mod bdevs;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use spdk_trace_writer::nvmf::BDEVS;

use super::block::{Block, List, Owner};
use super::layouts::Layout;
use super::roots::Root;
use super::{Controllers, Group, Subsystem, World};
use crate::names::{Names, TARGET};
use crate::start::NAMESPACES;
use crate::truth::ObjectTruth;

/// Size of a lightweight thread, which follows its thread, in bytes
/// (`include/spdk_internal/event.h`).
const LW_THREAD: usize = 72;
/// Number of namespace slots of a subsystem.
const MAX_NSID: usize = 8;

/// Target under construction.
pub(super) struct Setup {
    layout: &'static Layout,
    pollers: Vec<Arc<Block>>,
    fixed: Vec<ObjectTruth>,
    kept: Vec<Arc<Block>>,
    lists: Vec<List>,
}

impl Setup {
    pub(super) fn new(layout: &'static Layout) -> Self {
        Self {
            layout,
            pollers: Vec::new(),
            fixed: Vec::new(),
            kept: Vec::new(),
            lists: Vec::new(),
        }
    }

    pub(super) fn world(mut self, names: &Names, reactors: usize) -> World {
        let threads = self.threads(reactors);
        let bdevs = self.bdevs();
        self.initiators();
        let tgt = self.block(self.layout.tgt_size);
        tgt.set_text(0, TARGET.to_bytes());
        let transports = self.transports(&tgt);
        let subsystems = self.subsystems(names, &tgt, &threads[0], &bdevs);
        let groups = self.groups(&tgt, &threads[1..]);
        // The target is linked when it is complete; a real one is linked at its creation.
        let mut tgts = List::new(Owner::Root(Root::NvmfTgts), 0, self.layout.tgt_link);
        tgts.push(Arc::clone(&tgt));
        self.lists.push(tgts);
        self.found(
            "target",
            &tgt,
            [("name", TARGET.to_string_lossy().into_owned())],
        );
        let Self {
            layout,
            pollers,
            fixed,
            kept,
            lists,
        } = self;
        World {
            layout,
            transports,
            subsystems,
            groups,
            pollers,
            fixed,
            _kept: kept,
            _lists: lists,
        }
    }

    fn block(&mut self, size: usize) -> Arc<Block> {
        let block = Block::new(size);
        self.kept.push(Arc::clone(&block));
        block
    }

    /// Stores a text; returns its address.
    fn text(&mut self, text: &str) -> u64 {
        let block = Block::from_text(text);
        let address = block.address();
        self.kept.push(block);
        address
    }

    fn found<const N: usize>(&mut self, kind: &str, block: &Block, values: [(&str, String); N]) {
        self.found_at(kind, block.address(), values);
    }

    fn found_at<const N: usize>(&mut self, kind: &str, pointer: u64, values: [(&str, String); N]) {
        let values: BTreeMap<_, _> = values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        self.fixed.push(ObjectTruth {
            kind: kind.to_owned(),
            pointer,
            values,
        });
    }

    /// Creates the application's thread and one for each poll group, each with a poller, and the
    /// reactors that run them.
    fn threads(&mut self, reactors: usize) -> Vec<Arc<Block>> {
        let at = self.layout;
        let array = self.block(reactors * at.reactor_size);
        let mut list = List::new(Owner::Root(Root::Threads), 0, at.thread_tailq);
        let mut threads = Vec::new();
        for number in 0..=reactors {
            let thread = self.block(at.thread_size + LW_THREAD);
            let name = match number {
                0 => "app_thread".to_owned(),
                _ => format!("nvmf_tgt_poll_group_{:03}", number - 1),
            };
            thread.set64(at.thread_id, number as u64 + 1);
            thread.set_text(at.thread_name, name.as_bytes());
            self.poller(
                &thread,
                if number == 0 {
                    "nvmf_tgt_accept"
                } else {
                    "nvmf_poll_group_poll"
                },
            );
            // spdk_lw_thread: lcore at 24.
            thread.set32(at.thread_size + 24, number.saturating_sub(1) as u32);
            list.push(Arc::clone(&thread));
            let id = (number + 1).to_string();
            self.found("thread", &thread, [("name", name), ("id", id)]);
            threads.push(thread);
        }
        self.lists.push(list);
        for lcore in 0..reactors {
            self.reactor(&array, lcore, &threads);
        }
        Root::Reactors.set(0, array.address());
        Root::ReactorCount.set(0, reactors as u64);
        threads
    }

    /// Writes a reactor: threads at 0, thread_count at 16, lcore at 20, flags at 24. These never
    /// moved.
    fn reactor(&mut self, array: &Arc<Block>, lcore: usize, threads: &[Arc<Block>]) {
        let at = lcore * self.layout.reactor_size;
        let address = array.address() + at as u64;
        let mine: Vec<_> = threads
            .iter()
            .enumerate()
            .filter(|(number, _)| number.saturating_sub(1) == lcore)
            .collect();
        let links: Vec<_> = mine
            .iter()
            .map(|(_, thread)| thread.address() + self.layout.thread_size as u64)
            .collect();
        let mut place = address;
        for (index, (_, thread)) in mine.iter().enumerate() {
            thread.set64(
                self.layout.thread_size,
                links.get(index + 1).copied().unwrap_or(0),
            );
            thread.set64(self.layout.thread_size + 8, place);
            place = links[index];
        }
        array.set64(at, links.first().copied().unwrap_or(0));
        array.set64(at + 8, place);
        array.set32(at + 16, mine.len() as u32);
        array.set32(at + 20, lcore as u32);
        array.set32(at + 24, 1);
        self.found_at("reactor", address, [("lcore", lcore.to_string())]);
    }

    /// Creates an active poller, and a timed one, alone in its tree. Their members never moved
    /// since v22.01.
    fn poller(&mut self, thread: &Arc<Block>, name: &str) {
        let size = self.layout.poller_size;
        let mut active = List::in_block(thread, 24, 0);
        for (name, period) in [(name, 0), ("demo_timed", 1_000_000)] {
            let poller = self.block(size);
            poller.set64(48, period);
            poller.set64(88, crate::functions::demo_poller as *const () as u64);
            poller.set64(104, thread.address());
            poller.set_text(136, name.as_bytes());
            let kind = if period == 0 {
                "poller"
            } else {
                "timed_poller"
            };
            self.found(kind, &poller, [("name", name.to_owned())]);
            if period == 0 {
                self.pollers.push(Arc::clone(&poller));
                active.push(poller);
            } else {
                thread.set64(40, poller.address());
            }
        }
        self.lists.push(active);
    }

    /// Creates the transports: RDMA, then TCP.
    fn transports(&mut self, tgt: &Arc<Block>) -> Vec<Arc<Block>> {
        let at = self.layout;
        let mut list = List::in_block(tgt, at.tgt_transports, at.transport_link);
        let mut transports = Vec::new();
        for (name, number) in [("RDMA", 1), ("TCP", 3)] {
            let ops = self.block(288);
            ops.set_text(0, name.as_bytes());
            ops.set32(32, number);
            let transport = self.block(at.transport_size);
            transport.set64(0, tgt.address());
            transport.set64(8, ops.address());
            list.push(Arc::clone(&transport));
            transports.push(transport);
        }
        self.lists.push(list);
        transports
    }

    fn subsystems(
        &mut self,
        names: &Names,
        tgt: &Block,
        thread: &Block,
        bdevs: &[Arc<Block>],
    ) -> Vec<Subsystem> {
        let at = self.layout;
        let mut subsystems = Vec::new();
        for (id, subnqn) in names.subsystems.iter().enumerate() {
            let block = self.block(at.subsystem_size);
            block.set64(0, thread.address());
            block.set32(8, id as u32);
            // SPDK_NVMF_SUBSYSTEM_ACTIVE, SPDK_NVMF_SUBTYPE_NVME.
            block.set32(12, 2);
            block.set32(at.subsystem_subtype, 2);
            block.set16(at.subsystem_next_cntlid, 1);
            block.set64(at.subsystem_tgt, tgt.address());
            block.set_text(at.subsystem_sn, format!("DEMO{id:016}").as_bytes());
            block.set_text(at.subsystem_subnqn, subnqn.to_bytes());
            block.set64(at.subsystem_ns, self.namespaces(&block, id, bdevs));
            block.set32(at.subsystem_max_nsid, MAX_NSID as u32);
            let list = List::in_block(&block, at.subsystem_ctrlrs, at.ctrlr_link);
            let subnqn = subnqn.to_string_lossy().into_owned();
            self.found(
                "subsystem",
                &block,
                [("subnqn", subnqn), ("id", id.to_string())],
            );
            let controllers = Mutex::new(Controllers {
                list,
                next_cntlid: 1,
            });
            subsystems.push(Subsystem { block, controllers });
        }
        tgt.set32(at.tgt_max_subsystems, subsystems.len() as u32 + 4);
        let found = if at.has_tree() {
            self.tree(&subsystems)
        } else {
            self.array(&subsystems)
        };
        tgt.set64(at.tgt_subsystems, found);
        subsystems
    }

    /// Creates the array of a subsystem's namespaces, with empty slots in between.
    fn namespaces(&mut self, subsystem: &Block, id: usize, bdevs: &[Arc<Block>]) -> u64 {
        let array = self.block(8 * MAX_NSID);
        for number in 0..NAMESPACES as usize {
            let nsid = 2 * number + 1;
            let bdev = (id + number) % bdevs.len();
            let ns = self.block(self.layout.ns_size);
            ns.set32(0, nsid as u32);
            ns.set64(8, subsystem.address());
            ns.set64(16, bdevs[bdev].address());
            array.set64(8 * (nsid - 1), ns.address());
            self.found(
                "namespace",
                &ns,
                [("nsid", nsid.to_string()), ("bdev", BDEVS[bdev].to_owned())],
            );
        }
        array.address()
    }

    /// Creates the array of all subsystems, with empty slots at its end (up to v23.01).
    fn array(&mut self, subsystems: &[Subsystem]) -> u64 {
        let array = self.block(8 * (subsystems.len() + 4));
        for (place, subsystem) in subsystems.iter().enumerate() {
            array.set64(8 * place, subsystem.block.address());
        }
        array.address()
    }

    /// Links the tree of all subsystems by their names (from v23.05 on): each is to the left or
    /// right of the one in the middle. The lowest bits of the pointer to the parent are for the
    /// tree's balance. Some are set, for readers that do not expect them.
    fn tree(&self, subsystems: &[Subsystem]) -> u64 {
        let Some(root) = subsystems.get(subsystems.len() / 2) else {
            return 0;
        };
        let link = self.layout.subsystem_link;
        let (left, right) = subsystems.split_at(subsystems.len() / 2);
        let address = root.block.address();
        for (at, half) in [(0, left), (8, right.get(1..).unwrap_or_default())] {
            let child = self.tree(half);
            root.block.set64(link + at, child);
            if let Some(child) = half.get(half.len() / 2) {
                child.block.set64(link + 16, address | 1);
            }
        }
        address
    }

    fn groups(&mut self, tgt: &Arc<Block>, threads: &[Arc<Block>]) -> Vec<Group> {
        let at = self.layout;
        let mut list = List::in_block(tgt, at.tgt_poll_groups, at.group_link);
        let mut groups = Vec::new();
        for thread in threads {
            let block = self.block(at.group_size);
            block.set64(0, thread.address());
            block.set64(at.group_tgt, tgt.address());
            let qpairs = Mutex::new(List::in_block(&block, at.group_qpairs, at.qpair_link));
            list.push(Arc::clone(&block));
            self.found("poll_group", &block, []);
            groups.push(Group {
                block,
                thread: thread.address(),
                qpairs,
            });
        }
        self.lists.push(list);
        groups
    }
}
