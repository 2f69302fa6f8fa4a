//! The command of a target.

use std::process::Child;

/// A running command. It ends with us: it may have our standard output, and a reader of that waits
/// for its end.
pub(super) struct Command(pub(super) Child);

impl Command {
    /// Returns true if it has ended, by its status.
    pub(super) fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // A command that can't be ended goes on, as it would anyway.
            let _ = sys::process::terminate(&self.0);
        }
    }
}
