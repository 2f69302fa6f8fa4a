//! `dptrace trace`: the records that pass its filters.

use crate::common::small::Small;
use crate::common::{dptrace, printed};

/// Returns the times of the listed records, in listing order.
fn times(listing: &str) -> Vec<&str> {
    listing.lines().map(|line| line[4..20].trim()).collect()
}

/// Checks which records pass, by their times.
#[track_caller]
fn check(args: &[&str], expected: &[&str]) {
    let small = Small::new();
    let listing = printed(small.args("trace", args));
    assert_eq!(times(&listing), expected, "{args:?}");
}

const R0: [&str; 3] = ["0.000", "1.000", "5.000"];
const R1: [&str; 3] = ["0.500", "2.000", "10.500"];
const RDMA: [&str; 2] = ["11.000", "13.000"];

#[test]
fn without_filters_all_records_come_in_the_order_of_time() {
    check(
        &[],
        &[
            "0.000", "0.500", "1.000", "1.500", "2.000", "4.500", "5.000", "10.500", "11.000",
            "13.000",
        ],
    );
}

#[test]
fn lcores_are_numbers_and_ranges() {
    check(
        &["--lcore", "0"],
        &["0.000", "1.000", "1.500", "4.500", "5.000"],
    );
    check(
        &["--lcore", "1-7"],
        &["0.500", "2.000", "10.500", "11.000", "13.000"],
    );
    check(
        &["--lcore", "0,1-2", "--tpoint", "*_NEW"],
        &["0.000", "0.500", "11.000"],
    );
    check(&["--lcore", "1"], &[]);
}

#[test]
fn tracepoints_are_globs() {
    check(
        &["--tpoint", "TCP_*"],
        &["0.000", "0.500", "1.000", "2.000", "5.000", "10.500"],
    );
    check(
        &["--tpoint", "RDMA_REQ_NEW,BDEV_IO_*"],
        &["1.500", "4.500", "11.000"],
    );
    check(
        &["--tpoint", "?CP_REQ_NEW", "--tpoint", "RDMA_REQ_NEW"],
        &["0.000", "0.500", "11.000"],
    );
}

#[test]
fn a_tracepoint_that_does_not_exist_is_reported_with_the_nearest() {
    let small = Small::new();
    let done = dptrace()
        .args(small.args("trace", &["--tpoint", "TCP_REQ_NWE"]))
        .assert()
        .code(1);
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        messages.contains("TCP_REQ_NEW") && messages.contains("--list-tpoints"),
        "{messages}"
    );
}

/// Times and addresses stay the same in each reading of a trace, even while it is written.
#[test]
fn records_are_found_by_time_and_address() {
    check(
        &["--where", "tsc>=1001500", "--where", "tsc<=1002000"],
        &["1.500", "2.000"],
    );
    // An address matches the object's records, and those that point to it.
    check(
        &["--object", "0xa0"],
        &["0.000", "1.000", "1.500", "4.500", "5.000"],
    );
    check(
        &["--object", "0xb0,r1"],
        &["0.500", "1.500", "2.000", "4.500", "10.500"],
    );
    for wrong in ["0x", "0xg", "0x10000000000000000"] {
        dptrace()
            .args(Small::new().args("trace", &["--object", wrong]))
            .assert()
            .code(2);
    }
}

/// Fields can be named by their usual synonyms.
#[test]
fn fields_have_other_names() {
    for name in ["qpair", "connection", "conn", "queue"] {
        check(&["--where", &format!("{name}=*cnode2*")], &R1);
    }
    for name in [
        "qid",
        "qpair.qid",
        "connection.qid",
        "queue.qid",
        "owner.qid",
    ] {
        check(&["--where", &format!("{name}=2")], &R1);
    }
    let messages = |field: &str| {
        let done = dptrace()
            .args(Small::new().args("latency", &["--by", field]))
            .assert()
            .code(2);
        String::from_utf8_lossy(&done.get_output().stderr).into_owned()
    };
    assert!(
        messages("connections")
            .contains("there is no field \"connections\"; did you mean connection")
    );
    assert!(messages("zzzz").contains("; the fields are lcore, tpoint, "));
    check(
        &[
            "--where",
            "subnqn=*cnode1",
            "--where",
            "cpu=0",
            "--where",
            "tracepoint=TCP_*",
        ],
        &R0,
    );
}

