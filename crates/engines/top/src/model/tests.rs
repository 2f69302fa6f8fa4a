//! Tests of the model with artificial samples.

use super::*;
use crate::sample::{Connection, Identity, Traffic};

fn sample(number: u64, iops: &[f64]) -> Sample {
    let connection = |(index, iops): (usize, &f64)| {
        let identity = Identity {
            subnqn: format!("nqn.2016-06.io.spdk:cnode{index}"),
            ..Identity::default()
        };
        Connection {
            identity: identity.into(),
            iops: *iops,
            ..Connection::default()
        }
    };
    let connections = iops.iter().enumerate().map(connection).collect();
    Sample {
        number,
        traffic: Some(Traffic {
            connections,
            ..Traffic::default()
        }),
        ..Sample::default()
    }
}

fn model(iops: &[f64]) -> Model {
    let mut model = Model::new("demo [1]", [None, None]);
    model.push(sample(1, iops));
    model
}

fn names(model: &Model) -> Vec<String> {
    let name = |row: &Row<'_>| match &row.cells()[0] {
        crate::table::Cell::Text(text) => text.clone(),
        _ => String::new(),
    };
    model.table().rows.iter().map(name).collect()
}

fn keys(model: &mut Model, text: &str) -> Vec<Effect> {
    text.chars()
        .map(|c| model.key(if c == '\n' { Key::Enter } else { Key::Char(c) }))
        .collect()
}

#[test]
fn the_order_is_chosen_and_turned_round() {
    let mut model = model(&[1.0, 3.0, 2.0]);
    // From P99 to IOPS.
    keys(&mut model, "<<<<");
    assert_eq!(names(&model), ["cnode1", "cnode2", "cnode0"]);
    keys(&mut model, "I");
    assert_eq!(names(&model), ["cnode0", "cnode2", "cnode1"]);
    for _ in 0..40 {
        keys(&mut model, ">");
        assert_eq!(names(&model).len(), 3);
    }
}

#[test]
fn the_selected_line_stays_selected_where_lines_move() {
    let mut model = model(&[1.0, 3.0, 2.0]);
    keys(&mut model, "<<<<j");
    assert_eq!(model.selected(&model.table().rows), 1, "cnode2");
    model.push(sample(2, &[9.0, 3.0, 8.0]));
    assert_eq!(names(&model), ["cnode0", "cnode2", "cnode1"]);
    assert_eq!(model.selected(&model.table().rows), 1);
    model.push(sample(3, &[9.0, 3.0, 1.0]));
    assert_eq!(model.selected(&model.table().rows), 2);
    for key in [Key::End, Key::PageUp, Key::PageDown, Key::Home, Key::Up] {
        model.key(key);
    }
    assert_eq!(model.selected(&model.table().rows), 0);
}

#[test]
fn details_are_of_one_line_while_lines_move() {
    let mut model = model(&[1.0, 3.0, 2.0]);
    keys(&mut model, "<<<<\n");
    let chosen = model.selected_id();
    model.push(sample(2, &[9.0, 3.0, 8.0]));
    assert!(
        chosen.is_some() && model.selected_id() == chosen,
        "cnode1, which is the last one now"
    );
}

#[test]
fn a_filter_is_typed_kept_and_taken_back() {
    let mut model = model(&[1.0, 3.0, 2.0]);
    keys(&mut model, "/cnode2");
    assert_eq!(
        (names(&model), model.filter.as_str()),
        (vec!["cnode2".to_owned()], "cnode2")
    );
    keys(&mut model, "q");
    assert!(names(&model).is_empty(), "a letter of the filter");
    model.key(Key::Backspace);
    keys(&mut model, "\n");
    assert_eq!(names(&model).len(), 1);
    keys(&mut model, "/x");
    model.key(Key::Escape);
    assert_eq!(model.filter, "cnode2");
    model.key(Key::Escape);
    assert_eq!(names(&model).len(), 3);
}

#[test]
fn a_standstill_keeps_what_is_shown() {
    let mut model = model(&[1.0]);
    keys(&mut model, " ");
    model.push(sample(2, &[1.0, 2.0]));
    assert!(model.is_frozen() && names(&model).len() == 1);
    keys(&mut model, " ");
    assert_eq!((model.is_frozen(), names(&model).len()), (false, 2));
}

#[test]
fn tabs_turn_and_keys_end() {
    let mut model = model(&[1.0]);
    for tab in [
        Tab::Threads,
        Tab::Stages,
        Tab::Cpus,
        Tab::Pollers,
        Tab::Connections,
    ] {
        model.key(Key::Tab);
        assert_eq!(model.tab(), tab);
    }
    model.key(Key::BackTab);
    assert_eq!(model.tab(), Tab::Pollers);
    assert_eq!(
        keys(&mut model, "?q"),
        [Effect::None, Effect::None],
        "q leaves the help first"
    );
    assert_eq!(
        keys(&mut model, "\nq"),
        [Effect::None, Effect::None],
        "and the details"
    );
    assert_eq!(
        keys(&mut model, "w/w\nq"),
        [
            Effect::Write,
            Effect::None,
            Effect::None,
            Effect::None,
            Effect::Quit
        ]
    );
    assert_eq!(model.key(Key::Ctrl('c')), Effect::Quit);
}

#[test]
fn after_the_end_any_key_that_means_nothing_ends() {
    let mut model = model(&[1.0]);
    assert_eq!(model.key(Key::Escape), Effect::None);
    assert_eq!(keys(&mut model, "x"), [Effect::None]);
    model.end();
    assert_eq!(keys(&mut model, "2x"), [Effect::None, Effect::Quit]);
    assert_eq!(model.key(Key::Escape), Effect::Quit);
}

#[test]
fn no_key_does_harm() {
    let mut empty = Model::new("demo [1]", [Some("no trace".to_owned()), None]);
    assert_eq!(empty.tab(), Tab::Threads);
    let moves = [
        Key::Up,
        Key::Down,
        Key::PageDown,
        Key::End,
        Key::Home,
        Key::Left,
        Key::Enter,
        Key::F(7),
    ];
    for (c, key) in (' '..='~').cycle().take(2000).zip(moves.iter().cycle()) {
        empty.key(*key);
        if c != 'q' {
            empty.key(Key::Char(c));
        }
    }
}
