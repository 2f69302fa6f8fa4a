//! The checks that each command needs: the short report, one line per command.

use super::report::Finding;

/// Needs of a command, or of several with the same needs.
struct Needs {
    commands: &'static str,
    /// Checks without which it can't work.
    required: &'static [&'static str],
    /// Checks without which it can do less.
    used: &'static [&'static str],
}

/// To add a command, add a row. The names are those of the checks.
const COMMANDS: [Needs; 7] = [
    Needs {
        commands: "trace, latency",
        required: &[],
        used: &[],
    },
    Needs {
        commands: "report",
        required: &[],
        used: &[],
    },
    Needs {
        commands: "capture [--slow]",
        // Without the kernel's events they have the trace.
        required: &[],
        used: &[
            "bpf() programs",
            "ring buffer",
            "typed tracepoints (tp_btf)",
            "BTF",
            "uprobes",
            "CAP_SYS_PTRACE",
        ],
    },
    Needs {
        commands: "list",
        required: &[],
        used: &["tracefs", "CAP_SYS_PTRACE"],
    },
    Needs {
        commands: "record, trace -p",
        required: &["bpf() programs", "ring buffer", "uprobes"],
        used: &["USDT semaphores", "CAP_SYS_PTRACE"],
    },
    Needs {
        commands: "run",
        // A script's `begin` is a raw tracepoint's program.
        required: &["bpf() programs", "ring buffer", "raw tracepoints"],
        used: &[
            "uprobes",
            "USDT semaphores",
            "tracepoints",
            "typed tracepoints (tp_btf)",
            "kprobes",
            "fentry",
            "fexit",
            "perf software events",
            "perf hardware events",
            "BTF",
            "bpf_loop",
            "reading kernel memory",
            "kernel addresses",
        ],
    },
    Needs {
        commands: "kernel-delay",
        required: &["bpf() programs", "typed tracepoints (tp_btf)", "BTF"],
        used: &["kernel addresses", "CAP_SYS_PTRACE"],
    },
];

/// Returns the rows of `record` and `run`. If either can't work, the verdict is that dptrace cannot
/// work here.
fn decisive() -> impl Iterator<Item = (&'static str, &'static Needs)> {
    let name = |needs: &'static Needs| {
        ["record", "run"]
            .into_iter()
            .find(|name| needs.commands.starts_with(name))
    };
    COMMANDS
        .iter()
        .filter_map(move |needs| Some((name(needs)?, needs)))
}

/// Returns true if `record` or `run` cannot work without this check.
pub fn is_required(check: &str) -> bool {
    decisive().any(|(_, needs)| needs.required.contains(&check))
}

/// Names the commands among `record` and `run` that cannot work: `record`, `run`, or `record and
/// run`.
pub(crate) fn unusable_commands(findings: &[Finding]) -> Option<String> {
    let lacks = |name: &&str| {
        findings
            .iter()
            .any(|it| it.check.name == *name && !it.answer.is_yes())
    };
    let names: Vec<_> = decisive()
        .filter(|(_, needs)| needs.required.iter().any(lacks))
        .map(|(name, _)| name)
        .collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// Describes what the commands among `record` and `run` that cannot work lack.
pub fn unusable(findings: &[Finding]) -> Option<String> {
    let commands = unusable_commands(findings)?;
    let lack = if commands.contains(' ') {
        "lack"
    } else {
        "lacks"
    };
    let lacking = findings.iter().filter(|it| it.stops_us());
    let lacking: Vec<&str> = lacking.map(|it| it.check.name).collect();
    Some(format!("{commands} {lack} {}", lacking.join(", ")))
}

/// State of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandState {
    /// Works.
    Yes,
    /// Works with less than elsewhere.
    Partly,
    /// Does not work.
    No,
}

/// State of a command here, with reasons.
pub struct CommandStatus {
    /// Names of the commands.
    pub commands: &'static str,
    /// State of the commands.
    pub works: CommandState,
    /// Failed checks that are the reason.
    pub lacks: Vec<&'static str>,
}

impl CommandStatus {
    /// Returns those of all commands, in the order of the report.
    pub fn all(findings: &[Finding]) -> Vec<Self> {
        let lacks = |name: &&&str| {
            findings
                .iter()
                .any(|it| it.check.name == **name && !it.answer.is_yes())
        };
        let each = COMMANDS.iter().map(|needs| {
            let required: Vec<_> = needs.required.iter().filter(lacks).copied().collect();
            let used: Vec<_> = needs.used.iter().filter(lacks).copied().collect();
            let (works, lacks) = match (required.is_empty(), used.is_empty()) {
                (false, _) => (CommandState::No, required),
                (true, false) => (CommandState::Partly, used),
                (true, true) => (CommandState::Yes, Vec::new()),
            };
            Self {
                commands: needs.commands,
                works,
                lacks,
            }
        });
        each.collect()
    }

    /// Formats the state: `yes`, `partly: without A, B` or `no: needs A, B`.
    pub fn text(&self) -> String {
        match self.works {
            CommandState::Yes => "yes".to_owned(),
            CommandState::Partly => format!("partly: without {}", self.lacks.join(", ")),
            CommandState::No => format!("no: needs {}", self.lacks.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_need_what_is_checked() {
        for name in COMMANDS
            .iter()
            .flat_map(|needs| needs.required.iter().chain(needs.used))
        {
            assert!(
                super::super::checks::all().any(|check| check.name == *name),
                "{name}"
            );
        }
    }
}