/// A condition that can't hold is no error, but gets a note.
#[test]
fn a_property_that_no_record_can_have_is_reported_with_what_there_is() {
    let messages = |small: &Small, args: &[&str]| {
        let done = dptrace().args(small.args("trace", args)).assert().success();
        String::from_utf8_lossy(&done.get_output().stderr).into_owned()
    };
    let small = Small::new();
    let said = messages(&small, &["--where", "qpair.hostnqn=*rack*"]);
    assert!(
        said.contains("there is no recording (-b) that names a qpair"),
        "{said}"
    );
    assert!(
        said.contains("no record has qpair.hostnqn; its owners have owner.subnqn, owner.peer"),
        "{said}"
    );
    let said = messages(&small, &["--where", "ctrlr.hostnqn=*rack*"]);
    assert!(
        said.contains("no tracepoint of this trace has an argument that points to a ctrlr"),
        "{said}"
    );
    let recording = small.path("t.recording");
    let said = messages(
        &small,
        &[
            "--where",
            "qpair.hostnqn=*rack*",
            "-b",
            &recording.to_string_lossy(),
        ],
    );
    assert!(!said.contains("no record has"), "{said}");
}

#[test]
fn owners_are_known_by_description_and_by_number() {
    check(&["--owner", "*cnode1*"], &R0);
    check(&["--owner", "t257"], &R1);
    check(&["--owner", "10.0.0.2:*"], &R1);
    check(&["--owner", "cnode1"], &[]);
}

#[test]
fn objects_come_with_what_is_related_to_them() {
    check(
        &["--object", "r0"],
        &["0.000", "1.000", "1.500", "4.500", "5.000"],
    );
    check(&["--object", "i0"], &["1.500", "4.500"]);
    check(
        &["--object", "r1,r2"],
        &["0.500", "2.000", "10.500", "11.000", "13.000"],
    );
    check(&["--object", "r9"], &[]);
}

#[test]
fn times_read_off_the_listing_are_inclusive() {
    check(&["--since", "10.500"], &["10.500", "11.000", "13.000"]);
    check(&["--until", "0.500"], &["0.000", "0.500"]);
    check(
        &["--since", "1.000", "--until", "2.000"],
        &["1.000", "1.500", "2.000"],
    );
    check(&["--since", "1.001", "--until", "1.999"], &["1.500"]);
    check(&["--since", "13.001"], &[]);
}

#[test]
fn times_may_have_a_unit() {
    check(
        &["--since", "1000ns", "--until", "2us"],
        &["1.000", "1.500", "2.000"],
    );
    check(&["--since", "1s"], &[]);
    let small = Small::new();
    let list = |condition| printed(small.args("trace", &["--where", condition]));
    assert_eq!(list("time>=1us"), list("time>=1"));
    assert_ne!(list("time>=1us"), list("time>=0"));
}

