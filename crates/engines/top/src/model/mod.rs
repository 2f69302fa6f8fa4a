//! State of the screen, and what a key changes.

use crate::history::History;
use crate::keys::Key;
use crate::mouse::Places;
use crate::sample::Sample;
use crate::table::{Id, Row, Table};
use crate::{cpus, views};

/// Tab of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tab {
    /// Connections of the process.
    #[default]
    Connections,
    /// Threads of the process.
    Threads,
    /// Stages of requests.
    Stages,
    /// CPUs of its pollers.
    Cpus,
    /// Pollers of its SPDK threads.
    Pollers,
}

impl Tab {
    /// All tabs with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Connections, "Connections"),
        (Self::Threads, "Threads"),
        (Self::Stages, "Stages"),
        (Self::Cpus, "CPUs"),
        (Self::Pollers, "Pollers"),
    ];
}

/// Task for the reader of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Draw.
    None,
    /// Quit.
    Quit,
    /// Write the shown second as JSON.
    Write,
    /// Take the mouse, or give it back: see [`Model::has_mouse`].
    Mouse,
    /// Choose another process.
    Pick,
    /// Stop the program until the shell continues it.
    Suspend,
}

/// View on top of the tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Overlay {
    #[default]
    Nothing,
    /// Selected line with its history and its slowest requests.
    Details,
    /// Help on the keys.
    Help,
}

/// State of the screen.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Process that is shown: `nvmf_tgt [1234]`.
    pub(crate) subject: String,
    /// Reasons why a tab is empty: of the trace, the kernel, the CPUs, and the pollers.
    pub(crate) missing: [Option<String>; 4],
    has_ended: bool,
    pub(crate) tab: Tab,
    pub(crate) over: Overlay,
    history: History,
    /// Newest second.
    newest: Sample,
    /// Second that was frozen, if one was.
    frozen: Option<Box<Sample>>,
    pub(crate) orders: [(usize, bool); 5],
    pub(crate) filter: String,
    /// Filter before it was edited, while it is edited.
    pub(crate) before_filter: Option<String>,
    pub(crate) selected: [Option<Id>; 5],
    /// First line that is shown, of each tab.
    pub(crate) scrolled: [usize; 5],
    /// First line that is shown of the view on top of the tab.
    pub(crate) scrolled_over: usize,
    /// True if clicks and the wheel are for top, and not for the terminal.
    pub(crate) has_mouse: bool,
    pub(crate) places: Places,
    /// Lines of a page, as it was drawn last.
    pub(crate) page: usize,
    /// Message that is shown until the next key.
    pub(crate) message: Option<String>,
}

impl Model {
    /// Creates a model of that process. `missing` has the reasons why the trace and the kernel give
    /// nothing.
    pub fn new(subject: &str, missing: [Option<String>; 2]) -> Self {
        let tab = if missing[0].is_some() {
            Tab::Threads
        } else {
            Tab::Connections
        };
        let orders = views::FIRST_ORDER.map(|column| (column, false));
        let [of_trace, of_kernel] = missing;
        let missing = [of_trace, of_kernel, None, None];
        Self {
            subject: subject.to_owned(),
            missing,
            tab,
            orders,
            page: 10,
            ..Self::default()
        }
    }

    /// Takes the next second.
    pub fn push(&mut self, sample: Sample) {
        self.history.push(&sample);
        self.newest = sample;
    }

    /// Sets the reason why there is nothing of the CPUs.
    pub fn no_cpus(&mut self, why: String) {
        self.missing[2] = Some(why);
    }

    /// Sets the reason why there is nothing of the pollers.
    pub fn no_pollers(&mut self, why: String) {
        self.missing[3] = Some(why);
    }

    /// Returns the tab that is shown.
    pub fn tab(&self) -> Tab {
        self.tab
    }

    /// Sets whether clicks and the wheel are for top, and not for the terminal.
    pub fn set_mouse(&mut self, is_ours: bool) {
        self.has_mouse = is_ours;
    }

    /// Returns true if clicks and the wheel are for top, and not for the terminal.
    pub fn has_mouse(&self) -> bool {
        self.has_mouse
    }

    /// Returns the second that is shown: the newest one unless one is frozen.
    pub fn sample(&self) -> &Sample {
        self.frozen.as_deref().unwrap_or(&self.newest)
    }

