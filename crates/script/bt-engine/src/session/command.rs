//! The command of a target.

use std::process::Child;

/// A command that runs. What we started ends with us: it may have our standard output, and whoever reads that waits for its
/// end.
pub(super) struct Command(pub(super) Child);

impl Command {
    /// Whether it has ended, as its status shows.
    pub(super) fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // What can't be ended goes on, as it would anyway.
            let _ = sys::process::terminate(&self.0);
        }
    }
}
