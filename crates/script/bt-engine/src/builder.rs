//! Options of a script's compilation.

use std::fmt::{self, Debug, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use crate::facts::{Facts, Subject, Target};
use crate::observe::{NullObserver, Observer, SharedObserver};
use crate::script::ParsedScript;
use crate::{Error, Script};

/// A script's text and the options of its compilation. Made by [`Script::builder`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it compiles its script"]
pub struct Builder {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) target: Target,
    pub(crate) options: Options,
    pub(crate) observer: SharedObserver,
}

/// Permissions of scripts, and sources of facts for them.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub(crate) struct Options {
    pub(crate) params: Vec<String>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) debug_folders: Vec<PathBuf>,
    pub(crate) traceable_functions: Option<PathBuf>,
    pub(crate) allow_unsafe: bool,
    pub(crate) report_reads: bool,
    pub(crate) mark_hits: bool,
    pub(crate) follow_forks: bool,
    pub(crate) command_limits_user_probes: bool,
    pub(crate) ordered: bool,
}

impl Builder {
    pub(crate) fn new(text: &str) -> Self {
        let options = Options {
            params: Vec::new(),
            settings: Vec::new(),
            debug_folders: Vec::new(),
            traceable_functions: None,
            allow_unsafe: false,
            report_reads: false,
            mark_hits: false,
            follow_forks: false,
            command_limits_user_probes: false,
            ordered: true,
        };
        Self {
            name: "script".into(),
            text: text.into(),
            target: Target::All,
            options,
            observer: Arc::new(NullObserver),
        }
    }

    /// Sets the script's name in diagnostics; `script` by default.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the processes to trace; all by default.
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// Sets the script's positional parameters, `$1` and so on.
    pub fn params(mut self, params: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.params = params.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a setting of bpftrace's language, as in a script's `config` (`max_strlen`), which has
    /// precedence. bpftrace takes these from variables of the environment; the engine reads none.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.settings.push((name.into(), value.into()));
        self
    }

    /// Adds a directory in which debug files are looked for as well.
    pub fn debug_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.debug_folders.push(folder.into());
        self
    }

    /// Sets a file that lists the kernel's functions that can be probed, a name a line, in place of
    /// tracefs's.
    pub fn traceable_functions(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.traceable_functions = Some(file.into());
        self
    }

    /// Sets whether the script may change or stop others: `system()`, `signal()`, probes at places
    /// that can't be verified. Off by default.
    pub fn allow_unsafe(mut self, allow: bool) -> Self {
        self.options.allow_unsafe = allow;
        self
    }

    /// Sets whether failed reads of memory and failed look-ups of keys are counted and reported,
    /// too. Off by default.
    pub fn report_reads(mut self, report: bool) -> Self {
        self.options.report_reads = report;
        self
    }

    /// Sets whether programs mark that they were hit, for
    /// [`Session::never_hit`](crate::Session::never_hit). Off by default.
    pub fn mark_hits(mut self, mark: bool) -> Self {
        self.options.mark_hits = mark;
        self
    }

    /// Sets whether processes that the target's process starts from now on are traced, too. Off by
    /// default; works only in the kernel's first PID namespace.
    pub fn follow_forks(mut self, follow: bool) -> Self {
        self.options.follow_forks = follow;
        self
    }

    /// Sets whether a [`Target::Command`] limits user probes only, as bpftrace's `-c` does, and all
    /// other probes trace all processes. Off by default.
    pub fn command_limits_user_probes(mut self, limits: bool) -> Self {
        self.options.command_limits_user_probes = limits;
        self
    }

    /// Sets whether events are handed out in the order of time, which holds each back for a moment.
    /// On by default.
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.options.ordered = ordered;
        self
    }

    /// Sets the observer, which takes reports while the engine works; none by default.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Parses the script. This asks the machine for nothing.
    pub fn parse(self) -> Result<ParsedScript, Error> {
        ParsedScript::parse(self)
    }

    /// Parses and compiles the script. Starts the command of a target; it waits before its first
    /// instruction.
    pub fn compile(self) -> Result<Script, Error> {
        let parsed = self.parse()?;
        let warnings = parsed.warnings().to_vec();
        let mut script = parsed.compile()?;
        script.prepend_warnings(warnings);
        Ok(script)
    }

    /// Returns the facts that scripts for this target are compiled with, to list possible probes.
    #[doc(hidden)]
    pub fn facts(self) -> Result<Facts, Error> {
        // A command that is only looked at is not run: it ends here.
        let (subject, _held) = Subject::open(&self.target)?;
        Ok(Facts::new(subject, self.options, self.observer))
    }
}

impl Debug for Builder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("text", &self.text)
            .field("target", &self.target)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
