//! The report: aligned text, or one JSON object per line.

use std::io::{self, Write};

use bpf_session::Answer;
use host::{Capabilities, Capability, system};
use screen::{GOOD, HEAD, Screen, Style, WARN, WRONG, columns, wrap};
use serde_json::json;

use super::checks::{Check, GRANT};
use super::commands::{self, CommandState, CommandStatus};
use crate::rights::rights_advice;

/// Returns how to get the rights for a trial that was denied; `None` if no right is missing.
fn rights() -> Option<String> {
    let own = Capabilities::own();
    let is_inner = system::in_first_user_namespace() == Some(false);
    if is_inner
        || !own
            .missing(&[Capability::Bpf, Capability::Perfmon])
            .is_empty()
    {
        Some(rights_advice())
    } else if !own.has(Capability::SysAdmin) {
        let text = "run as root: CAP_BPF and CAP_PERFMON are not enough for it here (under lockdown, root is not enough either)";
        Some(text.to_owned())
    } else {
        None
    }
}

/// Check with its answer.
pub struct Finding {
    /// Check.
    pub check: &'static Check,
    /// Answer of its trial.
    pub answer: Answer,
}

impl Finding {
    /// Runs the check.
    pub fn run(check: &'static Check) -> Self {
        Self {
            check,
            answer: (check.ask)(),
        }
    }

    /// Returns true if `record` or `run` cannot work without this.
    pub fn stops_us(&self) -> bool {
        !self.answer.is_yes() && commands::is_required(self.check.name)
    }

    /// Returns the answer in one word.
    pub fn word(&self) -> &'static str {
        match self.answer {
            Answer::Yes(_) => "yes",
            Answer::No { .. } => "no",
            Answer::Unknown(_) => "unknown",
        }
    }

    /// Returns the details of the answer.
    fn said(&self) -> &str {
        match &self.answer {
            Answer::Yes(said) | Answer::Unknown(said) | Answer::No { why: said, .. } => said,
        }
    }

    /// Returns how to get the feature, if it is missing.
    fn remedy(&self) -> Option<String> {
        match self.answer {
            Answer::Yes(_) => None,
            Answer::No { denied: true, .. } if rights().is_some() => rights(),
            _ if self.check.how == GRANT => Some(rights_advice()),
            _ => Some(self.check.how.to_owned()).filter(|how| !how.is_empty()),
        }
    }

    /// Returns true if root was denied: only lockdown or a security module can do that.
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

/// Report for people.
pub struct Report<'a> {
    /// All findings.
    pub findings: &'a [Finding],
    /// Release of the kernel.
    pub release: &'a str,
    /// Terminal for the text.
    pub screen: Screen,
}

/// Column at which a check's name starts.
const NAME_AT: usize = 11;
/// Width of names on a terminal too narrow for the longest name and the needs, in columns.
const NARROW_NAME: usize = 26;

impl Report<'_> {
    /// Writes the verdict, the state of each command, and either each check or where to see them.
    pub fn text(&self, is_verbose: bool, to: &mut impl Write) -> io::Result<()> {
        self.verdict(to)?;
        if is_verbose {
            return self.checks(to);
        }
        let is_whole = self.findings.iter().all(|it| it.answer.is_yes());
        let what = if is_whole {
            "Each check"
        } else {
            "Each check, and how to get what is missing"
        };
        writeln!(to, "{what}: dptrace doctor -v")
    }

    /// Writes the verdict, and the state of each command.
    fn verdict(&self, to: &mut impl Write) -> io::Result<()> {
        let (can, style) = match commands::unusable_commands(self.findings) {
            None => ("record and run can".to_owned(), GOOD),
            Some(commands) => (format!("{commands} cannot"), WRONG),
        };
        let here = if style == WRONG && rights().is_some() {
            "with your rights"
        } else {
            "here"
        };
        let verdict = self
            .screen
            .paint(style, format!("dptrace {can} work {here}"));
        self.line(to, &format!("{verdict}: Linux {}", self.release))?;
        let abilities = CommandStatus::all(self.findings);
        let width = abilities
            .iter()
            .map(|it| it.commands.len())
            .max()
            .unwrap_or_default();
        for ability in &abilities {
            let style = match ability.works {
                CommandState::Yes => GOOD,
                CommandState::Partly => WARN,
                CommandState::No => WRONG,
            };
            let head = format!("  {:width$}  ", ability.commands);
            self.hanging(to, &head, &ability.text(), style)?;
        }
        Ok(())
    }

    /// Writes each check.
    fn checks(&self, to: &mut impl Write) -> io::Result<()> {
        let longest = self
            .findings
            .iter()
            .map(|it| it.label().len())
            .max()
            .unwrap_or_default();
        let needed = self
            .findings
            .iter()
            .map(|it| it.check.needed_for.len())
            .max()
            .unwrap_or_default();
        let fits = self
            .screen
            .width()
            .is_none_or(|width| NAME_AT + longest + 2 + needed <= width);
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
        let head = format!(
            "  {:7}  {label:width$}  ",
            self.screen.paint(style, finding.word())
        );
        if label.len() > width {
            self.line(to, head.trim_end())?;
            self.hanging(
                to,
                &" ".repeat(NAME_AT + width + 2),
                finding.check.needed_for,
                Style::new(),
            )?;
        } else {
            self.hanging(to, &head, finding.check.needed_for, Style::new())?;
        }
        if !finding.answer.is_yes() {
            let although = if finding.is_denied_to_the_entitled() {
                ", although this process has all capabilities: lockdown?"
            } else {
                ""
            };
            self.hanging(
                to,
                "             why: ",
                &format!("{}{although}", finding.said()),
                Style::new(),
            )?;
        }
        match finding.remedy() {
            Some(how) => self.hanging(to, "             get: ", &how, Style::new()),
            None => Ok(()),
        }
    }

    /// Writes a text after a head, wrapped at blanks to the terminal's width. Further lines are
    /// indented to the start of the text.
    fn hanging(&self, to: &mut impl Write, head: &str, text: &str, style: Style) -> io::Result<()> {
        let indent = columns(head);
        let Some(width) = self.screen.width() else {
            return writeln!(to, "{head}{text}");
        };
        for (index, part) in wrap(text, width.saturating_sub(indent)).iter().enumerate() {
            let part = self.screen.paint(style, part);
            let line = if index == 0 {
                format!("{head}{part}")
            } else {
                format!("{:indent$}{part}", "")
            };
            self.line(to, &line)?;
        }
        Ok(())
    }

    fn line(&self, to: &mut impl Write, line: &str) -> io::Result<()> {
        writeln!(to, "{}", self.screen.cut(line))
    }
}

/// Writes one object per line.
pub fn json(findings: &[Finding], to: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        let object = json!({
            "group": finding.check.group,
            "name": finding.check.name,
            "answer": finding.word(),
            "said": finding.said(),
            "needed_for": finding.check.needed_for,
            "get": finding.remedy(),
            "required": commands::is_required(finding.check.name),
        });
        writeln!(to, "{}", text::json::document("doctor.check", &object))?;
    }
    Ok(())
}
