//! Arguments for a run on the small trace.

use std::ffi::OsString;

use super::small::Small;

impl Small {
    /// Returns `COMMAND -i TRACE` and these arguments; a leading `@` of one stands for the
    /// directory.
    pub(crate) fn args(&self, command: &str, more: &[&str]) -> Vec<OsString> {
        let mut args: Vec<OsString> =
            vec![command.into(), "-i".into(), self.path("t.trace").into()];
        args.extend(more.iter().map(|arg| match arg.strip_prefix('@') {
            Some(name) => self.path(name).into(),
            None => arg.into(),
        }));
        args
    }
}
