//! Requests that are left out: too many, too long, or torn by a loss.

use scene::{BootNanos, OmittedCounts, Scene};
use spdk_trace::{Object, ObjectName, Record, Ticks};

use super::{All, CONTEXT, queues, record, setting, tpoints};

/// Checks that memory stays bounded for objects that never end: those with too many records are
/// left out, and so are the oldest.
#[test]
fn objects_without_an_end_are_left_out() {
    let tpoints = tpoints();
    let (mut scene, mut all) = (Scene::new(setting(), &tpoints, queues()), All::default());
    let mut at = 0;
    let mut write = |scene: &mut Scene<u32>, all: &mut All, tpoint: usize, id: u64| {
        at += 1;
        let mut record = record(&tpoints[tpoint], id, at);
        record.object = Object::Known {
            name: ObjectName {
                prefix: 'r',
                number: id,
            },
            id,
            age: None,
        };
        scene.record(&record, &CONTEXT, BootNanos(at), all, |data, _| *data += 1);
    };
    for n in 0..10_000 {
        write(&mut scene, &mut all, usize::from(n > 0), 1);
    }
    assert_eq!(
        scene.left_out(),
        OmittedCounts {
            endless: 1,
            ..OmittedCounts::default()
        }
    );
    // 300,000 are more than are kept: the older half of these is left out, and the first object
    // with it.
    for id in 2..300_002 {
        write(&mut scene, &mut all, 0, id);
    }
    let OmittedCounts {
        endless,
        forgotten,
        torn,
    } = scene.left_out();
    assert!(
        (endless, torn) == (1, 0) && (131_000..=132_000).contains(&forgotten),
        "{:?}",
        scene.left_out()
    );
    // An object that ends meanwhile is handed out.
    write(&mut scene, &mut all, 0, 300_001);
    assert_eq!(
        (all.requests.len(), all.requests[0].name.number),
        (1, 300_001)
    );
    scene.finish(BootNanos(at), &mut all);
    assert_eq!(all.requests.len() as u64, 300_000 - forgotten + 1);
}

/// Checks requests with lost slots of their ring: the end of one and the beginning of the next may
/// be missing, so both look like one.
#[test]
fn requests_in_whose_time_records_were_lost_are_left_out() {
    let tpoints = tpoints();
    let (mut scene, mut all) = (Scene::new(setting(), &tpoints, queues()), All::default());
    let mut write =
        |scene: &mut Scene<u32>, tpoint: usize, number: u64, at: u64, lost_since: Option<u64>| {
            let record = Record {
                lost_since: lost_since.map(Ticks),
                ..record(&tpoints[tpoint], number, at)
            };
            scene.record(&record, &CONTEXT, BootNanos(at), &mut all, |data, _| {
                *data += 1;
            });
        };
    // Three are open at 30: one goes on afterwards, and the address of another one is used again.
    for number in 0..3 {
        write(&mut scene, 0, number, 10 + number, None);
        write(&mut scene, 1, number, 28 + number, None);
    }
    write(&mut scene, 2, 0, 100, Some(30));
    write(&mut scene, 0, 5, 101, Some(30));
    // A request that began later is whole.
    write(&mut scene, 0, 7, 102, Some(30));
    for number in [5, 7] {
        write(&mut scene, 1, number, 110 + number, Some(30));
    }
    let still_open = scene.left_out();
    scene.finish(BootNanos(200), &mut all);
    // The third one has no more records, and is left out at the end.
    assert_eq!(
        still_open,
        OmittedCounts {
            torn: 1,
            ..OmittedCounts::default()
        }
    );
    assert_eq!(
        all.requests
            .iter()
            .map(|request| request.name.number)
            .collect::<Vec<_>>(),
        [5, 7]
    );
}
