//! The terminal as seen by engines: it prints their notes and progress on standard error, and
//! passes them the user's signals.

use observer::{Observe, Observer};

use crate::output::Output;
use crate::{interrupt, messages, status_line};

/// This process's standard error and signals.
struct Terminal {
    shows_progress: bool,
}

/// Returns the observer for work that prints only at its end.
pub fn observer() -> Observer {
    Observer::new(Terminal {
        shows_progress: status_line::is_wanted(),
    })
}

/// Returns the observer for work that writes its output as it goes. If that goes to a terminal, or
/// to a program that may share the terminal, no progress is shown.
pub fn observer_beside(output: &Output) -> Observer {
    Observer::new(Terminal {
        shows_progress: output.is_file() && status_line::is_wanted(),
    })
}

impl Observe for Terminal {
    fn note(&self, text: &str) {
        messages::note(text);
    }

    fn explain(&self, error: &anyhow::Error) -> String {
        messages::explained(error)
    }

    fn step(&self) {
        interrupt::step();
    }

    fn handle_stop_requests(&self) -> anyhow::Result<()> {
        interrupt::Interrupt::catch().map(|_| ())
    }

    fn is_stop_requested(&self) -> bool {
        interrupt::is_requested()
    }

    fn is_end_coming(&self) -> bool {
        interrupt::is_signalled()
    }

    fn shows_progress(&self) -> bool {
        self.shows_progress
    }

    fn show(&self, line: &str) {
        interrupt::erase_at_signal();
        status_line::draw(line);
    }

    fn clear(&self) {
        status_line::erase();
    }
}
