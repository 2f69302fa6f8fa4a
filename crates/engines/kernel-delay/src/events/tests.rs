//! Tests of the events kept and of their printed form.

use super::*;
use crate::layout::{KernelStack, StackEvent};
use crate::stacks::is_entry;
use screen::Screen;
use zerocopy::{FromZeros as _, IntoBytes as _};

struct Plain;

impl Symbols for Plain {
    fn kernel(&self, address: u64) -> Vec<String> {
        vec![format!("k{address}")]
    }
    fn user(&self, _: u32, address: u64, _: bool) -> Option<Vec<String>> {
        (address > 9).then(|| vec![format!("u{}", address % 100)])
    }
}

fn event(entry: u64, stack: u64) -> Vec<u8> {
    let mut event = StackEvent::new_zeroed();
    event.head = EventHead {
        entry,
        exit: entry + 5000,
        kernel_bytes: 8,
        user_bytes: -14,
        ..EventHead::default()
    };
    event.kernel[0] = stack;
    [event.as_bytes(), &[0; size_of::<KernelStack>()]].concat()
}

#[test]
fn kept_events_are_bounded_and_dropped_ones_are_counted() {
    let mut events = Events::new(Limits {
        events: 3,
        stacks: 1,
    });
    for (entry, stack) in [(30, 7), (10, 8), (20, 7), (40, 7)] {
        events.add(&event(entry, stack), None).unwrap();
    }
    let mut text = String::new();
    let taken: Result<(), ()> = events.text(
        &Plain,
        |_| true,
        EventList::Each,
        |piece| {
            text.push_str(piece);
            Ok(())
        },
    );
    taken.unwrap();
    let order: Vec<usize> = ["10 ", "20 ", "30 "]
        .map(|at| text.find(at).unwrap())
        .into();
    assert!(order.is_sorted(), "{text}");
    assert_eq!(
        (
            text.matches("k7").count(),
            text.matches("k8").count(),
            events.dropped()
        ),
        (2, 0, 1),
        "{text}"
    );
    assert!(
        text.contains("3 events have a stack that could not be read"),
        "{text}"
    );
    assert!(text.contains("1 event is not shown"), "{text}");
    events.add(&event(50, 7), None).unwrap();
    assert_eq!(events.dropped(), 2);
}

#[test]
fn equal_stacks_are_one_and_the_way_into_the_kernel_is_left_out() {
    let mut events = Events::new(Limits {
        events: 100,
        stacks: 10,
    });
    for (entry, stack) in [(30, 7), (10, 8), (20, 7)] {
        events.add(&event(entry, stack), None).unwrap();
    }
    let mut text = String::new();
    let folded = EventList::Folded(View::default());
    let taken: Result<(), ()> = events.text(
        &Plain,
        |_| true,
        folded,
        |piece| {
            text.push_str(piece);
            Ok(())
        },
    );
    taken.unwrap();
    let lines: Vec<&str> = text.lines().skip(5).collect();
    assert_eq!(
        lines[..4],
        [
            &format!(
                "           2   10.0 us   5.00 us  {}",
                call_name(slot_of(0))
            ),
            "          k7",
            &format!(
                "           1   5.00 us   5.00 us  {}",
                call_name(slot_of(0))
            ),
            "          k8"
        ]
    );
    let json = events.json(&Plain, |_| true);
    assert_eq!(json["stacks"][0]["count"], 2);
    assert!(is_entry("do_syscall_64+0x2e [kernel]") && !is_entry("do_sys_poll+0x2e [kernel]"));
}