    /// Returns true if a second is frozen.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Returns true if the process has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Marks the process as ended: its last second stays.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    /// Returns the history of the last minutes.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn index(&self) -> usize {
        self.tab as usize
    }

    /// Returns the filtered rows of the tab, in their order.
    pub(crate) fn table(&self) -> Table<'_> {
        let (sample, order) = (self.sample(), self.orders[self.index()]);
        match self.tab {
            Tab::Connections => views::connections(sample, order, &self.filter),
            Tab::Threads => views::threads(sample, order, &self.filter),
            Tab::Stages => views::stages(sample, order, &self.filter),
            Tab::Cpus => cpus::table(sample, order, &self.filter),
            Tab::Pollers => views::pollers(sample, order, &self.filter),
        }
    }

    /// Returns the place of the selected row, or 0 if it is missing.
    pub(crate) fn selected(&self, rows: &[Row<'_>]) -> usize {
        let id = self.selected[self.index()].as_ref();
        id.and_then(|id| rows.iter().position(|row| row.is(id)))
            .unwrap_or(0)
    }

    /// Returns the selected item, even if it has no row in this second.
    pub(crate) fn selected_id(&self) -> Option<Id> {
        self.selected[self.index()]
            .clone()
            .or_else(|| self.table().rows.first().map(Row::id))
    }

    /// Handles a key.
    pub fn key(&mut self, key: Key) -> Effect {
        self.message = None;
        if key == Key::Ctrl('c') {
            return Effect::Quit;
        }
        if key == Key::Ctrl('z') {
            return Effect::Suspend;
        }
        if self.before_filter.is_some() {
            self.type_filter(key);
            return Effect::None;
        }
        match key {
            Key::Char('w') => return Effect::Write,
            Key::Char('p') => return Effect::Pick,
            Key::Char('m') => return self.take_mouse(),
            Key::Click(..) | Key::WheelUp | Key::WheelDown => self.use_mouse(key),
            Key::Char('q') if self.over != Overlay::Nothing => self.over = Overlay::Nothing,
            Key::Char('q' | 'Q') | Key::F(10) => return Effect::Quit,
            // Any key without a meaning quits: there is nothing more to come.
            _ if self.has_ended() && self.is_unknown(key) => return Effect::Quit,
            Key::Char('?' | 'h') | Key::F(1) if self.over == Overlay::Help => {
                self.over = Overlay::Nothing;
            }
            Key::Char('?' | 'h') | Key::F(1) => self.open(Overlay::Help),
            Key::Char(' ' | 'z' | 'Z') => self.freeze(),
            Key::Escape => self.leave(),
            _ if self.over == Overlay::Nothing => self.key_of_tab(key),
            _ => self.key_over(key),
        }
        Effect::None
    }

    /// Returns true if a key has no meaning here.
    fn is_unknown(&self, key: Key) -> bool {
        let is_letter = |c: char| "?h zZ12345/\\<>,.IRrkjgGlFwmp".contains(c);
        match key {
            Key::Char(c) => !is_letter(c),
            Key::Escape => {
                self.over == Overlay::Nothing && self.filter.is_empty() && !self.is_frozen()
            }
            Key::Ctrl(_) => true,
            _ => false,
        }
    }

    pub(crate) fn open(&mut self, over: Overlay) {
        (self.over, self.scrolled_over) = (over, 0);
    }

    fn freeze(&mut self) {
        self.frozen = if self.frozen.is_some() {
            None
        } else {
            Some(Box::new(self.newest.clone()))
        };
    }

    /// Closes the view on top of the tab; without one clears the filter; without a filter ends the
    /// freeze.
    fn leave(&mut self) {
        if self.over != Overlay::Nothing {
            self.over = Overlay::Nothing;
        } else if !self.filter.is_empty() {
            self.filter.clear();
        } else {
            self.frozen = None;
        }
    }

    fn key_of_tab(&mut self, key: Key) {
        match key {
            Key::Tab | Key::Right | Key::Char('l') => self.turn(1),
            Key::BackTab | Key::Left => self.turn(Tab::ALL.len() - 1),
            Key::Char('1') => self.tab = Tab::Connections,
            Key::Char('2') => self.tab = Tab::Threads,
            Key::Char('3') => self.tab = Tab::Stages,
            Key::Char('4') => self.tab = Tab::Cpus,
            Key::Char('5') => self.tab = Tab::Pollers,
            Key::Char('/' | '\\') | Key::F(3 | 4) => self.before_filter = Some(self.filter.clone()),
            Key::Char('>' | '.') | Key::F(6) => self.order_by(1),
            Key::Char('<' | ',') => self.order_by(-1),
            Key::Char('I' | 'R' | 'r') => self.orders[self.index()].1 ^= true,
            Key::Char('F') => self.frozen = None,
            Key::Enter => {
                // From now on this item stays selected, wherever its line goes.
                self.selected[self.index()] = self.selected_id();
                self.open(Overlay::Details);
            }
            _ => self.move_selected(key),
        }
    }

    fn turn(&mut self, by: usize) {
        self.tab = Tab::ALL[(self.index() + by) % Tab::ALL.len()].0;
    }

    fn order_by(&mut self, step: isize) {
        let columns = self.table().columns.len();
        let order = &mut self.orders[self.tab as usize];
        order.0 = (order.0 + columns).saturating_add_signed(step) % columns;
    }

    pub(crate) fn move_selected(&mut self, key: Key) {
        let rows = self.table().rows;
        let at = moved(key, self.selected(&rows), rows.len(), self.page);
        if let Some(id) = at.and_then(|at| rows.get(at)).map(Row::id) {
            self.selected[self.tab as usize] = Some(id);
        }
    }

    pub(crate) fn key_over(&mut self, key: Key) {
        if key == Key::Enter {
            self.over = Overlay::Nothing;
        } else if let Some(at) = moved(key, self.scrolled_over, usize::MAX, self.page) {
            self.scrolled_over = if at == usize::MAX - 1 {
                self.scrolled_over
            } else {
                at
            };
        }
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) if self.filter.len() < 200 => self.filter.push(c),
            Key::Backspace => drop(self.filter.pop()),
            Key::Ctrl('u') => self.filter.clear(),
            Key::Enter => self.before_filter = None,
            Key::Escape => self.filter = self.before_filter.take().unwrap_or_default(),
            _ => self.move_selected(key),
        }
    }
}

/// Returns the place in a list of `count` lines to which a key moves from `at`, with pages of `page`
/// lines; `None` for other keys.
pub(crate) fn moved(key: Key, at: usize, count: usize, page: usize) -> Option<usize> {
    let (last, page) = (count.saturating_sub(1), page.max(1));
    Some(match key {
        Key::Up | Key::Char('k') | Key::Ctrl('p') => at.saturating_sub(1),
        Key::Down | Key::Char('j') | Key::Ctrl('n') => (at + 1).min(last),
        Key::PageUp | Key::Ctrl('b') => at.saturating_sub(page),
        Key::PageDown | Key::Ctrl('f') => (at + page).min(last),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
