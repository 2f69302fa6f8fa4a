//! List of processes from which one is chosen: `dptrace top` without a process, and its key `p`.

use std::cmp::Reverse;
use std::ops::Range;

use ordering::Order as _;

use crate::keys::Key;
use crate::model::moved;
use crate::table::{Cell, Column, Table, percent};
use crate::views::{figure, matches, text};

/// Process that can be chosen. Its texts are printable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Number of the process.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// True if it writes an SPDK trace.
    pub has_trace: bool,
    /// True if it may be inspected by this user.
    pub is_ours: bool,
    /// CPU time per time: 2.0 for two CPUs.
    pub cpu: f64,
    /// Command line.
    pub command: String,
}

/// Outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing is chosen yet.
    None,
    /// This process.
    Process(u32),
    /// Stop the program until the shell continues it.
    Suspend,
    /// Return to the process that was shown, or quit if none was.
    Back,
    /// Quit.
    Quit,
}

/// List with its filter and its selected line.
#[derive(Clone, Debug, Default)]
pub struct Picker {
    /// Processes in the order in which they are shown.
    all: Vec<Candidate>,
    pub(crate) filter: String,
    /// True while a filter is typed, which may then begin with `q`.
    is_typing: bool,
    selected: Option<u32>,
    /// First line that is shown.
    pub(crate) scrolled: usize,
    /// Lines of a page, as it was drawn last.
    pub(crate) page: usize,
    /// Lines of the rows on the screen.
    pub(crate) rows: Range<u16>,
    /// True if a process is shown already, to which Escape returns.
    pub(crate) can_return: bool,
    /// Message that is shown until the next key.
    pub(crate) message: Option<String>,
}

/// Columns of the list.
pub(crate) const COLUMNS: &[Column] = &[
    figure("PID", 7, 0),
    text("NAME", 10, 24, 0),
    figure("CPU", 5, 1),
    text("TRACE", 5, 9, 2),
    text("COMMAND", 12, 200, 3),
];

impl Picker {
    /// Creates an empty list. With `can_return`, Escape returns to the process that was shown
    /// before. The message, if any, says why the chosen one could not be shown.
    pub fn new(can_return: bool, message: Option<String>) -> Self {
        Self {
            can_return,
            message,
            page: 10,
            ..Self::default()
        }
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    /// Takes the processes as they are now. Those with a trace come first, then those that may be
    /// inspected, each the busiest first.
    pub fn set(&mut self, mut all: Vec<Candidate>) {
        all.order_by(|a, b| {
            Reverse((a.has_trace, a.is_ours))
                .cmp(&Reverse((b.has_trace, b.is_ours)))
                .then_with(|| b.cpu.total_cmp(&a.cpu))
                .then_with(|| a.pid.cmp(&b.pid))
        });
        self.all = all;
        self.keep_selected();
    }

    /// Returns the processes that match the filter.
    pub(crate) fn shown(&self) -> Vec<&Candidate> {
        let all = self.all.iter();
        all.filter(|it| matches(&self.filter, &[&it.name, &it.command, &it.pid.to_string()]))
            .collect()
    }

    /// Returns the place of the selected process.
    pub(crate) fn place(&self, shown: &[&Candidate]) -> usize {
        let at = shown.iter().position(|it| Some(it.pid) == self.selected);
        at.unwrap_or(0)
    }

    /// Keeps a process selected: with the next order of the list, another one would be under the
    /// hand that presses Enter.
    fn keep_selected(&mut self) {
        let shown = self.shown();
        self.selected = shown.get(self.place(&shown)).map(|it| it.pid);
    }

    /// Handles a key.
    pub fn key(&mut self, key: Key) -> Choice {
        self.message = None;
        match key {
            Key::Ctrl('c') | Key::F(10) => return Choice::Quit,
            Key::Char('q') | Key::Escape if self.filter.is_empty() && !self.is_typing => {
                return Choice::Back;
            }
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            Key::Enter => return self.selected.map_or(Choice::None, Choice::Process),
            Key::Ctrl('z') => return Choice::Suspend,
            Key::Char('/') if self.filter.is_empty() => self.is_typing = true,
            Key::Char(c) if self.filter.len() < 200 => self.filter.push(c),
            Key::Backspace => drop(self.filter.pop()),
            Key::Ctrl('u') => self.filter.clear(),
            Key::Click(_, y) if self.rows.contains(&y) => return self.click(y),
            Key::WheelUp => self.step(Key::Up, 3),
            Key::WheelDown => self.step(Key::Down, 3),
            _ => self.step(key, 1),
        }
        self.keep_selected();
        Choice::None
    }

    fn step(&mut self, key: Key, times: usize) {
        for _ in 0..times {
            let shown = self.shown();
            let at = moved(key, self.place(&shown), shown.len(), self.page);
            if let Some(candidate) = at.and_then(|at| shown.get(at)) {
                self.selected = Some(candidate.pid);
            }
        }
    }

    /// Selects the process in that line; chooses it if it is selected already.
    fn click(&mut self, y: u16) -> Choice {
        let place = self.scrolled + usize::from(y - self.rows.start);
        let Some(pid) = self.shown().get(place).map(|it| it.pid) else {
            return Choice::None;
        };
        if self.selected.replace(pid) == Some(pid) {
            Choice::Process(pid)
        } else {
            Choice::None
        }
    }

    /// Returns an empty table of its columns, for their widths and their head.
    pub(crate) fn table() -> Table<'static> {
        Table {
            columns: COLUMNS,
            order: (usize::MAX, false),
            rows: Vec::new(),
        }
    }
}

