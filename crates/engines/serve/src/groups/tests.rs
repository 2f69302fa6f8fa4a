//! Tests of the limits on groups and connections.

use super::*;
use crate::limits::STAGES;

const LIMITS: Limits = Limits {
    connections: 5,
    with_stages: 2,
    threads: 1,
    targets: 1,
    cpus: 1,
    forget: 3,
};
const NAME: ObjectName = ObjectName {
    prefix: 'r',
    number: 1,
};

fn key(host: usize) -> Key {
    Key {
        subnqn: "nqn.s".into(),
        hostnqn: format!("nqn.{host}"),
        transport: "TCP".into(),
    }
}

fn stage(id: StageId, nanos: u64) -> Stage {
    Stage {
        id,
        nanos,
        lcore: Lcore(0),
    }
}

/// Counts, for each host, as many requests as its number says.
fn second(groups: &mut Groups, hosts: std::ops::Range<usize>) {
    for host in hosts {
        let group = groups.id(key(host));
        for _ in 0..host {
            let stages = [
                stage(groups.stage("A -> B", "A"), 500),
                stage(WHOLE, 1_000 * host as u64),
            ];
            groups.finish(&FinishedRequest {
                group,
                utc: 0,
                name: NAME,
                size: 0,
                stages: &stages,
            });
        }
    }
    groups.second();
}

fn listed(groups: &Groups) -> Vec<(String, State, u64)> {
    groups
        .shown()
        .iter()
        .map(|group| (group.key.hostnqn.clone(), group.state, group.requests))
        .collect()
}

fn whole(groups: &Groups) -> u64 {
    let cells = groups
        .shown()
        .into_iter()
        .filter(|group| group.state == State::Detailed);
    let of = |group: &Group| {
        group
            .cells
            .iter()
            .find(|(stage, _)| *stage == WHOLE)
            .map(|(_, cell)| cell.total)
    };
    cells
        .filter_map(of)
        .map(|total| total.cumulative()[metrics::LE.len()])
        .sum()
}

#[test]
fn the_busiest_are_shown_and_nothing_is_counted_twice() {
    let mut groups = Groups::new(LIMITS);
    second(&mut groups, 1..80);
    let all: u64 = (1..80).sum();
    let shown = listed(&groups);
    let hosts: Vec<&str> = shown.iter().map(|(host, ..)| host.as_str()).collect();
    assert_eq!(
        hosts,
        ["nqn.75", "nqn.76", "nqn.77", "nqn.78", "nqn.79", "other"]
    );
    assert_eq!(
        shown
            .iter()
            .filter(|(_, state, _)| *state == State::Detailed)
            .count(),
        3,
        "with other"
    );
    assert_eq!(
        shown.iter().map(|(.., requests)| requests).sum::<u64>(),
        all
    );
    assert_eq!(whole(&groups), all);
    // Each time is in one table, and `other` shows the recent times of all whose histograms it
    // has.
    let tables = groups.newest(metrics::TURNS);
    assert_eq!(
        tables
            .iter()
            .filter(|(_, id, _)| *id == WHOLE)
            .map(|(.., times)| times.count())
            .sum::<u64>(),
        all
    );
    let rest = &groups.rest()[&WHOLE];
    assert_eq!((rest.0.count(), rest.0.max()), (all - 79 - 78, 77_000));
    // Others are busier now, and wait. Sums are still complete, and no count of `other` falls.
    let other = shown[5].2;
    for round in 2..=3 {
        second(&mut groups, 70..77);
        let shown = listed(&groups);
        assert_eq!(
            shown.iter().map(|(.., requests)| requests).sum::<u64>(),
            whole(&groups),
            "{round}"
        );
        assert!(
            shown
                .last()
                .is_some_and(|(.., requests)| *requests >= other)
        );
    }
    second(&mut groups, 70..77);
    // Three of the five did nothing for three seconds: the busiest of the others have their
    // places.
    let hosts: Vec<String> = listed(&groups).into_iter().map(|(host, ..)| host).collect();
    assert_eq!(
        hosts,
        ["nqn.72", "nqn.73", "nqn.74", "nqn.75", "nqn.76", "other"]
    );
    assert!(
        groups.known.len() < 10 && groups.forgotten > 60,
        "{} are known",
        groups.known.len()
    );
}

#[test]
fn stages_and_connections_have_an_end() {
    let mut groups = Groups::new(LIMITS);
    let group = groups.id(key(1));
    for number in 0..1000 {
        let stages = [stage(groups.stage(&format!("stage {number}"), "stage"), 10)];
        groups.finish(&FinishedRequest {
            group,
            utc: 0,
            name: NAME,
            size: 0,
            stages: &stages,
        });
    }
    let cells = &groups.known[&group].cells;
    assert_eq!(
        (groups.stages.len(), cells.iter().count()),
        (STAGE_NAMES, STAGES + 1)
    );
    let total: u64 = cells
        .iter()
        .map(|(_, cell)| cell.total.cumulative()[metrics::LE.len()])
        .sum();
    assert_eq!(total, 1000);
    let ids: Vec<GroupId> = (0..1000).map(|host| groups.id(key(host))).collect();
    assert_eq!(groups.known.len(), LIMITS.known());
    assert_eq!(ids[999], OTHER);
}
