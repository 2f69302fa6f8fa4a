//! The report: aligned text, or an object a line.

use std::io::{self, Write};

use bpf_session::Answer;
use host::{Capabilities, Capability, system};
use serde_json::json;

use super::checks::Check;

/// What is refused for want of rights is to be got so.
fn rights() -> Option<&'static str> {
    let own = Capabilities::own();
    if system::in_first_user_namespace() == Some(false) {
        Some("run outside of this user namespace: the kernel treats its root as an ordinary user")
    } else if !own.missing(&[Capability::Bpf, Capability::Perfmon]).is_empty() {
        Some("run as root, or: setcap cap_bpf,cap_perfmon+ep dptrace")
    } else if !own.has(Capability::SysAdmin) {
        Some(
            "run as root: CAP_BPF and CAP_PERFMON are not enough for it here (under lockdown, root is not enough either)",
        )
    } else {
        None
    }
}

/// A check, and what came of it.
pub(super) struct Finding {
    pub(super) check: &'static Check,
    pub(super) answer: Answer,
}

impl Finding {
    /// Makes the check.
    pub(super) fn of(check: &'static Check) -> Self {
        Self { check, answer: (check.ask)() }
    }

    /// Whether `record` and `run` can't work for want of this.
    pub(super) fn stops_us(&self) -> bool {
        self.check.required && !self.answer.is_yes()
    }

    fn word(&self) -> &'static str {
        match self.answer {
            Answer::Yes(_) => "yes",
            Answer::No { .. } => "no",
            Answer::Unknown(_) => "unknown",
        }
    }

    /// What there is to say of the answer.
    fn said(&self) -> &str {
        match &self.answer {
            Answer::Yes(said) | Answer::Unknown(said) | Answer::No { why: said, .. } => said,
        }
    }

    /// How to get it, if it is not there.
    fn how(&self) -> Option<&'static str> {
        match self.answer {
            Answer::Yes(_) => None,
            Answer::No { denied: true, .. } if rights().is_some() => rights(),
            _ => Some(self.check.how).filter(|how| !how.is_empty()),
        }
    }

    /// Root is refused only by what stands above it: lockdown, or another security module.
    fn is_denied_to_the_entitled(&self) -> bool {
        matches!(self.answer, Answer::No { denied: true, .. }) && rights().is_none()
    }

    fn label(&self) -> String {
        match &self.answer {
            Answer::Yes(said) if !said.is_empty() => format!("{} ({said})", self.check.name),
            _ => self.check.name.to_owned(),
        }
    }
}

/// Writes the report for people.
pub(super) fn text(findings: &[Finding], release: &str, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "Linux {release}")?;
    let width = findings.iter().map(|it| it.label().len()).max().unwrap_or_default();
    let mut group = "";
    for finding in findings {
        if finding.check.group != group {
            group = finding.check.group;
            writeln!(to, "\n{group}")?;
        }
        writeln!(to, "  {:7}  {:width$}  {}", finding.word(), finding.label(), finding.check.needed_for)?;
        if !finding.answer.is_yes() {
            let although = if finding.is_denied_to_the_entitled() {
                ", although this process has all capabilities: lockdown?"
            } else {
                ""
            };
            writeln!(to, "             why: {}{although}", finding.said())?;
        }
        if let Some(how) = finding.how() {
            writeln!(to, "             get: {how}")?;
        }
    }
    writeln!(to)?;
    let works = if findings.iter().any(Finding::stops_us) { "cannot work here" } else { "can work here" };
    writeln!(to, "dptrace record and run {works}.")
}

/// Writes an object a line.
pub(super) fn json(findings: &[Finding], to: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        let object = json!({
            "group": finding.check.group,
            "name": finding.check.name,
            "answer": finding.word(),
            "said": finding.said(),
            "needed_for": finding.check.needed_for,
            "get": finding.how(),
            "required": finding.check.required,
        });
        writeln!(to, "{object}")?;
    }
    Ok(())
}
