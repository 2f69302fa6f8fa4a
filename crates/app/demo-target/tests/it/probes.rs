//! The probes are in the built program, with arguments that a tracer can read.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::PROGRAM;
use elf::symbols::Functions;
use host::FilePlace;
use usdt::UsdtProbes;

/// SPDK's probes by the number of their macro's arguments, without the word before them.
#[rustfmt::skip]
const SPDK: [(usize, &[&str]); 4] = [
    (1, &[
        "nvmf_tgt_state", "nvmf_create_poll_group", "nvmf_destroy_poll_group", "nvmf_destroy_poll_group_qpairs",
        "nvmf_transport_qpair_fini", "nvmf_subsystem_create", "nvmf_subsystem_destroy", "bdev_nvme_ctrlr_reset",
        "bdev_nvme_ctrlr_reconnect", "bdev_nvme_ctrlr_reconnect_delay", "bdev_nvme_ctrlr_delete", "dynsched_balance",
    ]),
    (2, &[
        "nvmf_tgt_add_transport", "nvmf_transport_poll_group_create", "nvmf_poll_group_add_qpair",
        "nvmf_poll_group_remove_qpair", "nvmf_poll_group_drain_qpair", "nvmf_poll_group_add_subsystem",
        "nvmf_qpair_disconnect", "nvmf_ctrlr_destruct", "nvmf_subsystem_add_ns", "nvmf_subsystem_add_host",
        "nvmf_subsystem_remove_host", "bdev_nvme_destruct", "bdev_nvme_ctrlr_release", "dynsched_core_info",
        "dynsched_move", "msg_exec", "timerfd_exec",
    ]),
    (3, &[
        "nvmf_poll_group_remove_subsystem", "nvmf_transport_poll_group_add", "nvmf_transport_poll_group_remove",
        "nvmf_ctrlr_create", "nvmf_subsystem_add_ctrlr", "nvmf_subsystem_remove_ctrlr", "nvmf_subsystem_change_state",
        "nvmf_pg_change_state", "nvmf_pg_change_state_done", "bdev_nvme_create_qpair", "event_exec",
    ]),
    (4, &[
        "nvmf_ctrlr_add_qpair", "nvmf_ctrlr_add_io_qpair", "nvmf_subsystem_add_listener",
        "nvmf_subsystem_remove_listener", "nvmf_subsystem_change_state_done", "interrupt_fd_process",
    ]),
];

#[test]
fn the_probes_are_in_the_program() {
    let file = FilePlace::at(Path::new(PROGRAM)).load().unwrap();
    let found = UsdtProbes::read(&file.image().unwrap());
    assert_eq!(found.broken, 0, "{:?}", found.faults);
    for probe in &found.probes {
        for place in &probe.places {
            let unreadable: Vec<_> = place
                .args
                .iter()
                .filter_map(usdt::args::ArgSpec::unreadable)
                .collect();
            assert!(
                unreadable.is_empty(),
                "{}:{}: {unreadable:?}",
                probe.provider,
                probe.name
            );
            assert!(place.args.iter().all(|arg| arg.ty.size == 8), "{place:?}");
            assert_eq!(place.semaphore.is_some(), &*probe.name == "request_lazy");
        }
    }
    let mut expected = BTreeSet::from(["demo:request_lazy".to_owned()]);
    for (args, names) in SPDK {
        for name in names {
            let probe = found
                .get("spdk", name)
                .unwrap_or_else(|| panic!("no probe {name}"));
            assert!(
                probe
                    .places
                    .iter()
                    .all(|place| place.args.len() == 1 + args),
                "{name}: {:?}",
                probe.places
            );
            expected.insert(format!("spdk:{name}"));
        }
    }
    let hundred = found
        .probes
        .iter()
        .filter(|probe| &*probe.provider == "demo100");
    assert!(
        hundred
            .clone()
            .all(|probe| probe.places.len() == 1 && probe.places[0].args.len() == 2)
    );
    assert_eq!(hundred.count(), 100);
    let names: BTreeSet<_> = demo_target::PROBE_NAMES
        .iter()
        .filter(|name| name.contains(':'))
        .copied()
        .collect();
    assert_eq!(names, expected.iter().map(String::as_str).collect());
}

/// The compiler inlines them into several functions, as it does with SPDK's.
#[test]
fn some_probes_stand_in_several_places() {
    let file = FilePlace::at(Path::new(PROGRAM)).load().unwrap();
    let found = UsdtProbes::read(&file.image().unwrap());
    for name in ["nvmf_ctrlr_add_qpair", "nvmf_poll_group_remove_qpair"] {
        let places = &found.get("spdk", name).unwrap().places;
        assert!(places.len() >= 2, "{name}: {places:?}");
    }
}

#[test]
fn the_functions_have_plain_names() {
    let file = FilePlace::at(Path::new(PROGRAM)).load().unwrap();
    let functions = Functions::read(&file.image().unwrap(), None);
    for name in [
        "demo_request_start",
        "demo_request_complete",
        "demo_connect_msg",
        "demo_schedule_event",
        "demo_poller",
    ] {
        assert_eq!(functions.named(name).count(), 1, "{name}");
    }
}
