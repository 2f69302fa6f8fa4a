//! The line from long work back to whoever runs it: notes, steps, how far it is, and whether to stop.
//!
//! An engine gets an [`Observer`] and calls it; it prints nothing itself and knows no signal. A program implements [`Observe`]
//! once, for its terminal; a test uses [`Observer::silent`].
#![forbid(unsafe_code)]

mod progress;

use std::sync::Arc;

pub use progress::{Progress, READING, Reading, percent};

/// The side of the program that runs an engine. All methods may be called from any thread, and none may wait for long.
pub trait Observe: Send + Sync {
    /// Reports something that does not stop the work: one sentence without a full stop.
    fn note(&self, text: &str);

    /// Formats an error with its causes, and with what a user can do about it.
    fn explain(&self, error: &anyhow::Error) -> String {
        format!("{error:#}")
    }

    /// Learns that the work moves: it calls this between pieces of some milliseconds.
    fn step(&self) {}

    /// Learns that the work looks for stop requests from now on. Before that, a signal may end the process at once.
    fn handle_stop_requests(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns true if the work should end at its next step. Whoever asks has seen the request.
    fn is_stop_requested(&self) -> bool {
        false
    }

    /// Returns true if the user has asked for the end, for threads that do not end the work themselves.
    fn is_end_coming(&self) -> bool {
        false
    }

    /// Returns true if [`Observe::show`] has a place for its line.
    fn shows_progress(&self) -> bool {
        false
    }

    /// Shows in one line how far the work is, in place of the line before.
    fn show(&self, _line: &str) {}

    /// Removes the line.
    fn clear(&self) {}
}

/// A shared handle to an [`Observe`], which clones are for threads of the work.
#[derive(Clone)]
pub struct Observer(Arc<dyn Observe>);

impl Observer {
    /// Wraps the program's side.
    pub fn new(observe: impl Observe + 'static) -> Self {
        Self(Arc::new(observe))
    }

    /// Returns an observer that ignores everything, for tests and for work that nobody watches.
    pub fn silent() -> Self {
        struct NullObserver;
        impl Observe for NullObserver {
            fn note(&self, _text: &str) {}
        }
        Self::new(NullObserver)
    }

    /// Reports something that does not stop the work.
    pub fn note(&self, text: &str) {
        self.0.note(text);
    }

    /// Reports the error for which something is left out.
    pub fn note_left_out(&self, error: impl Into<anyhow::Error>) {
        self.note(&format!("left out: {:#}", error.into()));
    }

    /// Formats an error with its causes, and with what a user can do about it.
    pub fn explain(&self, error: &anyhow::Error) -> String {
        self.0.explain(error)
    }

    /// Reports that the work moves.
    pub fn step(&self) {
        self.0.step();
    }

    /// Has stop requests wait for [`Observer::is_stop_requested`] from now on, once a process.
    ///
    /// # Errors
    /// If signals cannot be caught.
    pub fn handle_stop_requests(&self) -> anyhow::Result<()> {
        self.0.handle_stop_requests()
    }

    /// Returns true if the work should end now.
    pub fn is_stop_requested(&self) -> bool {
        self.0.is_stop_requested()
    }

    /// Returns true if the user has asked for the end, for threads that do not end the work themselves.
    pub fn is_end_coming(&self) -> bool {
        self.0.is_end_coming()
    }
}