/// The list stands in its place in the object, for any names.
#[test]
fn a_list_is_written_in_its_place() {
    for count in [0, 1, 3] {
        let mut events = Events::new(Limits {
            events: 100,
            stacks: 10,
        });
        (0..count).for_each(|entry| events.add(&event(entry, 7), None).unwrap());
        let object =
            json!({ "a": "\"events\":\"\u{1}\"", "of": events.json(&Plain, |_| true), "z": 1 })
                .to_string();
        let (before, after) = split_at_list(&object).unwrap();
        let mut text = before.to_owned();
        let taken: Result<(), ()> = events.json_list(
            &Plain,
            |_| true,
            |piece| {
                text.push_str(&piece);
                Ok(())
            },
        );
        taken.unwrap();
        let whole: Value = serde_json::from_str(&(text + after)).unwrap();
        assert_eq!(
            (
                whole["of"]["events"].as_array().unwrap().len() as u64,
                &whole["z"]
            ),
            (count, &1.into())
        );
    }
    assert_eq!(split_at_list("{}"), None);
}

/// Makes an event of a process whose stack the kernel walked by frame pointers.
fn user_event(tgid: u64, addresses: &[u64]) -> Vec<u8> {
    let mut event = StackEvent::new_zeroed();
    let user_bytes = size_of_val(addresses).cast_signed() as i64;
    event.head = EventHead {
        entry: 10,
        exit: 5010,
        tgid,
        kernel_bytes: 8,
        user_bytes,
        ..EventHead::default()
    };
    event.kernel[0] = 7;
    [event.as_bytes(), addresses.as_bytes()].concat()
}

/// Different addresses of two processes, and frames after the first that is not code, make no
/// difference.
#[test]
fn stacks_that_look_the_same_are_one() {
    let mut events = Events::new(Limits {
        events: 100,
        stacks: 10,
    });
    for (process, addresses) in [(1, [110, 5, 300]), (2, [210, 6, 300]), (2, [211, 212, 213])] {
        events.add(&user_event(process, &addresses), None).unwrap();
    }
    let mut text = String::new();
    let folded = EventList::Folded(View {
        screen: Screen::terminal(80, false),
        ..View::default()
    });
    let taken: Result<(), ()> = events.text(
        &Plain,
        |_| true,
        folded,
        |piece| {
            text.push_str(piece);
            Ok(())
        },
    );
    taken.unwrap();
    let lines: Vec<&str> = text.lines().skip(5).collect();
    assert_eq!(lines.len(), 9, "{text}");
    assert!(
        lines[0].starts_with("           2   10.0 us   5.00 us  "),
        "{text}"
    );
    assert_eq!(lines[1..3], ["          k7", "          u10"]);
    assert!(lines[3].starts_with("          [no code here: "), "{text}");
    assert_eq!(
        lines[5..],
        [
            "          k7",
            "          u11",
            "          u12",
            "          u13"
        ],
        "{text}"
    );
    let json = events.json(&Plain, |_| true);
    assert_eq!(json["stacks"].as_array().unwrap().len(), 3);
}

#[test]
fn a_length_is_proposed_that_leaves_few_events() {
    let mut events = Events::new(Limits {
        events: 5000,
        stacks: 1,
    });
    (0..3000).for_each(|entry| events.add(&event(entry, 7), None).unwrap());
    // Each took 5 us: for one second, 3,000 are too many.
    assert_eq!(events.proposed(1_000_000_000, 0), Some((10_000, 0)));
    // The same for 30,000, most of which are lost.
    assert_eq!(events.proposed(3_000_000_000, 27_000), Some((10_000, 0)));
    assert_eq!(events.proposed(3_000_000_000, 0), None);
}

/// It must never become an event of zeros.
#[test]
fn an_event_of_the_wrong_size_is_an_error() {
    let whole = event(10, 7);
    for (stacks, bytes) in [(1, &[][..]), (1, &whole[..100]), (0, &[]), (0, &whole)] {
        let error = Events::new(Limits { events: 1, stacks })
            .add(bytes, None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the ring events") && error.contains("internal error"),
            "{error}"
        );
    }
    let mut beyond = StackEvent::new_zeroed();
    for head in [
        EventHead {
            user_bytes: 8,
            ..beyond.head
        },
        EventHead {
            kernel_bytes: 1024,
            ..beyond.head
        },
    ] {
        beyond.head = head;
        let error = Events::new(Limits {
            events: 1,
            stacks: 1,
        })
        .add(beyond.as_bytes(), None);
        assert!(error.is_err(), "{head:?}");
    }
}
