//! Summary of each group: its culprits, and quantiles of its stages.

use std::fmt::Write as _;

use ordering::Order as _;
use screen::{HEAD, counted, pad, pad_left, shorten, time};

use super::{Page, TIME_WIDTH, common_start};
use crate::second::BANDS;
use crate::verdict::Verdict;
use crate::words;

impl Page<'_> {
    pub(super) fn summary(&mut self, verdicts: &[Verdict<'_>]) {
        for verdict in verdicts {
            self.text.push('\n');
            let what = if verdict.subject.is_part {
                "object"
            } else {
                "request"
            };
            let count = counted(verdict.times.whole.count(), what);
            let title = format!("{}: {count}", verdict.requests(self.source));
            self.line(&self.screen.paint(HEAD, title).to_string());
            if self.source.kernel.is_some() {
                self.explained(verdict);
            }
            self.stages(verdict);
        }
    }

    fn explained(&mut self, verdict: &Verdict<'_>) {
        let sum = verdict.sum();
        if sum.requests == 0 {
            return;
        }
        self.wrapped(&verdict.explained(), "  ");
        let culprits = sum.culprits();
        for (culprit, blamed) in culprits.iter().take(3) {
            let (least, most) = blamed.mean(blamed.requests);
            let (took, of) = (
                words::bounds(least, most),
                counted(blamed.requests, "object"),
            );
            let mean = if blamed.requests == 1 {
                ""
            } else {
                " in the mean"
            };
            let line = format!(
                "  {}: {took}{mean}, of {of}",
                culprit.full_name(self.source)
            );
            self.line(&line);
        }
    }

    /// Adds a row for each stage: its quantiles, and what the kernel took of them.
    pub(super) fn stages(&mut self, verdict: &Verdict<'_>) {
        let (times, source) = (verdict.times, self.source);
        let has_kernel = source.kernel.is_some();
        let names = times
            .stages
            .keys()
            .flat_map(|(from, to)| [*from, *to])
            .map(|id| source.tpoint(id));
        let start = common_start(names).to_owned();
        let short = |id| source.tpoint(id).strip_prefix(&*start).unwrap_or("?");
        let label = |(from, to): &(u16, u16)| format!("{} -> {}", short(*from), short(*to));
        let columns = BANDS.len()
            * if has_kernel {
                2 * TIME_WIDTH
            } else {
                TIME_WIDTH
            };
        let longest = times
            .stages
            .keys()
            .map(|kind| label(kind).len())
            .max()
            .unwrap_or(0)
            .max(12);
        let longest = longest
            .min(self.width().saturating_sub(columns + 2))
            .max(12);
        let head = if start.is_empty() {
            "stage".to_owned()
        } else {
            format!("stage ({start}...)")
        };
        let mut line = format!("  {}", pad(&shorten(&head, longest), longest));
        for band in &BANDS {
            let _ = write!(line, "{:>TIME_WIDTH$}", band.name);
            line += if has_kernel { "   others" } else { "" };
        }
        self.line(&self.screen.paint(HEAD, line).to_string());
        let mut kinds: Vec<_> = times.stages.keys().copied().collect();
        kinds.order();
        for kind in kinds {
            let lengths = &times.stages[&kind];
            let mut line = format!("  {}", pad(&shorten(&label(&kind), longest), longest));
            for (index, band) in BANDS.iter().enumerate() {
                let value = lengths.quantile(band.part);
                let _ = write!(line, "{}", pad_left(&time(value), TIME_WIDTH));
                if has_kernel {
                    let loss = verdict.loss.stages.get(&kind);
                    let (least, most) = loss.map_or((0, 0), |loss| loss.taken()[index]);
                    let took = if most == 0 {
                        "-".to_owned()
                    } else {
                        kernel_took(least, most)
                    };
                    let _ = write!(line, "{}", pad_left(&took, TIME_WIDTH));
                }
            }
            self.line(&line);
        }
    }
}

/// Formats what the kernel took at most, with a `≤` if that is not certain.
fn kernel_took(least: u64, most: u64) -> String {
    let most_text = time(most);
    if time(least) == most_text {
        most_text
    } else {
        format!("≤{most_text}")
    }
}
