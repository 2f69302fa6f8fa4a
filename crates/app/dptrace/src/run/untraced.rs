//! Processes that those of `-p` start, and that a script does not trace.

use std::collections::HashSet;

use console::messages::note;

use super::options::RunArgs;

/// Processes whose children are not traced.
pub(super) struct UntracedChildren {
    pids: Vec<u32>,
    /// Children they had when the run began.
    known: HashSet<u32>,
}

impl UntracedChildren {
    /// Reports that the children of the named processes, which may do all the work, are not traced.
    /// `None` if they are, or if nothing is traced.
    pub(super) fn report(args: &RunArgs) -> Option<Self> {
        if !args.reports_remarks() || args.follow_forks {
            return None;
        }
        let pids = match (args.pids.as_slice(), &args.pid) {
            ([], Some(word)) => vec![word.parse().ok()?],
            ([], None) => return None,
            (pids, _) => pids.to_vec(),
        };
        if let Some(remark) = process_selector::children_left_out(&pids) {
            note(&remark);
        }
        let known = host::family::descendants(&pids)
            .into_iter()
            .chain(pids.iter().copied())
            .collect();
        Some(Self { pids, known })
    }

    /// Reports at the end how many of the later children are alive: others may have come and gone.
    pub(super) fn report_later(&self) {
        let later = host::family::descendants(&self.pids)
            .into_iter()
            .filter(|pid| !self.known.contains(pid));
        if let Some(remark) = process_selector::started_since(later.count()) {
            note(&remark);
        }
    }
}
