//! Parts of man pages beyond the options: exit status, environment, files, other pages.

/// Particulars of a command.
#[derive(Clone, Copy, Default)]
pub(super) struct Facts {
    /// Additions to [`STATUS`].
    status: Lines,
    /// Additions to [`ENVIRONMENT`].
    environment: Lines,
    pub(super) files: Lines,
    pub(super) see: &'static [&'static str],
}

type Lines = &'static [(&'static str, &'static str)];

/// Description of the program.
pub(super) const DESCRIPTION: &str = "dptrace shows where a userspace data plane's time goes, on \
    both sides of the system call. It prints SPDK traces with the names of their objects, records \
    static probes (USDT), runs scripts in bpftrace's language, and accounts for the time of every \
    thread of a process. Data goes to standard output, everything else to standard error.";

const STATUS: [(&str, &str); 4] = [
    ("0", "Done."),
    ("1", "Something failed."),
    (
        "2",
        "Wrong usage: of an option, or in a script, a filter or an object spec.",
    ),
    (
        "3",
        "Something is not permitted or not supported here; dptrace doctor reports what.",
    ),
];

const ENVIRONMENT: [(&str, &str); 3] = [
    (
        "NO_COLOR",
        "If set, output has no colours. They go only to terminals, and not with TERM=dumb.",
    ),
    (
        "COLUMNS",
        "The width of a terminal that does not report its own.",
    ),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "Without UTF-8, only ASCII characters are used for bars and for text that is cut.",
    ),
];

const SHM: (&str, &str) = (
    "/dev/shm/*_trace.*",
    "The traces of running SPDK applications.",
);
const TRACEFS: (&str, &str) = (
    "/sys/kernel/tracing",
    "The kernel's tracepoints. If not mounted, dptrace opens its own, with CAP_SYS_ADMIN.",
);
const BTF: (&str, &str) = (host::KERNEL_BTF, "The types of the kernel.");
const DEBUG: (&str, &str) = (
    "/usr/lib/debug",
    "Debug files of programs and libraries, for names of functions and source lines.",
);
const JIT: (&str, &str) = (
    "/tmp/perf-PID.map",
    "Names of the code that the process PID generated at run time (JIT), below its own root.",
);
const PATH: (&str, &str) = ("PATH", "Directories to search for commands to start.");
const LIBRARIES: (&str, &str) = (
    "LD_LIBRARY_PATH",
    "Directories to search for the libraries of a command to start, for their probes.",
);

