//! The target's work before its first connection and after its last, and the work of its scheduler
//! in between.
//!
//! SPDK's steps and their order: `module/event/subsystems/nvmf/nvmf_tgt.c` (the states),
//! `lib/nvmf/subsystem.c` (a change of a subsystem's state visits every poll group),
//! `module/scheduler/dynamic`.

use std::ptr::from_ref;

use crate::functions::{demo_poller, demo_schedule_event};
use crate::names::{ADDRESS, BDEV_CTRLRS, SERVICE, TARGET};
use crate::reactor::{REACTORS, Reactor};

/// Values of `enum nvmf_tgt_state`. 5 and 6 are named the other way round in some versions.
const CREATE_TARGET: u64 = 1;
const CREATE_POLL_GROUPS: u64 = 2;
const START_SUBSYSTEMS: u64 = 3;
const RUNNING: u64 = 4;
const STOP_SUBSYSTEMS: u64 = 5;
const STOP_LISTEN: u64 = 6;
const DESTROY_SUBSYSTEMS: u64 = 7;
const DESTROY_POLL_GROUPS: u64 = 8;
const DESTROY_TARGET: u64 = 9;
const STOPPED: u64 = 10;
/// Values of `enum spdk_nvmf_subsystem_state`.
const INACTIVE: u64 = 0;
const ACTIVE: u64 = 2;
/// Values of `enum spdk_nvmf_trtype` (NVMe-oF specification): RDMA and TCP.
const TRTYPES: [u64; 2] = [1, 3];
/// Number of namespaces of each subsystem.
pub(crate) const NAMESPACES: u64 = 2;

/// Times of a thread (`struct spdk_thread_stats`).
#[derive(Debug)]
#[repr(C)]
struct ThreadStats {
    busy_tsc: u64,
    idle_tsc: u64,
}

/// Thread for the scheduler: `struct spdk_scheduler_thread_info` (`include/spdk/scheduler.h`).
#[derive(Debug)]
#[repr(C)]
struct ThreadInfo {
    lcore: u32,
    thread_id: u64,
    total_stats: ThreadStats,
    current_stats: ThreadStats,
}

/// Core for the scheduler: `struct spdk_scheduler_core_info`.
#[derive(Debug)]
#[repr(C)]
struct CoreInfo {
    total_idle_tsc: u64,
    total_busy_tsc: u64,
    current_idle_tsc: u64,
    current_busy_tsc: u64,
    lcore: u32,
    threads_count: u32,
    interrupt_mode: bool,
    thread_infos: *const ThreadInfo,
    isolated: bool,
}

