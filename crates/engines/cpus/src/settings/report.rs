//! Findings of the checks, as text and as JSON.

use std::io::{self, Write};

use kernel_text::cpus::CpuSet;
use screen::{GOOD, HEAD, QUIET, Screen, Style, WARN, WRONG, wrap};
use serde_json::json;
use text::json::document;

use super::pollers::shown_share;
use super::{Finding, Level, Poller, Subject};

/// Width before a reason, for the level and the key.
const MARGIN: usize = 24;
/// Minimum width of a reason.
const MIN_REASON_WIDTH: usize = 30;

/// Result of the checks.
pub struct CheckReport {
    pub(super) cpus: CpuSet,
    pub(super) pollers: Vec<Poller>,
    /// Findings, worst first.
    pub(super) findings: Vec<Finding>,
    /// Time for which the machine was watched, in nanoseconds.
    pub(super) window: u64,
}

impl CheckReport {
    /// Returns true if a finding is red.
    pub fn is_red(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.level == Level::Red)
    }

    /// Writes a list for people.
    pub fn text(&self, to: &mut impl Write, screen: Screen) -> io::Result<()> {
        let counts = [Level::Red, Level::Yellow, Level::Unknown, Level::Green].map(|level| {
            let count = self
                .findings
                .iter()
                .filter(|finding| finding.level == level)
                .count();
            format!("{count} {}", level.as_str())
        });
        let title = format!("CPU {}: {}", self.cpus, counts.join(", "));
        writeln!(to, "{}", screen.paint(HEAD, title))?;
        for poller in &self.pollers {
            let pinned = if poller.is_pinned { ", pinned" } else { "" };
            let share = poller.ran.map_or_else(String::new, |ran| {
                format!(", {} of its time", shown_share(ran, self.window))
            });
            let text = format!(
                "poller {} [{}] on CPU {}{pinned}, {}{share}",
                poller.name, poller.tid, poller.cpu, poller.policy
            );
            for (nth, line) in lines(&text, screen, 4).iter().enumerate() {
                let indent = if nth == 0 { "  " } else { "    " };
                writeln!(to, "{indent}{line}")?;
            }
        }
        if self.pollers.is_empty() {
            writeln!(to, "  no thread polls there")?;
        }
        writeln!(to)?;
        self.findings
            .iter()
            .try_for_each(|finding| print(finding, to, screen))
    }

    /// Writes one object for the CPUs and pollers checked, then one for each finding.
    pub fn json(&self, to: &mut impl Write) -> io::Result<()> {
        let pollers: Vec<_> = self
            .pollers
            .iter()
            .map(|it| {
                json!({ "pid": it.pid, "tid": it.tid, "name": it.name, "cpu": it.cpu, "pinned": it.is_pinned, "policy": it.policy,
                    "share_percent": it.share })
            })
            .collect();
        let checked =
            json!({ "cpus": self.cpus.to_string(), "window_ns": self.window, "pollers": pollers });
        writeln!(to, "{}", document("cpus.checked", &checked))?;
        for it in &self.findings {
            let (interrupts, tid) = match &it.subject {
                Subject::Interrupts(numbers) => (Some(numbers), None),
                Subject::Thread(tid) => (None, Some(tid)),
                Subject::Machine => (None, None),
            };
            let (setting, value) = it.setting.clone().unzip();
            let finding = json!({ "key": it.key.as_str(), "level": it.level.as_str(), "cpus": it.cpus.to_string(),
                "reason": it.reason, "setting": setting, "value": value, "change": it.change, "interrupts": interrupts, "tid": tid });
            writeln!(to, "{}", document("cpus.finding", &finding))?;
        }
        Ok(())
    }
}

/// Breaks a text into lines for a terminal with that margin on the left; a file or a pipe gets it
/// as it is.
fn lines(text: &str, screen: Screen, margin: usize) -> Vec<String> {
    match screen.width() {
        Some(width) => wrap(text, width.saturating_sub(margin).max(MIN_REASON_WIDTH)),
        None => vec![text.to_owned()],
    }
}

/// Writes one finding: level, key and reason; the setting and its value; and the lines that change
/// it, unwrapped, so that they can be pasted.
fn print(finding: &Finding, to: &mut impl Write, screen: Screen) -> io::Result<()> {
    let mut reason = lines(&finding.reason, screen, MARGIN).into_iter();
    let (level, key) = (finding.level.as_str(), finding.key.as_str());
    let first = reason.next().unwrap_or_default();
    writeln!(
        to,
        "{:<7} {key:<15} {first}",
        screen.paint(style(finding.level), level)
    )?;
    for line in reason {
        writeln!(to, "{:MARGIN$}{line}", "")?;
    }
    // A good setting needs no more.
    if finding.level == Level::Green {
        return Ok(());
    }
    if let Some((setting, value)) = &finding.setting {
        for line in lines(&format!("{setting}: {value}"), screen, MARGIN) {
            writeln!(to, "{:MARGIN$}{}", "", screen.paint(QUIET, line))?;
        }
    }
    for line in &finding.change {
        writeln!(to, "{:MARGIN$}> {line}", "")?;
    }
    Ok(())
}

fn style(level: Level) -> Style {
    match level {
        Level::Red => WRONG,
        Level::Yellow | Level::Unknown => WARN,
        Level::Green => GOOD,
    }
}