/// Returns the facts of a command, or of the program.
pub(super) fn of(command: &str) -> Facts {
    let facts = Facts {
        see: &["dptrace(1)"],
        ..Facts::default()
    };
    match command {
        "dptrace" => Facts {
            files: &[SHM, TRACEFS, BTF, DEBUG],
            see: &[
                "dptrace-kernel-delay(1)",
                "dptrace-run(1)",
                "dptrace-trace(1)",
                "bpftrace(8)",
                "perf(1)",
            ],
            ..facts
        },
        "trace" | "latency" => Facts {
            files: &[SHM],
            see: &[
                "dptrace(1)",
                "dptrace-trace(1)",
                "dptrace-latency(1)",
                "dptrace-record(1)",
                "dptrace-objects(1)",
            ],
            ..facts
        },
        "capture" => Facts {
            files: &[SHM, BTF, DEBUG],
            see: &[
                "dptrace(1)",
                "dptrace-trace(1)",
                "dptrace-latency(1)",
                "dptrace-record(1)",
            ],
            ..facts
        },
        "watch" => Facts {
            files: &[SHM, BTF, DEBUG],
            see: &[
                "dptrace(1)",
                "dptrace-timeline(1)",
                "dptrace-capture(1)",
                "dptrace-latency(1)",
            ],
            ..facts
        },
        "top" => Facts {
            environment: &[("TERM, COLORTERM", "How many colours the screen has.")],
            files: &[SHM, BTF, DEBUG],
            see: &[
                "dptrace(1)",
                "dptrace-latency(1)",
                "dptrace-kernel-delay(1)",
                "dptrace-capture(1)",
            ],
            ..facts
        },
        "serve" => Facts {
            files: &[SHM, BTF, DEBUG],
            see: &[
                "dptrace(1)",
                "dptrace-latency(1)",
                "dptrace-kernel-delay(1)",
                "dptrace-watch(1)",
            ],
            ..facts
        },
        "timeline" => Facts {
            see: &[
                "dptrace(1)",
                "dptrace-latency(1)",
                "dptrace-trace(1)",
                "dptrace-kernel-delay(1)",
            ],
            ..facts
        },
        "report" | "export" => Facts {
            see: &[
                "dptrace(1)",
                "dptrace-timeline(1)",
                "dptrace-latency(1)",
                "dptrace-capture(1)",
            ],
            ..facts
        },
        "record" => Facts {
            environment: &[PATH, LIBRARIES],
            see: &[
                "dptrace(1)",
                "dptrace-trace(1)",
                "dptrace-objects(1)",
                "dptrace-list(1)",
            ],
            ..facts
        },
        "run" => Facts {
            status: &[("N", "The status that the script passes to exit().")],
            environment: &[
                (
                    "BPFTRACE_*",
                    "Settings, as in a script's config block: BPFTRACE_MAX_STRLEN=200.",
                ),
                PATH,
            ],
            files: &[TRACEFS, BTF, DEBUG, JIT],
            see: &[
                "dptrace(1)",
                "dptrace-scripts(1)",
                "dptrace-list(1)",
                "dptrace-doctor(1)",
                "bpftrace(8)",
            ],
        },
        "scripts" => Facts {
            see: &["dptrace(1)", "dptrace-run(1)"],
            ..facts
        },
        "kernel-delay" => Facts {
            environment: &[PATH],
            files: &[TRACEFS, BTF, DEBUG, JIT],
            see: &[
                "dptrace(1)",
                "dptrace-run(1)",
                "dptrace-doctor(1)",
                "perf-sched(1)",
            ],
            ..facts
        },
        "cpus" => Facts {
            see: &[
                "dptrace(1)",
                "dptrace-kernel-delay(1)",
                "dptrace-run(1)",
                "dptrace-doctor(1)",
                "cpuset(7)",
            ],
            ..facts
        },
        "pmd" => Facts {
            see: &[
                "dptrace(1)",
                "dptrace-kernel-delay(1)",
                "dptrace-cpus(1)",
                "ovs-vswitchd(8)",
                "ovs-appctl(8)",
            ],
            ..facts
        },
        "list" => Facts {
            status: &[("1", "No name matches the pattern.")],
            files: &[TRACEFS, DEBUG],
            see: &["dptrace(1)", "dptrace-run(1)", "dptrace-record(1)"],
            ..facts
        },
        "inspect" => Facts {
            files: &[DEBUG],
            see: &[
                "dptrace(1)",
                "dptrace-run(1)",
                "dptrace-objects(1)",
                "gdb(1)",
            ],
            ..facts
        },
        "doctor" => Facts {
            status: &[("3", "A command cannot work here at all.")],
            files: &[TRACEFS, BTF],
            see: &["dptrace(1)", "capabilities(7)"],
            ..facts
        },
        "objects" | "generate" => Facts {
            see: &[
                "dptrace(1)",
                "dptrace-record(1)",
                "dptrace-trace(1)",
                "bpftrace(8)",
            ],
            ..facts
        },
        "completions" => Facts {
            files: &[
                (
                    "/usr/share/bash-completion/completions/dptrace",
                    "Completion for bash, from the Debian package.",
                ),
                (
                    "/usr/share/zsh/vendor-completions/_dptrace",
                    "Completion for zsh.",
                ),
                (
                    "/usr/share/fish/vendor_completions.d/dptrace.fish",
                    "Completion for fish.",
                ),
            ],
            see: &["dptrace(1)", "bash(1)", "zshcompsys(1)", "fish(1)"],
            ..facts
        },
        _ => facts,
    }
}

impl Facts {
    /// Returns the exit statuses; special ones replace those of all commands.
    pub(super) fn status(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let special = self.status;
        let usual = STATUS
            .iter()
            .filter(move |(status, _)| !special.iter().any(|(known, _)| known == status));
        let mut all: Vec<_> = usual.chain(special).copied().collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// Returns the environment variables.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.environment.iter().chain(&ENVIRONMENT).copied()
    }
}
