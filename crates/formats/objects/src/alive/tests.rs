use spdk_trace::Ticks;

use crate::lifetimes::{Key, Lifetimes};
use crate::spec::{ObjectSpec, parse_specs};

const SPEC: &str = r#"
[[object]]
name = "qpair"
key = "qpair"
owner-id = "owner"
changing = ["state"]

[[object.probe]]
name = "add"
role = "begin"
args = ["tsc", "qpair", "thread"]

[[object.probe]]
name = "remove"
role = "end"
args = ["tsc", "qpair"]

[[object.record]]
begin = "QP_CREATE"
end = "QP_DESTROY"

[[object.alive]]
walk = ["$q : list(uaddr(\"g_q\"), struct q, link)"]
values = ["qpair = $q", "thread = $q->thread", "host: string = $q->host", "owner = $q->owner"]

[[object.property]]
name = "thread"

[[object.property]]
name = "host"
"#;

fn specs() -> Vec<ObjectSpec> {
    parse_specs(SPEC).unwrap()
}

fn lifetimes(text: &str) -> Lifetimes {
    let (lifetimes, broken) = Lifetimes::read(&specs(), text);
    assert_eq!(broken, []);
    lifetimes
}

/// Returns the host of the object at address 0xa at each of these times; `-` for none.
fn hosts(lifetimes: &Lifetimes, times: std::ops::RangeInclusive<u64>) -> String {
    let host = |tsc| {
        lifetimes
            .at(0, Key::Int(0xa), Ticks(tsc))
            .and_then(|life| life.value(1))
    };
    times
        .map(|tsc| host(tsc).unwrap_or("-").to_owned())
        .collect()
}

fn alive(tsc: u64, host: &str, watched: u64) -> String {
    format!(
        "alive_qpair: tsc={tsc:#x}, watched={watched:#x}, qpair=0xa, thread=0x1, host='{host}', owner=0x7\n"
    )
}

fn read(tsc: u64, watched: u64) -> String {
    format!("read_qpair: tsc={tsc:#x}, watched={watched:#x}, found=0x1\n")
}

/// Returns the hosts for a trace whose records between two times were observed, with changes of the
/// address at `changes`.
fn hosts_in(text: &str, (from, to): (u64, u64), changes: &[u64]) -> String {
    let known = lifetimes(text);
    known.witness.borrow_mut().extend(Ticks(from), Ticks(to));
    for tsc in changes {
        known
            .witness
            .borrow_mut()
            .change_for_test(0, 0xa, Ticks(*tsc));
    }
    hosts(&known, from..=to)
}

/// Tracepoints of beginnings and ends need not be enabled, and each lcore's ring may begin at
/// another time.
#[test]
fn a_name_holds_for_all_of_a_trace_unless_the_address_changed_hands() {
    let text = [alive(4, "x", 0), read(4, 0)].concat();
    for (changes, expected) in [
        (&[][..], "xxxxxxxxx"),
        (&[3], "--xxxxxxx"),
        (&[2, 3], "--xxxxxxx"),
        (&[7], "xxxxxx---"),
        (&[3, 7, 8], "--xxxx---"),
    ] {
        assert_eq!(hosts_in(&text, (1, 9), changes), expected, "{changes:?}");
    }
    // The trace continues, and was read up to 3: the time until the reading is unknown.
    assert_eq!(hosts_in(&text, (1, 3), &[]), "---");
    assert_eq!(
        hosts_in(&text, (5, 9), &[]),
        "-----",
        "nobody has seen what came between the reading and the trace"
    );
}

#[test]
fn two_objects_at_one_address_have_their_own_times() {
    let text = [
        alive(2, "x", 0),
        read(2, 0),
        read(3, 0),
        alive(8, "y", 0),
        read(8, 0),
    ]
    .concat();
    for (changes, expected) in [
        (&[][..], "xxx----yy"),
        (&[6], "xxxxxyyyy"),
        (&[5, 7], "xxxx--yyy"),
        (&[1, 5, 6, 7, 9], "xxxx--yy-"),
    ] {
        assert_eq!(hosts_in(&text, (1, 9), changes), expected, "{changes:?}");
    }
    let gone = [
        alive(2, "x", 0),
        read(2, 0),
        read(3, 0),
        "gone_qpair: tsc=0x7, qpair=0xa\n".to_owned(),
        read(7, 0),
    ];
    assert_eq!(hosts_in(&gone.concat(), (1, 9), &[]), "xxx------");
    assert_eq!(hosts_in(&gone.concat(), (1, 9), &[5]), "xxxx-----");
}

#[test]
fn without_a_trace_that_goes_on_a_name_holds_between_two_readings() {
    let text = [
        alive(3, "x", 0),
        read(3, 0),
        read(5, 0),
        alive(7, "y", 0),
        read(7, 0),
    ]
    .concat();
    // The object between the second and the third reading is unknown.
    assert_eq!(hosts(&lifetimes(&text), 1..=9), "--xxx-y--");
    let gone = [
        alive(3, "x", 0),
        read(3, 0),
        read(5, 0),
        "gone_qpair: tsc=0x7, qpair=0xa\n".to_owned(),
        read(7, 0),
    ];
    assert_eq!(hosts(&lifetimes(&gone.concat()), 1..=9), "--xxx----");
}

