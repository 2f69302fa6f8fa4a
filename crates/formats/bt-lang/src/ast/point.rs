//! Attach points: the places that a probe is attached to.

use super::{Name, Span};

/// One attach point, for example `uprobe:/bin/bash:readline+4`.
///
/// The text is split at `:` outside of quotes. Positional parameters (`$1`) are substituted if the
/// parser was given them. The parts are sorted into the fields below by the kind of probe. Missing
/// and surplus parts have been reported; whether the file, function or event exists is not known
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachPoint {
    /// The whole attach point, as written.
    pub raw: String,
    /// Name from `NAME=` before the kind, which the builtin `probe` returns instead (bpftrace
    /// 0.24).
    pub alias: Option<Name>,
    /// Kind of probe.
    pub kind: ProbeKind,
    /// The kind as written: `u`, `kfunc`, `BEGIN`; the pattern if `kind` is [`ProbeKind::Pattern`].
    pub provider: Name,
    /// The parts after the kind.
    pub form: PointForm,
    /// Source range.
    pub span: Span,
}

/// The parts of an attach point after its kind. An optional `Part` is `None` if the text has none.
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
        /// The file or library of a uprobe, or the module of a kernel function. If `None`, a uprobe
        /// means the process given with `-p`.
        target: Option<Part>,
        /// `cpp`, if the function is a C++ name; the ID in `fentry:bpf:ID:NAME`.
        lang: Option<Part>,
        /// The function. `None` if only an address is given.
        function: Option<Part>,
        /// `+offset` from the function.
        offset: u64,
        /// An address instead of a function.
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
        /// The file. If `None`, the process given with `-p`.
        target: Option<Part>,
        /// The provider. If `None`, any.
        provider: Option<Part>,
        /// The probe.
        name: Part,
    },
    /// `tracepoint:category:event`, `rawtracepoint:event`, `rawtracepoint:module:event`.
    Event {
        /// The category or module. `None` for a raw tracepoint without a module.
        category: Option<Part>,
        /// The event.
        name: Part,
    },
    /// `interval:s:1`, `profile:hz:99`, `interval:10ms`.
    Timer {
        /// `hz`, `s`, `ms`, `us` or `ns`. If `None`, the count is in nanoseconds (`interval:1s`).
        unit: Option<Part>,
        /// Number of units, from 1.
        count: u64,
    },
    /// `software:faults:100`, `hardware:cache-misses:1000000`.
    Sample {
        /// The kernel's event.
        event: Part,
        /// Number of events between samples. If `None`, the default of the event.
        period: Option<u64>,
    },
    /// `watchpoint:0x1234:8:rw`, `watchpoint:function+arg0:4:w`.
    Watch {
        /// The address, `function+argN`, or a symbol.
        place: Part,
        /// Length in bytes: 1, 2, 4 or 8 (not checked).
        length: u64,
        /// Some of `r`, `w`, `x`.
        mode: Part,
    },
    /// `iter:task`, `iter:bpf_map:pin`.
    Iter {
        /// The kind of object to iterate over.
        object: Part,
        /// Path to pin the iterator to.
        pin: Option<Part>,
    },
    /// The unsorted parts. The kind is a pattern or unknown, the point is wrong (which is
    /// reported), or it has positional parameters that the parser was not given.
    Parts(Vec<Part>),
}

/// A part of an attach point, without quotes and escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Source range, quotes included.
    pub span: Span,
    /// True if the part has a wildcard (`*`, `?` or `[...]`).
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
            /// A pattern (`*`, `k*probe`), which stands for every kind that matches.
            Pattern,
            /// An unknown kind; a diagnostic has been reported.
            Unknown,
        }

        impl ProbeKind {
            /// All kinds, each with its name and its other names, old ones included.
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
    /// Returns the kind with this name, old or new, `BEGIN` and `END` included.
    pub fn by_name(name: &str) -> Option<Self> {
        let exact = |word: &str| {
            Self::TABLE
                .iter()
                .find(|(_, full, other)| *full == word || other.contains(&word))
        };
        exact(name)
            .or_else(|| exact(&name.to_ascii_lowercase()))
            .map(|row| row.0)
    }

    /// Returns the current name of the kind; `?` if it is a pattern or unknown.
    pub fn name(self) -> &'static str {
        Self::TABLE
            .iter()
            .find(|row| row.0 == self)
            .map_or("?", |row| row.1)
    }
}
