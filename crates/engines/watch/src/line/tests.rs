use super::*;
use timeline::judge::{AbsenceSentence, Culprit};

/// Returns the line of a request that has ended.
fn line() -> Line {
    let judged = RequestFindings {
        object: "r57".to_owned(),
        kind: "TCP_REQ".to_owned(),
        subsystem: Some("cnode2".to_owned()),
        owner: Some("10.0.0.3:4420 nqn.2016-06.io.spdk:cnode2 qid:1".to_owned()),
        length: 2_310_000,
        has_kernel: true,
        at_least: 2_100_000,
        at_most: 2_200_000,
        culprit: Some(Culprit {
            name: "rustc on CPU 0".to_owned(),
            is_taken: true,
            at_least: 2_100_000,
            at_most: 2_200_000,
        }),
        last: "TCP_REQ_EXECUTING".to_owned(),
        ..RequestFindings::default()
    };
    Line {
        at: 1_795_403_564_123_456_789,
        away_since: None,
        away: AbsenceReport::default(),
        judged: Some(judged),
        length: 2_310_001,
        kind: "TCP_REQ".to_owned(),
        is_open: false,
        more: 12,
        missed: MissedRequests::default(),
        lost: (0, 0),
        short: None,
        folder: Ok("w/slow.capture".to_owned()),
    }
}

/// Returns the line of an open request without a capture.
fn open_line() -> Line {
    Line {
        judged: None,
        is_open: true,
        missed: MissedRequests {
            count: 3,
            longest: 4_000_000,
        },
        lost: (7, 1),
        short: Some(3_000_000),
        folder: Err("the disk is full".to_owned()),
        ..line()
    }
}

#[test]
fn a_line_says_it_all() {
    let line = line();
    assert_eq!(
        line.text(),
        "03:12:44.123 r57 (TCP_REQ) of cnode2, 10.0.0.3:4420 qid:1 took 2.31 ms: at least 2.10 ms, at most 2.20 ms of it rustc \
         on CPU 0 -> w/slow.capture\n             12 more at that time"
    );
    let parsed: serde_json::Value = serde_json::from_str(&line.json()).unwrap();
    assert_eq!(
        (&parsed["length_ns"], &parsed["who"]),
        (&2_310_000.into(), &"rustc on CPU 0".into())
    );
    let open = open_line();
    assert_eq!(
        open.text(),
        [
            "03:12:44.123 TCP_REQ is still open after 2.31 ms: its beginning is not in the capture",
            "no capture: the disk is full",
            "12 more at that time",
            "3 other slow requests have no capture, the slowest took 4.00 ms",
            "7 slots lost in the capture",
            "1 event of the kernel lost in the capture",
            "the capture has only 3.00 ms of the time before"
        ]
        .join("\n             ")
    );
    let parsed: serde_json::Value = serde_json::from_str(&open.json()).unwrap();
    assert_eq!(
        (&parsed["capture"], &parsed["error"]),
        (&serde_json::Value::Null, &"the disk is full".into())
    );
}

#[test]
fn a_line_about_a_time_away_names_the_thread() {
    let sentence = |text: &&str| AbsenceSentence {
        fact: (*text).to_owned(),
        consequence: "requests waited unread".to_owned(),
    };
    let text = |sentences: &[&str]| AbsenceReport {
        sentences: sentences.iter().map(sentence).collect(),
        json: vec!["{\"away\":\"reactor_0\"}".to_owned()],
    };
    let away = Line {
        away_since: Some(BootNanos(7)),
        away: text(&["reactor_0 was away"]),
        is_open: false,
        ..open_line()
    };
    assert_eq!(
        away.text().lines().take(3).collect::<Vec<_>>(),
        [
            "03:12:44.123 reactor_0 was away",
            "             no capture: the disk is full",
            "             requests waited unread",
        ]
    );
    let parsed: serde_json::Value = serde_json::from_str(&away.json()).unwrap();
    let (kind, length) = (&parsed["kind"], &parsed["length_ns"]);
    assert_eq!(
        (kind, length, &parsed["boot_ns"]),
        (&serde_json::Value::Null, &2_310_001.into(), &7.into())
    );
    assert_eq!(parsed["away"][0]["away"], "reactor_0");
    let unknown = Line {
        away: text(&[]),
        ..away
    };
    assert_eq!(
        unknown.text().lines().next(),
        Some("03:12:44.123 a thread that writes a ring was away for 2.31 ms")
    );
}
