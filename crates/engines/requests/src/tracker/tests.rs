//! Beginnings, ends and verdicts of tracked objects.

use spdk_trace::{Args, OwnerLabel, TickRate};

use super::*;

fn tracker(tpoints: &[Tpoint]) -> ObjectTracker<()> {
    ObjectTracker::new(tpoints, Queues::new(&objects::built_in().unwrap()).unwrap())
}

const CONTEXT: Context<'_> = Context {
    rate: TickRate::ticks_as_micros(),
    annotator: None,
};

fn tpoints(names: &[&str]) -> Vec<Tpoint> {
    let tpoint = |(id, name): (u16, &&str)| Tpoint {
        id,
        name: (*name).to_owned(),
        owner_type: 0,
        owner_prefix: None,
        object_type: 1,
        object_prefix: Some('o'),
        new_object: id == 0,
        args: Vec::new(),
        relations: Vec::new(),
    };
    (0..).zip(names).map(tpoint).collect()
}

fn record(tpoint: &Tpoint, number: u64, at: u64) -> Record<'_> {
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
            name: ObjectName {
                prefix: 'o',
                number,
            },
            id: 7,
            age: None,
        },
        related: None,
        args: Args::none(),
        annotations: None,
        lost_since: None,
    }
}

/// Returns whether an object with records of these tracepoints has ended, and whether it may have.
fn ends(names: &[&str]) -> (bool, bool) {
    let tpoints = tpoints(names);
    let mut tracker = tracker(&tpoints);
    let mut ends = (false, false);
    for (tpoint, at) in tpoints.iter().zip(1..) {
        let step = tracker
            .record(&record(tpoint, 1, at), &CONTEXT, |_| ())
            .unwrap();
        ends = (step.is_last, step.object.is_perhaps_over());
    }
    ends
}

#[test]
fn every_kind_of_object_ends_with_its_last_record() {
    let (over, perhaps, open) = ((true, true), (false, true), (false, false));
    for (names, expected) in [
        (&["TCP_REQ_NEW", "TCP_REQ_EXECUTING"][..], open),
        (&["TCP_REQ_NEW", "TCP_REQ_COMPLETED"], over),
        (&["RDMA_REQ_NEW", "RDMA_REQ_COMPLETED"], over),
        (
            &["FC_NEW", "FC_READ_SBMT_TO_BDEV", "FC_READ_XFER_DATA"],
            perhaps,
        ),
        (&["FC_NEW", "FC_WRITE_SBMT_TO_BDEV", "FC_WRITE_RSP"], over),
        (&["BDEV_IO_START", "BDEV_IO_DONE"], over),
        (&["ISCSI_READ_PDU", "ISCSI_TASK_EXECUTED"], perhaps),
        (
            &[
                "ISCSI_READ_PDU",
                "ISCSI_TASK_EXECUTED",
                "ISCSI_PDU_COMPLETED",
            ],
            over,
        ),
        (
            &["ISCSI_TASK_QUEUE", "SCSI_TASK_START", "SCSI_TASK_DONE"],
            perhaps,
        ),
        (
            &[
                "ISCSI_TASK_QUEUE",
                "SCSI_TASK_START",
                "SCSI_TASK_DONE",
                "ISCSI_TASK_DONE",
            ],
            over,
        ),
        (
            &["SOCK_REQ_QUEUE", "SOCK_REQ_PEND", "SOCK_REQ_COMPLETE"],
            over,
        ),
        (&["BLOB_REQ_SET_START", "BLOB_REQ_SET_COMPLETE"], over),
    ] {
        assert_eq!(ends(names), expected, "{names:?}");
    }
}

#[test]
fn a_record_behind_the_last_one_is_none_of_the_object() {
    let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_COMPLETED"]);
    let mut tracker = tracker(&tpoints);
    tracker
        .record(&record(&tpoints[0], 1, 10), &CONTEXT, |_| ())
        .unwrap();
    assert!(
        tracker
            .record(&record(&tpoints[1], 1, 20), &CONTEXT, |_| ())
            .unwrap()
            .is_last
    );
    let object = tracker.pop_ended().unwrap();
    assert_eq!(
        (object.outcome(), object.until.0 - object.begin.0),
        (Outcome::Timed, 10)
    );
    assert_eq!(tracker.pop_ended(), None);
    // The beginning of the next one in the same place was overwritten.
    assert!(
        tracker
            .record(&record(&tpoints[1], 1, 500), &CONTEXT, |_| ())
            .unwrap()
            .is_first
    );
    assert_eq!(tracker.pop_ended().unwrap().outcome(), Outcome::Point);
}

