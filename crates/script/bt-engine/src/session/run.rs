//! A whole session in one call.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use super::{Events, Session, SessionResult};
use crate::Error;
use crate::event::Event;

/// Longest wait for events, and so the largest delay until the caller's condition is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Session {
    /// Runs the session until the script is over: attaches its probes, hands its events to
    /// `on_event`, and finishes it. The script is over when it calls `exit()`, when the processes
    /// of the target have ended, or when nothing more can come.
    ///
    /// The events in the result are empty: `on_event` had them all.
    pub fn run(self, on_event: impl FnMut(Event)) -> Result<SessionResult, Error> {
        self.run_until(|| false, on_event)
    }

    /// Runs the session as [`run`](Self::run) does, but at most until `stop` returns true: a flag
    /// that a signal sets, a number of events, a moment. It is asked before each wait for events,
    /// every 50 milliseconds or more often. The events until then, and those of `end` probes, are
    /// still handed out.
    pub fn run_until(
        mut self,
        mut stop: impl FnMut() -> bool,
        mut on_event: impl FnMut(Event),
    ) -> Result<SessionResult, Error> {
        self.attach()?;
        while !self.is_over() && !stop() {
            self.poll(POLL_INTERVAL)?.for_each(&mut on_event);
        }
        let mut result = self.finish()?;
        result.events.drain(..).for_each(on_event);
        Ok(result)
    }
}

impl Debug for Session {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("is_over", &self.is_over())
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}

impl Debug for Events<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
