//! Attach points: the places that a probe is attached to.

use super::{Name, Span};

/// One attach point, for example `uprobe:/bin/bash:readline+4`.
///
/// Its text is split at `:` outside of quotes, positional parameters (`$1`) are put in if the parser was given them, and
/// the parts are sorted into the fields below by the probe's kind. What a kind needs and what is in excess was checked
/// (with diagnostics); whether the file, function or event exists is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachPoint {
    /// All of it, as written.
    pub raw: String,
    /// `NAME=` before the kind: what the builtin `probe` says instead (bpftrace 0.24).
    pub alias: Option<Name>,
    /// Which kind of probe.
    pub kind: ProbeKind,
    /// The kind as written: `u`, `kfunc`, `BEGIN`; the pattern where `kind` is [`ProbeKind::Pattern`].
    pub provider: Name,
    /// What the rest says.
    pub form: PointForm,
    /// Where.
    pub span: Span,
}

/// What follows the kind of an attach point. Where a `Part` is optional, the text said nothing about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointForm {
    /// Nothing: `begin`, `end`.
    Bare,
    /// `self:signal:SIGUSR1`, `test:name`, `bench:name`.
    Own {
        /// `signal`, or the name of the test or benchmark.
        group: Part,
        /// The signal.
        name: Option<Part>,
    },
    /// Functions: kprobe, kretprobe, uprobe, uretprobe, fentry, fexit.
    Function {
        /// The file or library of a uprobe, the module of a kernel function. A uprobe without one means the process
        /// given with `-p`.
        target: Option<Part>,
        /// `cpp`: the function is a C++ name. Of `fentry:bpf:ID:NAME`, the ID.
        lang: Option<Part>,
        /// The function. `None` if there is only an address.
        function: Option<Part>,
        /// `+offset` from the function.
        offset: u64,
        /// An address in place of the function.
        address: Option<u64>,
    },
    /// `uprobe:file@source.c:line:column`.
    Source {
        /// The file or library.
        target: Part,
        /// The place in the source.
        line: SourceLine,
    },
    /// `usdt:file:provider:name`.
    Usdt {
        /// The file. `None`: the process given with `-p`.
        target: Option<Part>,
        /// The provider. `None`: any.
        provider: Option<Part>,
        /// The probe.
        name: Part,
    },
    /// `tracepoint:category:event`, `rawtracepoint:event`, `rawtracepoint:module:event`.
    Event {
        /// The category or module. `None` where a raw tracepoint has none.
        category: Option<Part>,
        /// The event.
        name: Part,
    },
    /// `interval:s:1`, `profile:hz:99`, `interval:10ms`.
    Timer {
        /// `hz`, `s`, `ms`, `us`, `ns`. `None`: the count is in nanoseconds (`interval:1s`).
        unit: Option<Part>,
        /// How many; from 1.
        count: u64,
    },
    /// `software:faults:100`, `hardware:cache-misses:1000000`.
    Sample {
        /// The kernel's event.
        event: Part,
        /// At each how many. `None`: the event's own default.
        period: Option<u64>,
    },
    /// `watchpoint:0x1234:8:rw`, `watchpoint:function+arg0:4:w`.
    Watch {
        /// The address, `function+argN`, or a symbol.
        place: Part,
        /// How many bytes: 1, 2, 4 or 8 (not checked).
        length: u64,
        /// Some of `r`, `w`, `x`.
        mode: Part,
    },
    /// `iter:task`, `iter:bpf_map:pin`.
    Iter {
        /// What is walked.
        object: Part,
        /// The file to pin it to.
        pin: Option<Part>,
    },
    /// The parts as they are: the kind is a pattern, unknown, or the point is wrong (there is a diagnostic), or it has
    /// positional parameters, which the parser was not given.
    Parts(Vec<Part>),
}

/// A part of an attach point, without quotes and escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Where it stands, quotes included.
    pub span: Span,
    /// Whether it has a wildcard (`*`, `?` or `[...]`).
    pub wildcard: bool,
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: Part,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: Option<u32>,
}

macro_rules! probe_kinds {
    ($($kind:ident $doc:literal $name:literal [$($alias:literal)*],)*) => {
        /// The kinds of probe.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProbeKind {
            $(#[doc = $doc] $kind,)*
            /// The kind is a pattern (`*`, `k*probe`): every kind that matches is meant.
            Pattern,
            /// No kind of that name. There is a diagnostic.
            Unknown,
        }

        impl ProbeKind {
            /// Every kind, with its name and its other names. Old names are among them.
            pub const TABLE: &[(Self, &'static str, &[&'static str])] = &[$((Self::$kind, $name, &[$($alias),*]),)*];
        }
    };
}

probe_kinds! {
    Begin "Before all others." "begin" [],
    End "After all others." "end" [],
    SelfEvent "A signal to dptrace itself." "self" [],
    Test "Run by hand, as a test." "test" [],
    Bench "Run by hand, many times." "bench" [],
    Kprobe "A kernel function's instruction." "kprobe" ["k"],
    Kretprobe "A kernel function's return." "kretprobe" ["kr"],
    Uprobe "A user function's instruction." "uprobe" ["u"],
    Uretprobe "A user function's return." "uretprobe" ["ur"],
    Usdt "A probe that a program has in its source." "usdt" ["U"],
    Tracepoint "A kernel tracepoint." "tracepoint" ["t"],
    Rawtracepoint "A kernel tracepoint, with its arguments unprepared." "rawtracepoint" ["rt"],
    Profile "A timer on every CPU." "profile" ["p"],
    Interval "A timer on one CPU." "interval" ["i"],
    Software "A software event of the kernel, sampled." "software" ["s"],
    Hardware "A counter of the processor, sampled." "hardware" ["h"],
    Watchpoint "Reads or writes of memory." "watchpoint" ["w"],
    Asyncwatchpoint "As a watchpoint, without stopping the process to set it." "asyncwatchpoint" ["aw"],
    Fentry "A kernel function's entry, by its types." "fentry" ["f" "kfunc"],
    Fexit "A kernel function's return, by its types." "fexit" ["fr" "kretfunc"],
    Iter "A walk over objects of the kernel." "iter" ["it"],
}

impl ProbeKind {
    /// The kind of that name, in any of its names, `BEGIN` and `END` included.
    pub fn by_name(name: &str) -> Option<Self> {
        let exact = |word: &str| Self::TABLE.iter().find(|(_, full, other)| *full == word || other.contains(&word));
        exact(name).or_else(|| exact(&name.to_ascii_lowercase())).map(|row| row.0)
    }

    /// Its name today.
    pub fn name(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("?", |row| row.1)
    }
}