/// At a rate where no record falls on a whole nanosecond, every listed time still finds its record.
#[test]
fn times_of_any_rate_find_their_record() {
    let generated = testkit::Workload {
        requests: 40,
        ..testkit::Workload::new(testkit::Era::F)
    }
    .generate();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("t");
    generated.file.write_to(&path).expect("written");
    let path = path.to_string_lossy();
    let all = printed(["trace", "-i", &path]);
    for time in times(&all).into_iter().step_by(41) {
        let one = printed(["trace", "-i", &path, "--since", time, "--until", time]);
        let expected: Vec<_> = all
            .lines()
            .filter(|line| line[4..20].trim() == time)
            .collect();
        assert_eq!(one.lines().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn conditions_on_the_fields_of_a_record() {
    check(&["--where", "lcore=2", "--where", "tpoint=TCP_*"], &R1);
    check(
        &[
            "--where",
            "lcore>=1",
            "--where",
            "lcore<3",
            "--where",
            "tpoint!=TCP_*",
        ],
        &RDMA,
    );
    check(&["--where", "tpoint=*_EXECUTING"], &["1.000", "2.000"]);
    check(&["--where", "size>512"], &["1.000"]);
    check(&["--where", "size>=512"], &["1.000", "2.000"]);
    check(&["--where", "size<=8", "--where", "size>0"], &["1.500"]);
    check(&["--where", "size=0x200"], &[]);
    check(&["--where", "size<0x200", "--where", "size!=0"], &["1.500"]);
    check(&["--where", "object=i0"], &["1.500", "4.500"]);
    check(&["--where", "related=r0"], &["1.500", "4.500"]);
    check(&["--where", "poller=t256"], &R0);
    check(&["--where", "owner=*cnode2*"], &R1);
    check(&["--where", " time > 4 "], &["5.000", "10.500"]);
    check(
        &["--where", "time<=0"],
        &["0.000", "0.500", "1.500", "11.000"],
    );
}

#[test]
fn conditions_on_arguments() {
    check(&["--where", "arg.qd=1"], &["0.000", "10.500"]);
    check(&["--where", "arg.qd>=1"], &["0.000", "0.500", "10.500"]);
    check(&["--where", "arg.name=Nvme0*"], &["1.500"]);
    check(&["--where", "arg.qpair=0xc0"], &RDMA);
    check(&["--where", "arg.qpair>=0xc0"], &RDMA);
    check(&["--where", "arg.nothing=*"], &[]);
}

/// A record without such a field passes `!=`, and nothing else.
#[test]
fn conditions_on_fields_that_a_record_does_not_have() {
    let others = ["1.500", "4.500", "11.000", "13.000"];
    check(&["--where", "owner!=*"], &others);
    check(
        &["--where", "owner.subnqn!=*", "--where", "arg.name!=*"],
        &["4.500", "11.000", "13.000"],
    );
    check(&["--where", "arg.name>0"], &[]);
}

#[test]
fn conditions_on_what_an_owner_is() {
    check(&["--where", "owner.subnqn=*cnode1"], &R0);
    check(&["--where", "owner.qid>1"], &R1);
    check(
        &[
            "--where",
            "owner.peer=10.0.0.2:2000",
            "--where",
            "owner.listener=*:4420",
        ],
        &R1,
    );
    check(&["--where", "owner.description=*qid:1"], &R0);
}

#[test]
fn conditions_on_what_a_recorded_object_is() {
    check(&["-b", "@t.recording", "--where", "qpair.qid=5"], &RDMA);
    check(
        &[
            "-b",
            "@t.recording",
            "--where",
            "qpair.hostnqn=nqn.2014-08.com.example:rack=7,slot=2",
        ],
        &RDMA,
    );
    check(
        &[
            "-b",
            "@t.recording",
            "--where",
            "qpair.ptr=0xc0",
            "--where",
            "qpair.thread<4",
        ],
        &RDMA,
    );
    check(&["--where", "qpair.qid=5"], &[]);
}

#[test]
fn head_and_tail_count_what_passes() {
    check(&["--head", "2"], &["0.000", "0.500"]);
    check(&["--tail", "2"], &RDMA);
    check(&["--owner", "*cnode1*", "--head", "2"], &["0.000", "1.000"]);
    check(&["--owner", "*cnode1*", "--tail", "2"], &["1.000", "5.000"]);
    check(&["--head", "0"], &[]);
    check(&["--tail", "0"], &[]);
    check(
        &["--tail", "100", "--lcore", "0"],
        &["0.000", "1.000", "1.500", "4.500", "5.000"],
    );
}

/// Records older than the first of the latest-starting lcore are left out only if a ring wrapped,
/// and object numbers still count them.
#[test]
fn common_leaves_out_what_not_all_lcores_have() {
    check(&["--common", "--head", "1"], &["0.000"]);
    let mut trace = crate::common::small::declared().slots(4);
    for n in 0..8 {
        trace.record(
            0,
            testkit::Record::new(320, crate::common::small::START + n * 1_000)
                .object(0x10 + n)
                .int(n),
        );
    }
    trace.record(
        2,
        testkit::Record::new(320, crate::common::small::START)
            .object(1)
            .int(0),
    );
    let small = Small::from_trace(&trace);
    let all = printed(small.args("trace", &[]));
    assert_eq!(times(&all), ["0.000", "4.000", "5.000", "6.000", "7.000"]);
    let common = printed(small.args("trace", &["--common"]));
    assert_eq!(times(&common), ["0.000", "1.000", "2.000", "3.000"]);
    assert!(
        common
            .lines()
            .next()
            .is_some_and(|line| line.contains("id: r1 ")),
        "{common}"
    );
}