#[test]
fn a_changed_value_does_not_start_another_life() {
    let with_state =
        |tsc, state| alive(tsc, "x", 0).replace(", owner", &format!(", state={state:#x}, owner"));
    let text = [with_state(3, 1), read(3, 0), with_state(6, 2), read(6, 0)].concat();
    assert_eq!(hosts(&lifetimes(&text), 1..=7), "--xxxx-");
    let other = text.replace("state", "cntlid");
    assert_eq!(hosts(&lifetimes(&other), 1..=7), "--x--x-");
}

/// Observes a trace between these times in which no beginning or end was missed.
fn cover(known: &Lifetimes, from: u64, to: u64) {
    known.witness.borrow_mut().extend(Ticks(from), Ticks(to));
    known.witness.borrow_mut().cover(Ticks(from), Ticks(to));
}

#[test]
fn the_trace_itself_proves_more() {
    let text = [alive(4, "x", 0), read(4, 0), read(6, 0)].concat();
    let known = lifetimes(&text);
    cover(&known, 2, 8);
    assert_eq!(hosts(&known, 1..=9), "-xxxxxxx-");
    // Its first tick is that of its beginning; an end or another beginning ends it.
    for (changes, expected) in [
        (vec![3], "--xxxxxx-"),
        (vec![7], "-xxxxx---"),
        (vec![5], "-xxxxxxx-"),
        (vec![3, 8], "--xxxxx--"),
    ] {
        let known = lifetimes(&text);
        cover(&known, 2, 8);
        for tsc in &changes {
            known
                .witness
                .borrow_mut()
                .change_for_test(0, 0xa, Ticks(*tsc));
        }
        assert_eq!(hosts(&known, 1..=9), expected, "{changes:?}");
    }
}

/// Both readings found the same object, but the address was used by another between them.
#[test]
fn an_object_between_two_equal_readings_is_not_named() {
    let known = lifetimes(&[alive(2, "x", 0), read(2, 0), read(8, 0)].concat());
    cover(&known, 1, 9);
    for tsc in [4, 5, 6] {
        known
            .witness
            .borrow_mut()
            .change_for_test(0, 0xa, Ticks(tsc));
    }
    assert_eq!(hosts(&known, 1..=9), "xxx--xxxx");
    // A live trace was read up to 7: the time until the second reading is unknown.
    cover(&known, 1, 7);
    assert_eq!(hosts(&known, 1..=7), "xxx----");
}

#[test]
fn probes_see_ends_and_beginnings() {
    let add = |tsc: u64| format!("add: tsc={tsc:#x}, qpair=0xa, thread=0x2\n");
    let remove = |tsc: u64| format!("remove: tsc={tsc:#x}, qpair=0xa\n");
    let first = [alive(4, "x", 2), read(4, 2)].concat();
    assert_eq!(
        hosts(&lifetimes(&first), 1..=9),
        "-xxxxxxxx",
        "from the time on at which the probes were attached"
    );
    let ended = [first.clone(), remove(6)].concat();
    assert_eq!(hosts(&lifetimes(&ended), 1..=9), "-xxxxx---");
    let again = lifetimes(&[ended.clone(), add(8)].concat());
    let thread = |tsc| {
        again
            .at(0, Key::Int(0xa), Ticks(tsc))
            .and_then(|life| life.value(0))
    };
    assert_eq!(
        (hosts(&again, 1..=9).as_str(), thread(6), thread(8)),
        ("-xxxxx---", Some("1"), Some("2"))
    );
    // Read while it was being destroyed.
    let zombie = [ended.clone(), alive(7, "x", 2), read(7, 2)].concat();
    assert_eq!(hosts(&lifetimes(&zombie), 1..=9), "-xxxxx---");
    // From another recording, whose probes were attached later.
    let later = [ended, alive(8, "y", 7), read(8, 7)].concat();
    assert_eq!(hosts(&lifetimes(&later), 1..=9), "-xxxxxyyy");
    // The recording has ended: its end is no longer observed.
    assert_eq!(
        hosts(&lifetimes(&(first + &read(6, 0))), 1..=9),
        "-xxxxx---"
    );
}

#[test]
fn a_reading_completes_what_probes_have_seen() {
    let add = "add: tsc=0x2, qpair=0xa, thread=0x1\n";
    let known = lifetimes(&[add, &alive(4, "x", 1), &read(4, 1)].concat());
    assert_eq!(hosts(&known, 1..=5), "-xxxx");
    // Its end was lost: nothing is certain before the reading.
    let other = "add: tsc=0x2, qpair=0xa, thread=0x9\n";
    assert_eq!(
        hosts(
            &lifetimes(&[other, &alive(4, "y", 0), &read(4, 0)].concat()),
            3..=5
        ),
        "-y-"
    );
}

#[test]
fn an_owner_is_found_by_its_number() {
    let known = lifetimes(&[alive(4, "x", 0), read(4, 0), alive(8, "y", 0), read(8, 0)].concat());
    let host = |since| {
        known
            .by_owner_id(0, 7, Ticks(since))
            .and_then(|at| known.all()[at as usize].value(1))
    };
    assert_eq!(
        (host(8), host(5), host(9)),
        (Some("y"), Some("y"), None),
        "the last that had it, not a later one"
    );
    assert_eq!(known.by_owner_id(0, 8, Ticks(1)), None);
}
