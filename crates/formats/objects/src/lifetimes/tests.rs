//! Tests of the lifetimes of objects in recordings.

use super::*;
use crate::spec::built_in;

fn lifetimes(text: &str) -> Lifetimes {
    let specs = built_in().unwrap();
    Lifetimes::new(&specs, &Recording::parse(text, |_| true))
}

fn text_at(lifetimes: &Lifetimes, pointer: u64, tsc: u64) -> Option<&str> {
    lifetimes
        .at(0, Key::Int(pointer), Ticks(tsc))
        .map(|object| &*object.text)
}

const ADD: &str = "nvmf_poll_group_add_qpair";
const REMOVE: &str = "nvmf_poll_group_remove_qpair";
const CONNECT: &str = "nvmf_ctrlr_add_qpair";

#[test]
fn a_reused_pointer_is_whoever_lived_then() {
    let text = format!(
        "{ADD}: tsc=0x10, qpair=0xa, thread=0x1\n\
             {CONNECT}: tsc=0x12, qpair=0xa, qid=0x0, subnqn='one', hostnqn='h'\n\
             {REMOVE}: tsc=0x20, qpair=0xa, thread=0x1\n\
             {ADD}: tsc=0x30, qpair=0xa, thread=0x2\n"
    );
    let all = lifetimes(&text);
    assert_eq!(text_at(&all, 0xa, 0x0f), None);
    let first = "qpair(ptr=0xa, thread=1, qid=0, subnqn=one, hostnqn=h)";
    assert_eq!(
        text_at(&all, 0xa, 0x10),
        Some(first),
        "known as a whole from its first tick on"
    );
    assert_eq!(
        text_at(&all, 0xa, 0x20),
        Some(first),
        "the last tick belongs to it"
    );
    assert_eq!(text_at(&all, 0xa, 0x21), None);
    assert_eq!(
        text_at(&all, 0xa, u64::MAX),
        Some("qpair(ptr=0xa, thread=2)")
    );
    assert_eq!(text_at(&all, 0xb, 0x10), None);
}

#[test]
fn an_end_that_was_lost_is_the_next_beginning() {
    let all = lifetimes(&format!(
        "{ADD}: tsc=0x1, qpair=0xa, thread=0x1\n{ADD}: tsc=0x9, qpair=0xa, thread=0x2\n"
    ));
    assert_eq!(text_at(&all, 0xa, 0x8), Some("qpair(ptr=0xa, thread=1)"));
    assert_eq!(text_at(&all, 0xa, 0x9), Some("qpair(ptr=0xa, thread=2)"));
}

/// Looks up by the name of the spec; the first one counts.
fn named<'a>(lifetimes: &'a Lifetimes, spec: &str, key: Key<'_>, tsc: u64) -> Option<&'a str> {
    let number = built_in()
        .unwrap()
        .iter()
        .position(|s| s.name == spec)
        .unwrap();
    lifetimes
        .at(number, key, Ticks(tsc))
        .map(|object| &*object.text)
}

#[test]
fn a_key_can_be_a_string() {
    let all = lifetimes(
        "nvmf_subsystem_create: tsc=0x10, subnqn='nqn.a:rack=7, 'x''\n\
             nvmf_subsystem_create: tsc=0x12, subnqn='nqn.b'\n\
             nvmf_subsystem_destroy: tsc=0x20, subnqn='nqn.a:rack=7, 'x''\n",
    );
    let at = |key, tsc| named(&all, "subsystem", Key::Str(key), tsc);
    assert_eq!(
        at("nqn.a:rack=7, 'x'", 0x20),
        Some("subsystem(subnqn=nqn.a:rack=7, 'x')")
    );
    assert_eq!(at("nqn.a:rack=7, 'x'", 0x21), None);
    assert_eq!(at("nqn.b", u64::MAX), Some("subsystem(subnqn=nqn.b)"));
    assert_eq!(named(&all, "subsystem", Key::Int(0x10), 0x11), None);
}

