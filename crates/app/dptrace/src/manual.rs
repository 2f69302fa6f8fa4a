//! `dptrace man`: the parts of its pages beyond the options: exit status, environment, files, other
//! pages.

use std::path::Path;

use anyhow::Context as _;
use grammar::man::{self, Facts, Manual};
use ordering::Order as _;
use text::printable::path as printable;
use whole_file::{Access, Batch};

use crate::help;

/// Writes the pages into a directory.
pub(crate) fn write(dir: &Path) -> anyhow::Result<()> {
    let writing = || format!("writing man pages into {}", printable(dir));
    let manual = Manual {
        version: env!("CARGO_PKG_VERSION"),
        date: env!("DPTRACE_DATE"),
        description: DESCRIPTION,
        examples: help::FIRST,
        groups: help::ALL,
        facts,
    };
    let mut pages = Batch::default();
    for (file, text) in man::pages(help::grammar(), &manual) {
        pages
            .add_whole(&dir.join(file), Access::Umask, text.as_bytes())
            .with_context(writing)?;
    }
    pages.commit().with_context(writing)
}

type Lines = &'static [(&'static str, &'static str)];

/// Description of the program.
const DESCRIPTION: &str = concat!(
    env!("CARGO_PKG_DESCRIPTION"),
    ". dptrace accounts for the time of every thread of a process, runs scripts in bpftrace's language, \
     prints SPDK traces with the names of their objects, and explains slow requests. Data goes to \
     standard output, everything else to standard error."
);

const STATUS: [(&str, &str); 4] = [
    ("0", "Done."),
    ("1", "Something failed."),
    (
        "2",
        "Wrong usage: of an option, or in a script, a filter or an object spec.",
    ),
    (
        "3",
        "Something is not permitted, or not supported on this machine. dptrace doctor reports \
         what is missing.",
    ),
];

const ENVIRONMENT: [(&str, &str); 3] = [
    (
        "NO_COLOR",
        "If it is set, output has no colours. Colours are used only on a terminal, and not with \
         TERM=dumb.",
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
    "The kernel's tracepoints. If it is not mounted, dptrace opens an instance of its own, which \
     needs CAP_SYS_ADMIN.",
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

/// Rows of a table: the names of commands, and what holds for them.
type ByCommand<T> = &'static [(&'static str, T)];

/// Further exit statuses, or others than [`STATUS`] has.
const STATUS_OF: ByCommand<Lines> = &[
    (
        "run",
        &[("N", "The status that the script passes to exit().")],
    ),
    ("list", &[("1", "No name matches the pattern.")]),
    ("doctor", &[("3", "A command cannot work here at all.")]),
];

/// Environment variables in addition to [`ENVIRONMENT`].
const ENVIRONMENT_OF: ByCommand<Lines> = &[
    (
        "top",
        &[("TERM, COLORTERM", "How many colours the screen has.")],
    ),
    ("record", &[PATH, LIBRARIES]),
    (
        "run",
        &[
            (
                "BPFTRACE_*",
                "Settings of the language, as in a script's config block: \
                     BPFTRACE_MAX_STRLEN=200.",
            ),
            PATH,
        ],
    ),
    ("kernel-delay", &[PATH]),
];

const FILES_OF: ByCommand<Lines> = &[
    ("dptrace", &[SHM, TRACEFS, BTF, DEBUG]),
    ("trace latency", &[SHM]),
    ("capture watch top serve", &[SHM, BTF, DEBUG]),
    ("run", &[TRACEFS, BTF, DEBUG, JIT]),
    ("kernel-delay", &[TRACEFS, BTF, DEBUG, JIT]),
    ("list", &[TRACEFS, DEBUG]),
    ("inspect", &[DEBUG]),
    ("doctor", &[TRACEFS, BTF]),
    (
        "completions",
        &[
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
    ),
];

/// Other pages to read.
const PAGES_OF: ByCommand<&str> = &[
    (
        "dptrace",
        "dptrace-kernel-delay(1) dptrace-run(1) dptrace-trace(1) bpftrace(8) perf(1)",
    ),
    (
        "trace latency",
        "dptrace(1) dptrace-trace(1) dptrace-latency(1) dptrace-record(1) dptrace-objects(1)",
    ),
    (
        "capture",
        "dptrace(1) dptrace-trace(1) dptrace-latency(1) dptrace-record(1)",
    ),
    (
        "watch",
        "dptrace(1) dptrace-timeline(1) dptrace-capture(1) dptrace-latency(1)",
    ),
    (
        "top",
        "dptrace(1) dptrace-latency(1) dptrace-kernel-delay(1) dptrace-capture(1)",
    ),
    (
        "serve",
        "dptrace(1) dptrace-latency(1) dptrace-kernel-delay(1) dptrace-watch(1)",
    ),
    (
        "timeline",
        "dptrace(1) dptrace-latency(1) dptrace-trace(1) dptrace-kernel-delay(1)",
    ),
    (
        "report export",
        "dptrace(1) dptrace-timeline(1) dptrace-latency(1) dptrace-capture(1)",
    ),
    (
        "record",
        "dptrace(1) dptrace-trace(1) dptrace-objects(1) dptrace-list(1)",
    ),
    (
        "run",
        "dptrace(1) dptrace-scripts(1) dptrace-list(1) dptrace-doctor(1) bpftrace(8)",
    ),
    ("scripts", "dptrace(1) dptrace-run(1)"),
    (
        "kernel-delay",
        "dptrace(1) dptrace-run(1) dptrace-doctor(1) perf-sched(1)",
    ),
    (
        "cpus",
        "dptrace(1) dptrace-kernel-delay(1) dptrace-run(1) dptrace-doctor(1) cpuset(7)",
    ),
    (
        "pmd",
        "dptrace(1) dptrace-kernel-delay(1) dptrace-cpus(1) ovs-vswitchd(8) ovs-appctl(8)",
    ),
    ("list", "dptrace(1) dptrace-run(1) dptrace-record(1)"),
    (
        "inspect",
        "dptrace(1) dptrace-run(1) dptrace-objects(1) gdb(1)",
    ),
    ("doctor", "dptrace(1) capabilities(7)"),
    (
        "objects generate",
        "dptrace(1) dptrace-record(1) dptrace-trace(1) bpftrace(8)",
    ),
    ("completions", "dptrace(1) bash(1) zshcompsys(1) fish(1)"),
];

/// Finds the row of a command.
fn row<T: Copy>(table: ByCommand<T>, command: &str) -> Option<T> {
    let row = table
        .iter()
        .find(|(names, _)| names.split(' ').any(|name| name == command));
    row.map(|(_, what)| *what)
}

/// Returns the facts of a command, or of the program. Its own exit statuses replace those of all
/// commands.
fn facts(command: &str) -> Facts {
    let special = row(STATUS_OF, command).unwrap_or_default();
    let is_usual = |(status, _): &&(&str, &str)| !special.iter().any(|(own, _)| own == status);
    let mut status: Vec<_> = STATUS
        .iter()
        .filter(is_usual)
        .chain(special)
        .copied()
        .collect();
    status.order();
    let environment = row(ENVIRONMENT_OF, command).unwrap_or_default();
    Facts {
        status,
        environment: environment.iter().chain(&ENVIRONMENT).copied().collect(),
        files: row(FILES_OF, command).unwrap_or_default().to_vec(),
        see: row(PAGES_OF, command)
            .unwrap_or("dptrace(1)")
            .split(' ')
            .collect(),
    }
}
