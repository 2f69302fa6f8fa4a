//! The interface as another crate sees it. Needs no kernel.

use std::error::Error as _;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use bt_engine::{
    Builder, Diagnostics, Error, Event, Notice, Observer, Script, SessionResult, Table, Target,
    Value,
};

/// Requires at compile time that values of a type can be sent to threads, kept and printed.
fn can_be_passed_on<T: Send + Sync + Debug + 'static>() {}

#[test]
fn options_and_results_can_go_to_other_threads() {
    can_be_passed_on::<Builder>();
    can_be_passed_on::<Target>();
    can_be_passed_on::<Event>();
    can_be_passed_on::<Table>();
    can_be_passed_on::<Value>();
    can_be_passed_on::<SessionResult>();
    can_be_passed_on::<Notice>();
    can_be_passed_on::<Diagnostics>();
    can_be_passed_on::<Error>();
    // With `?` in a function that returns anybody's error.
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(Error::NeedsProcess);
    assert!(boxed.source().is_none());
}

#[test]
fn an_error_has_its_cause() {
    // No program can have such an argument.
    let not_started = Script::builder("begin { exit(); }")
        .target(Target::command("true", ["a\0b"]))
        .compile()
        .unwrap_err();
    assert!(
        not_started.to_string().starts_with("starting "),
        "{not_started}"
    );
    assert!(not_started.source().is_some(), "{not_started:?}");
    let mistake = Script::builder("begin { print($x); }").compile();
    assert!(matches!(mistake, Err(Error::Script(_))), "{mistake:?}");
}

/// Observer that keeps what it is told.
#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl Observer for Notices {
    fn notice(&self, notice: &Notice) {
        self.0.lock().unwrap().push(notice.to_string());
    }
}

#[test]
fn a_builder_is_a_value() {
    let notices = Arc::new(Notices::default());
    let builder = Script::builder("begin { printf(\"%d\", $1); }")
        .name("mine.bt")
        .params(["7"])
        .setting("max_strlen", "32")
        .observer(notices.clone());
    // It can be used for several targets, and on another thread.
    let other = std::thread::spawn({
        let builder = builder.clone();
        move || builder.parse().map(|parsed| parsed.warnings().len())
    });
    assert_eq!(other.join().unwrap().unwrap(), 0);
    let shown = format!("{builder:?}");
    assert!(
        shown.contains("mine.bt") && shown.contains("max_strlen"),
        "{shown}"
    );
    let script = builder.compile().unwrap();
    assert_eq!(script.warnings().len(), 0);
    assert_eq!(notices.0.lock().unwrap().len(), 0);
}
