//! The report: aligned text, or an object a line.

use std::io::{self, Write};

use bpf_session::Answer;
use host::{Capabilities, Capability, system};
use screen::{GOOD, HEAD, Screen, Style, WARN, WRONG, columns, wrap};
use serde_json::json;

use super::checks::{Check, GRANT};
use super::commands::{self, Ability, Works};
use crate::rights::how_to_get;

/// What is refused for want of rights is to be got so.
fn rights() -> Option<String> {
    let own = Capabilities::own();
    let is_inner = system::in_first_user_namespace() == Some(false);
    if is_inner || !own.missing(&[Capability::Bpf, Capability::Perfmon]).is_empty() {
        Some(how_to_get())
    } else if !own.has(Capability::SysAdmin) {
        let text = "run as root: CAP_BPF and CAP_PERFMON are not enough for it here (under lockdown, root is not enough either)";
        Some(text.to_owned())
    } else {
        None
    }
}

/// A check, and what came of it.
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// The answer of its trial.
    pub answer: Answer,
}

impl Finding {
    /// Makes the check.
    pub fn of(check: &'static Check) -> Self {
        Self { check, answer: (check.ask)() }
    }

    /// Whether `record` or `run` cannot work for want of this.
    pub fn stops_us(&self) -> bool {
        !self.answer.is_yes() && commands::is_required(self.check.name)
    }

    /// The answer in a word.
    pub fn word(&self) -> &'static str {
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
    fn how(&self) -> Option<String> {
        match self.answer {
            Answer::Yes(_) => None,
            Answer::No { denied: true, .. } if rights().is_some() => rights(),
            _ if self.check.how == GRANT => Some(how_to_get()),
            _ => Some(self.check.how.to_owned()).filter(|how| !how.is_empty()),
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

/// The report for people.
pub struct Report<'a> {
    /// All findings.
    pub findings: &'a [Finding],
    /// The kernel's.
    pub release: &'a str,
    /// Terminal that the text is for.
    pub screen: Screen,
}

/// Where a check's name begins.
const NAME_AT: usize = 11;
/// The columns of names on a terminal that is too narrow for the longest and what it is needed for.
const NARROW_NAME: usize = 26;

impl Report<'_> {
    /// Writes the verdict, and what each command can do.
    pub fn verdict(&self, to: &mut impl Write) -> io::Result<()> {
        let (can, style) = match commands::that_cannot_work(self.findings) {
            None => ("record and run can".to_owned(), GOOD),
            Some(commands) => (format!("{commands} cannot"), WRONG),
        };
        let verdict = self.screen.paint(style, format!("dptrace {can} work here"));
        self.line(to, &format!("{verdict}: Linux {}", self.release))?;
        let abilities = Ability::all(self.findings);
        let width = abilities.iter().map(|it| it.commands.len()).max().unwrap_or_default();
        for ability in &abilities {
            let style = match ability.works {
                Works::Yes => GOOD,
                Works::Partly => WARN,
                Works::No => WRONG,
            };
            let head = format!("  {:width$}  ", ability.commands);
            self.hanging(to, &head, &ability.text(), style)?;
        }
        Ok(())
    }

    /// Writes each check.
    pub fn checks(&self, to: &mut impl Write) -> io::Result<()> {
        let longest = self.findings.iter().map(|it| it.label().len()).max().unwrap_or_default();
        let needed = self.findings.iter().map(|it| it.check.needed_for.len()).max().unwrap_or_default();
        let fits = self.screen.width().is_none_or(|width| NAME_AT + longest + 2 + needed <= width);
        let width = if fits { longest } else { NARROW_NAME };
        let mut group = "";
        for finding in self.findings {
            if finding.check.group != group {
                group = finding.check.group;
                writeln!(to, "\n{}", self.screen.paint(HEAD, group))?;
            }
            self.check(to, finding, width)?;
        }
        Ok(())
    }

    fn check(&self, to: &mut impl Write, finding: &Finding, width: usize) -> io::Result<()> {
        let style = match finding.answer {
            Answer::Yes(_) => GOOD,
            Answer::No { .. } => WRONG,
            Answer::Unknown(_) => WARN,
        };
        let label = finding.label();
        let head = format!("  {:7}  {label:width$}  ", self.screen.paint(style, finding.word()));
        if label.len() > width {
            self.line(to, head.trim_end())?;
            self.hanging(to, &" ".repeat(NAME_AT + width + 2), finding.check.needed_for, Style::new())?;
        } else {
            self.hanging(to, &head, finding.check.needed_for, Style::new())?;
        }
        if !finding.answer.is_yes() {
            let although = if finding.is_denied_to_the_entitled() {
                ", although this process has all capabilities: lockdown?"
            } else {
                ""
            };
            self.hanging(to, "             why: ", &format!("{}{although}", finding.said()), Style::new())?;
        }
        match finding.how() {
            Some(how) => self.hanging(to, "             get: ", &how, Style::new()),
            None => Ok(()),
        }
    }

    /// A line that is broken at blanks where it does not fit the terminal; the rest stands below its beginning.
    fn hanging(&self, to: &mut impl Write, head: &str, text: &str, style: Style) -> io::Result<()> {
        let indent = columns(head);
        let Some(width) = self.screen.width() else { return writeln!(to, "{head}{text}") };
        for (index, part) in wrap(text, width.saturating_sub(indent)).iter().enumerate() {
            let part = self.screen.paint(style, part);
            let line = if index == 0 { format!("{head}{part}") } else { format!("{:indent$}{part}", "") };
            self.line(to, &line)?;
        }
        Ok(())
    }

    fn line(&self, to: &mut impl Write, line: &str) -> io::Result<()> {
        writeln!(to, "{}", self.screen.cut(line))
    }
}

/// Writes an object a line.
pub fn json(findings: &[Finding], to: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        let object = json!({
            "group": finding.check.group,
            "name": finding.check.name,
            "answer": finding.word(),
            "said": finding.said(),
            "needed_for": finding.check.needed_for,
            "get": finding.how(),
            "required": commands::is_required(finding.check.name),
        });
        writeln!(to, "{object}")?;
    }
    Ok(())
}