#[test]
fn one_record_can_end_two_objects() {
    let mut tpoints = tpoints(&["SOCK_REQ_QUEUE", "SOCK_REQ_COMPLETE"]);
    tpoints[1].new_object = true;
    let mut tracker = tracker(&tpoints);
    tracker
        .record(&record(&tpoints[0], 1, 10), &CONTEXT, |_| ())
        .unwrap();
    tracker
        .record(&record(&tpoints[1], 2, 20), &CONTEXT, |_| ())
        .unwrap();
    let ended: Vec<u64> = std::iter::from_fn(|| tracker.pop_ended())
        .map(|object| object.name.number)
        .collect();
    assert_eq!(ended, [1, 2]);
    assert!(tracker.is_empty());
}

#[test]
fn an_object_whose_beginning_was_lost_is_torn() {
    let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_EXECUTING", "TCP_REQ_COMPLETED"]);
    // The request of time 10 ended at 20. The records from 300 on have its name if the creation of
    // their own object was lost.
    let outcomes = |lost_since: Option<u64>| {
        let mut tracker = tracker(&tpoints);
        let mut step = |place: usize, at: u64, lost_since: Option<u64>| {
            let name = ObjectName {
                prefix: 'o',
                number: 1,
            };
            let object = Object::Known {
                name,
                id: 7,
                age: Some(Ticks(at - 10)),
            };
            let lost_since = lost_since.map(Ticks);
            let record = Record {
                object,
                lost_since,
                ..record(&tpoints[place], 1, at)
            };
            tracker.record(&record, &CONTEXT, |_| ()).unwrap();
            tracker.pop_ended().map(|object| object.outcome())
        };
        assert_eq!(
            (step(0, 10, None), step(2, 20, None)),
            (None, Some(Outcome::Timed))
        );
        assert_eq!(step(1, 300, lost_since), None);
        step(2, 310, lost_since).unwrap()
    };
    let expected = [Outcome::Timed, Outcome::Timed, Outcome::Torn, Outcome::Torn];
    assert_eq!([None, Some(5), Some(10), Some(150)].map(outcomes), expected);
}

#[test]
fn an_object_that_ends_behind_a_hole_is_torn_though_its_end_is_filtered_out() {
    let tpoints = tpoints(&["TCP_REQ_NEW", "TCP_REQ_EXECUTING", "TCP_REQ_COMPLETED"]);
    let outcome = |lost_since: Option<u64>| {
        let mut tracker = tracker(&tpoints);
        for place in [0, 1] {
            let record = record(&tpoints[place], 1, 10 + place as u64);
            tracker.record(&record, &CONTEXT, |_| ()).unwrap();
        }
        let lost_since = lost_since.map(Ticks);
        tracker.unwanted(&Record {
            lost_since,
            ..record(&tpoints[2], 1, 30)
        });
        tracker.pop_ended().unwrap().outcome()
    };
    let expected = [Outcome::Timed, Outcome::Timed, Outcome::Torn];
    assert_eq!([None, Some(9), Some(11)].map(outcome), expected);
}

#[test]
fn a_request_that_nobody_executed_is_unanswered() {
    let names = [
        "TCP_REQ_NEW",
        "TCP_REQ_EXECUTING",
        "TCP_REQ_EXECUTED",
        "TCP_REQ_COMPLETED",
    ];
    let tpoints = tpoints(&names);
    let mut tracker = tracker(&tpoints);
    let mut outcome = |places: &[usize], number| {
        for place in places {
            tracker
                .record(&record(&tpoints[*place], number, 10), &CONTEXT, |_| ())
                .unwrap();
        }
        tracker.pop_ended().unwrap().outcome()
    };
    // No answer was seen yet: perhaps the trace does not record them.
    assert_eq!(outcome(&[0, 1, 3], 1), Outcome::Timed);
    assert_eq!(outcome(&[0, 1, 2, 3], 2), Outcome::Timed);
    assert_eq!(
        outcome(&[0, 1, 3], 3),
        Outcome::Excluded(Excluded::Unanswered)
    );
    assert_eq!(outcome(&[0, 3], 4), Outcome::Timed);
}