impl Candidate {
    /// Returns the contents of its columns.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let trace = match (self.has_trace, self.is_ours) {
            (true, _) => "SPDK",
            (false, true) => "",
            (false, false) => "no rights",
        };
        vec![
            Cell::Text(self.pid.to_string()),
            Cell::Text(self.name.clone()),
            Cell::Text(percent(self.cpu)),
            Cell::Text(trace.to_owned()),
            // Its beginning says most, and is kept.
            Cell::Named(self.command.clone(), String::new()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(pid: u32, name: &str, cpu: f64, has_trace: bool) -> Candidate {
        Candidate {
            pid,
            name: name.to_owned(),
            has_trace,
            is_ours: true,
            cpu,
            command: format!("/usr/bin/{name} --flag"),
        }
    }

    fn picker() -> Picker {
        let mut picker = Picker::new(false, None);
        picker.set(vec![
            candidate(7, "idle", 0.0, false),
            candidate(8, "qemu", 1.5, false),
            candidate(9, "nvmf_tgt", 0.1, true),
            Candidate {
                is_ours: false,
                ..candidate(10, "foreign", 3.0, false)
            },
        ]);
        picker
    }

    fn pids(picker: &Picker) -> Vec<u32> {
        picker.shown().iter().map(|it| it.pid).collect()
    }

    #[test]
    fn targets_with_a_trace_come_first_and_then_the_busiest() {
        let mut picker = picker();
        assert_eq!(pids(&picker), [9, 8, 7, 10]);
        assert_eq!(picker.key(Key::Enter), Choice::Process(9));
        picker.key(Key::Down);
        assert_eq!(picker.key(Key::Enter), Choice::Process(8));
        // The order changes, and the selected process stays.
        picker.set(vec![
            candidate(7, "idle", 2.0, false),
            candidate(8, "qemu", 0.0, false),
        ]);
        assert_eq!(pids(&picker), [7, 8]);
        assert_eq!(picker.key(Key::Enter), Choice::Process(8));
        // It has ended: nobody chooses its successor by accident but in the list's first line.
        picker.set(vec![candidate(7, "idle", 2.0, false)]);
        assert_eq!(picker.key(Key::Enter), Choice::Process(7));
        picker.set(Vec::new());
        assert_eq!(picker.key(Key::Enter), Choice::None);
    }

    #[test]
    fn letters_filter_and_q_quits_only_without_a_filter() {
        let mut picker = picker();
        picker.key(Key::Char('/'));
        assert_eq!(picker.key(Key::Char('q')), Choice::None);
        assert_eq!(pids(&picker), [8]);
        assert_eq!(picker.key(Key::Enter), Choice::Process(8));
        assert_eq!(picker.key(Key::Escape), Choice::None);
        assert_eq!(pids(&picker).len(), 4);
        assert_eq!(picker.key(Key::Char('x')), Choice::None);
        assert_eq!(
            (pids(&picker).len(), picker.key(Key::Enter)),
            (0, Choice::None)
        );
        picker.key(Key::Backspace);
        assert_eq!(picker.key(Key::Char('q')), Choice::Back);
        assert_eq!(picker.key(Key::Escape), Choice::Back);
    }

    #[test]
    fn a_click_selects_and_a_second_one_chooses() {
        let mut picker = picker();
        picker.rows = 4..8;
        assert_eq!(picker.key(Key::Click(3, 5)), Choice::None);
        assert_eq!(picker.key(Key::Click(3, 5)), Choice::Process(8));
        assert_eq!(picker.key(Key::Click(3, 2)), Choice::None);
        picker.key(Key::WheelDown);
        assert_eq!(picker.key(Key::Enter), Choice::Process(10));
    }
}
