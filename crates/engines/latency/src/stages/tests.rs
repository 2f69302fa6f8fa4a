//! Tests of the stages of artificial records.

use spdk_trace::{Args, Lcore, Object, ObjectName, OwnerLabel, Ticks};

use super::*;

fn record(tpoint: &Tpoint, id: u64, at: u64) -> Record<'_> {
    let name = ObjectName {
        prefix: 'r',
        number: id,
    };
    Record {
        lcore: Lcore(0),
        thread_name: "",
        tsc: Ticks(at),
        tpoint,
        size: 0,
        poller: None,
        owner: None,
        owner_since: None,
        label: OwnerLabel::None,
        object: Object::Known {
            name,
            id,
            age: None,
        },
        related: None,
        args: Args::none(),
        annotations: None,
        lost_since: None,
    }
}

fn queues() -> Queues {
    Queues::new(&objects::built_in().unwrap()).unwrap()
}

#[test]
fn endless_and_incomplete_objects_are_left_out() {
    let tpoint = |(id, name): (u16, &str)| Tpoint {
        id,
        name: name.to_owned(),
        owner_type: 0,
        owner_prefix: None,
        object_type: 1,
        object_prefix: Some('r'),
        new_object: id == 0,
        args: Vec::new(),
        relations: Vec::new(),
    };
    let [new, next] = [(0, "NEW"), (1, "NEXT")].map(tpoint);
    let rate = TickRate::ticks_as_micros();
    let mut tracker = Tracker::new(Query::default(), queues(), &[], rate);
    let context = Context {
        rate,
        annotator: None,
    };
    let mut at = 0;
    let mut write = |tpoint: &Tpoint, id: u64, lost_since: Option<u64>| {
        at += 1;
        let record = Record {
            lost_since: lost_since.map(Ticks),
            ..record(tpoint, id, at)
        };
        tracker.record(&record, &context);
        at
    };
    for n in 0..MAX_RECORDS_PER_OBJECT + 10 {
        write(if n == 0 { &new } else { &next }, 1, None);
    }
    write(&new, 2, None);
    let before = write(&next, 2, None);
    write(&next, 2, Some(before));
    for id in 3..6 {
        write(&new, id, Some(before));
        write(&next, id, Some(before));
    }
    let latencies = tracker.finish_all();
    assert_eq!(
        latencies.left_out_objects,
        OmittedCounts {
            endless: 1,
            torn: 1,
            forgotten: 0
        }
    );
    let counts: Vec<u64> = latencies
        .subjects
        .iter()
        .map(|(_, times)| times.whole.count())
        .collect();
    assert_eq!(counts, [3]);
    // If too many objects do not end, the older half is left out.
    let mut tracker = Tracker::new(Query::default(), queues(), &[], rate);
    for id in 0..=MAX_OPEN_OBJECTS as u64 {
        tracker.record(&record(&new, id, id), &context);
    }
    assert!(tracker.finish_all().left_out_objects.forgotten >= MAX_OPEN_OBJECTS as u64 / 2);
}