#[test]
fn a_seen_object_lives_from_then_on() {
    let all = lifetimes(
        "bdev_nvme_create_qpair: tsc=0x10, name='Nvme0', qid=0x1, thread=0x1\n\
             bdev_nvme_ctrlr_reset: tsc=0x12, name='Nvme0'\n\
             bdev_nvme_ctrlr_delete: tsc=0x20, name='Nvme0'\n\
             bdev_nvme_ctrlr_reset: tsc=0x30, name='Nvme0'\n",
    );
    let spans: Vec<_> = all
        .all()
        .iter()
        .map(|life| (life.begin.0, life.end.0))
        .collect();
    assert_eq!(spans, [(0x10, 0x20), (0x30, u64::MAX)]);
    assert_eq!(
        (&*all.all()[0].text, all.orphans),
        ("bdev_nvme_ctrlr(name=Nvme0)", 0)
    );
    let hits = format!(
        "nvmf_create_poll_group: tsc=0x1, thread=0x4\n{ADD}: tsc=0x2, qpair=0xa, thread=0x4\n"
    );
    let threads = lifetimes(&hits);
    assert_eq!(
        named(&threads, "thread", Key::Int(4), u64::MAX),
        Some("thread(id=4)"),
        "no probe ends it"
    );
    assert_eq!(
        named(&threads, "poll_group", Key::Int(4), 1),
        Some("poll_group(thread=4)")
    );
}

/// From SPDK v23.05 on, some probes have 0 instead of their ticks.
#[test]
fn a_hit_without_a_time_is_where_its_line_is() {
    let all = lifetimes(
        "nvmf_subsystem_create: tsc=0x0, subnqn='s'\n\
             nvmf_ctrlr_create: tsc=0x10, ctrlr=0xc, subnqn='s', thread=0x1\n\
             nvmf_subsystem_add_ctrlr: tsc=0x0, subnqn='s', ctrlr=0xc, hostnqn='h'\n\
             nvmf_ctrlr_destruct: tsc=0x20, ctrlr=0xc\n\
             nvmf_subsystem_destroy: tsc=0x0, subnqn='s'\n",
    );
    assert_eq!(
        named(&all, "ctrlr", Key::Int(0xc), 0x10),
        Some("ctrlr(ptr=0xc, thread=1, subnqn=s, hostnqn=h)")
    );
    assert_eq!(
        named(&all, "subsystem", Key::Str("s"), 0),
        Some("subsystem(subnqn=s)")
    );
    assert_eq!(named(&all, "subsystem", Key::Str("s"), 0x21), None);
    assert_eq!(all.orphans, 0);
}

/// A recording is read whole, in any order, or line by line.
#[test]
fn lines_are_learnt_as_they_come() {
    let lines = [
        format!("{ADD}: tsc=0x10, qpair=0xa, thread=0x1"),
        format!("{CONNECT}: tsc=0x12, qpair=0xa, qid=0x0, subnqn='one', hostnqn='h'"),
        "nvmf_subsystem_create: tsc=0x0, subnqn='s'".to_owned(),
        format!("{REMOVE}: tsc=0x20, qpair=0xa, thread=0x1"),
        format!("{ADD}: tsc=0x30, qpair=0xa, thread=0x2"),
        format!("{REMOVE}: tsc=0x31, qpair=0xb, thread=0x2"),
    ];
    let specs = built_in().unwrap();
    let whole = lifetimes(&lines.join("\n"));
    assert_eq!(
        (whole.all().len(), whole.orphans),
        (5, 1),
        "two threads and a subsystem among them"
    );
    let (read, broken) = Lifetimes::read(&specs, &lines.join("\n"));
    assert_eq!(
        (read.all(), read.orphans, broken),
        (whole.all(), whole.orphans, Vec::new())
    );
    let mut other_way = lines.clone();
    other_way.swap(3, 5);
    let (read, _) = Lifetimes::read(&specs, &other_way.join("\n"));
    assert_eq!((read.all(), read.orphans), (whole.all(), whole.orphans));
    let mut learnt = Lifetimes::default();
    for line in &lines {
        learnt.learn(&specs, line);
    }
    assert_eq!((learnt.all(), learnt.orphans), (whole.all(), whole.orphans));

    learnt.forget(Ticks(0x20));
    assert_eq!(learnt.all(), whole.all(), "its last tick belongs to it");
    learnt.forget(Ticks(0x21));
    assert_eq!(
        (text_at(&learnt, 0xa, 0x10), learnt.all().len()),
        (None, whole.all().len() - 1)
    );
    assert_eq!(
        text_at(&learnt, 0xa, 0x30),
        Some("qpair(ptr=0xa, thread=2)")
    );
    learnt.learn(
        &specs,
        &format!("{REMOVE}: tsc=0x40, qpair=0xa, thread=0x2"),
    );
    assert_eq!(text_at(&learnt, 0xa, 0x41), None);
}

#[test]
fn an_object_without_a_beginning_is_not_made_up() {
    let all = lifetimes(&format!("{REMOVE}: tsc=0x1, qpair=0xa, thread=0x1\n"));
    assert_eq!((all.all().len(), all.orphans), (0, 1));
}