impl Reactor<'_> {
    /// Starts the target up. Both reactors call this, and wait for each other between the steps.
    pub(crate) fn start_up(&mut self) {
        let shared = self.shared;
        let first = self.lcore == 0;
        if first {
            let stamps = &mut self.stamps;
            crate::probes100::hit_each(|| stamps.next());
            self.state(CREATE_TARGET);
            self.state(CREATE_POLL_GROUPS);
        }
        shared.phase.wait();
        self.create_poll_group();
        shared.phase.wait();
        if first {
            self.state(START_SUBSYSTEMS);
            self.state(RUNNING);
            self.configure();
            self.change_subsystems(ACTIVE, INACTIVE);
        }
        shared.phase.wait();
        for subnqn in &shared.names.subsystems {
            self.hits
                .nvmf_pg_change_state(self.stamps.next(), subnqn, ACTIVE, self.thread());
            self.hits
                .nvmf_poll_group_add_subsystem(self.stamps.next(), self.thread(), subnqn);
            self.hits
                .nvmf_pg_change_state_done(self.stamps.next(), subnqn, ACTIVE, self.thread());
        }
        shared.phase.wait();
        if first {
            self.subsystems_changed(ACTIVE, INACTIVE);
        }
    }

    /// Shuts the target down, unless nothing is to be torn down.
    pub(crate) fn shut_down(&mut self) {
        let shared = self.shared;
        if shared.options.no_teardown {
            return;
        }
        let first = self.lcore == 0;
        shared.phase.wait();
        if first {
            self.state(STOP_SUBSYSTEMS);
            self.change_subsystems(INACTIVE, ACTIVE);
        }
        shared.phase.wait();
        self.leave_subsystems();
        shared.phase.wait();
        if first {
            self.subsystems_changed(INACTIVE, ACTIVE);
            self.state(STOP_LISTEN);
            self.deconfigure();
            self.state(DESTROY_POLL_GROUPS);
        }
        shared.phase.wait();
        self.hits
            .nvmf_destroy_poll_group_qpairs(self.stamps.next(), self.thread());
        self.hits
            .nvmf_destroy_poll_group(self.stamps.next(), self.thread());
        shared.phase.wait();
        if first {
            self.state(DESTROY_TARGET);
            self.remove_bdevs();
            self.state(STOPPED);
        }
    }

    fn state(&mut self, state: u64) {
        self.hits.nvmf_tgt_state(self.stamps.next(), state);
    }

    fn create_poll_group(&mut self) {
        let thread = self.thread();
        self.hits.nvmf_create_poll_group(self.stamps.next(), thread);
        for transport in self.shared.world.transports() {
            self.hits
                .nvmf_transport_poll_group_create(self.stamps.next(), transport, thread);
        }
        for name in BDEV_CTRLRS {
            self.hits.bdev_nvme_create_qpair(
                self.stamps.next(),
                name,
                u64::from(self.lcore) + 1,
                thread,
            );
        }
    }

    /// Does what a user's commands set up: transports, subsystems, and the hosts that may use them.
    fn configure(&mut self) {
        let names = &self.shared.names;
        for transport in self.shared.world.transports() {
            self.hits
                .nvmf_tgt_add_transport(self.stamps.next(), transport, TARGET);
        }
        for subnqn in &names.subsystems {
            self.hits.nvmf_subsystem_create(self.stamps.next(), subnqn);
            for nsid in 1..=NAMESPACES {
                self.hits
                    .nvmf_subsystem_add_ns(self.stamps.next(), subnqn, nsid);
            }
            for hostnqn in &names.hosts {
                self.hits
                    .nvmf_subsystem_add_host(self.stamps.next(), subnqn, hostnqn);
            }
            for trtype in TRTYPES {
                self.hits.nvmf_subsystem_add_listener(
                    self.stamps.next(),
                    subnqn,
                    trtype,
                    ADDRESS,
                    SERVICE,
                );
            }
        }
    }

    fn deconfigure(&mut self) {
        let names = &self.shared.names;
        for subnqn in &names.subsystems {
            for trtype in TRTYPES {
                self.hits.nvmf_subsystem_remove_listener(
                    self.stamps.next(),
                    subnqn,
                    trtype,
                    ADDRESS,
                    SERVICE,
                );
            }
        }
        self.state(DESTROY_SUBSYSTEMS);
        for subnqn in &names.subsystems {
            for hostnqn in &names.hosts {
                self.hits
                    .nvmf_subsystem_remove_host(self.stamps.next(), subnqn, hostnqn);
            }
            self.hits.nvmf_subsystem_destroy(self.stamps.next(), subnqn);
        }
    }

    fn change_subsystems(&mut self, requested: u64, current: u64) {
        for subnqn in &self.shared.names.subsystems {
            self.hits
                .nvmf_subsystem_change_state(self.stamps.next(), subnqn, requested, current);
        }
    }

    fn subsystems_changed(&mut self, requested: u64, original: u64) {
        for subnqn in &self.shared.names.subsystems {
            self.hits.nvmf_subsystem_change_state_done(
                self.stamps.next(),
                subnqn,
                requested,
                original,
                0,
            );
        }
    }

    /// Removes the poll group's subsystems, and with them its connections.
    fn leave_subsystems(&mut self) {
        let thread = self.thread();
        let group = self.shared.world.group(self.lcore);
        for subnqn in &self.shared.names.subsystems {
            self.hits
                .nvmf_pg_change_state(self.stamps.next(), subnqn, INACTIVE, thread);
            self.hits
                .nvmf_poll_group_remove_subsystem(self.stamps.next(), group, thread, subnqn);
        }
        for seat in 0..self.seats.len() {
            self.close(seat);
        }
        for subnqn in &self.shared.names.subsystems {
            self.hits
                .nvmf_pg_change_state_done(self.stamps.next(), subnqn, INACTIVE, thread);
        }
    }

    fn remove_bdevs(&mut self) {
        for name in BDEV_CTRLRS {
            self.hits.bdev_nvme_destruct(self.stamps.next(), name, 1);
            self.hits.bdev_nvme_ctrlr_delete(self.stamps.next(), name);
            self.hits
                .bdev_nvme_ctrlr_release(self.stamps.next(), name, 1);
        }
    }

    /// Runs the scheduler, which inspects all cores, and sometimes moves a thread; a timer and an
    /// event run as well.
    pub(crate) fn schedule(&mut self) {
        let (busy, idle) = (1 + self.rng.below(1 << 27), 1 + self.rng.below(1 << 27));
        let thread = ThreadInfo {
            lcore: 0,
            thread_id: self.thread(),
            total_stats: ThreadStats {
                busy_tsc: 4 * busy,
                idle_tsc: 4 * idle,
            },
            current_stats: ThreadStats {
                busy_tsc: busy,
                idle_tsc: idle,
            },
        };
        let cores = [0, 1].map(|lcore| CoreInfo {
            total_idle_tsc: 4 * idle,
            total_busy_tsc: 4 * busy,
            current_idle_tsc: idle,
            current_busy_tsc: busy >> lcore,
            lcore,
            threads_count: 2,
            interrupt_mode: self.shared.options.interrupt_mode,
            thread_infos: from_ref(&thread),
            isolated: false,
        });
        self.hits
            .dynsched_balance(self.stamps.next(), REACTORS.into());
        for core in &cores {
            let info = from_ref(core).expose_provenance() as u64;
            self.hits
                .dynsched_core_info(self.stamps.next(), core.lcore.into(), info);
        }
        if self.rng.chance(300) {
            self.hits.dynsched_move(
                self.stamps.next(),
                from_ref(&thread).expose_provenance() as u64,
                1,
            );
        }
        self.run_poller(busy, idle);
        if self.rng.chance(200) {
            let name = BDEV_CTRLRS[self.rng.below(2) as usize];
            self.hits.bdev_nvme_ctrlr_reset(self.stamps.next(), name);
            self.hits
                .bdev_nvme_ctrlr_reconnect_delay(self.stamps.next(), name);
            self.hits
                .bdev_nvme_ctrlr_reconnect(self.stamps.next(), name);
        }
    }

    fn run_poller(&mut self, busy: u64, idle: u64) {
        let poller = demo_poller as *const () as u64;
        self.hits.event_exec(
            self.stamps.next(),
            demo_schedule_event as *const () as u64,
            busy,
            idle,
        );
        demo_schedule_event(busy, idle);
        self.hits.timerfd_exec(self.stamps.next(), poller, busy);
        demo_poller(busy);
        self.hits
            .interrupt_fd_process(self.stamps.next(), c"demo_interrupt", 7, poller, idle);
        demo_poller(idle);
    }
}
