//! The screen: draws each second, and reacts to keys and the mouse.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use console::full_screen::{self, FullScreen};
use console::interrupt::Interrupt;
use console::messages::explained;
use console::output::Output;
use console::terminal;
use text::printable;
use top::{Choice, Effect, Key, Keys, Model, Picker, Tab};
use top_feed::{FeedOptions, Feeds, Processes, Sources, Subject};
use whole_file::Access;

/// Time to wait for a key.
const KEY_TIMEOUT: Duration = Duration::from_millis(100);
/// A byte that could begin a sequence is the key Escape after this time.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(25);
/// Time between two readings of the list of processes.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// The screen with its keys, for one process after the other.
pub(super) struct Watch<'a> {
    pub(super) options: &'a FeedOptions,
    /// Processes from which the user chooses; all if this is empty.
    pub(super) among: Vec<u32>,
    pub(super) interrupt: Interrupt,
    pub(super) screen: FullScreen,
    pub(super) has_mouse: bool,
    pub(super) keys: Keys,
}

/// The next process, or the end.
enum Next {
    Process(u32),
    Back,
    Quit,
}

impl Watch<'_> {
    /// Shows this process, or the ones that the user chooses, until a key ends it, or a signal, or
    /// the end of the terminal.
    pub(super) fn run(&mut self, first: Option<(Subject, Sources)>) -> anyhow::Result<()> {
        let (mut shown, mut why) = (first, None);
        loop {
            let next = match shown.take() {
                Some((subject, sources)) => self.show(&subject, sources)?,
                None => self.pick(false, why.take())?,
            };
            let Next::Process(pid) = next else {
                return Ok(());
            };
            let open = || {
                Ok((
                    Subject::open(pid)?,
                    Sources::open(
                        &self.options.chosen(pid),
                        self.options,
                        &terminal::observer(),
                    )?,
                ))
            };
            match open() {
                Ok(opened) => shown = Some(opened),
                Err(error) => why = Some(explained(&error)),
            }
        }
    }

    /// Lets the user choose a process.
    fn pick(&mut self, can_return: bool, why: Option<String>) -> anyhow::Result<Next> {
        let mut processes = Processes::watch(self.among.clone());
        let mut picker = Picker::new(can_return, why);
        let mut due = Instant::now();
        loop {
            let is_due = Instant::now() >= due;
            if is_due {
                picker.set(processes.read());
                due = Instant::now() + LIST_INTERVAL;
            }
            let keys = self.keys()?;
            for key in keys.iter().flatten() {
                match picker.key(*key) {
                    Choice::None => {}
                    Choice::Process(pid) => {
                        picker.say(format!("attaching to process {pid}"));
                        self.screen
                            .draw(|look, cells| top::draw_picker(&mut picker, look, cells))?;
                        return Ok(Next::Process(pid));
                    }
                    Choice::Suspend => self.screen.suspend()?,
                    Choice::Back => return Ok(Next::Back),
                    Choice::Quit => return Ok(Next::Quit),
                }
            }
            match keys {
                None => return Ok(Next::Quit),
                Some(keys) if !is_due && keys.is_empty() && !self.screen.is_resized() => {}
                Some(_) => self
                    .screen
                    .draw(|look, cells| top::draw_picker(&mut picker, look, cells))?,
            }
        }
    }

    fn show(&mut self, subject: &Subject, sources: Sources) -> anyhow::Result<Next> {
        let mut model = Model::new(&subject.title(), sources.missing.clone());
        model.set_mouse(self.has_mouse);
        self.screen
            .draw(|look, cells| top::draw(&mut model, look, cells))?;
        let mut feeds = sources.start(self.options, true, &terminal::observer())?;
        let next = self.follow(subject, &mut model, &mut feeds);
        if !matches!(next, Ok(Next::Process(_))) {
            // First: detaching takes a moment, and the keys are the shell's by then.
            full_screen::give_back();
        }
        feeds.finish();
        next
    }

    fn follow(
        &mut self,
        subject: &Subject,
        model: &mut Model,
        feeds: &mut Feeds,
    ) -> anyhow::Result<Next> {
        loop {
            let mut is_new = false;
            while let Some(sample) = feeds.next(Duration::ZERO)? {
                model.push(sample);
                is_new = true;
            }
            if model.tab() == Tab::Cpus && !model.has_ended() {
                feeds.audit()?;
            }
            if model.tab() == Tab::Pollers && !model.has_ended() {
                feeds.read_pollers()?;
            }
            if let Some(why) = feeds.no_pollers() {
                model.no_pollers(why);
                is_new = true;
            }
            if let Some(why) = feeds.no_cpus() {
                model.no_cpus(why);
                is_new = true;
            }
            if !model.has_ended() && subject.has_ended() {
                model.end();
                is_new = true;
            }
            if is_new || self.screen.is_resized() {
                self.screen
                    .draw(|look, cells| top::draw(model, look, cells))?;
            }
            let Some(keys) = self.keys()? else {
                return Ok(Next::Quit);
            };
            for key in &keys {
                match model.key(*key) {
                    Effect::None => {}
                    Effect::Quit => return Ok(Next::Quit),
                    Effect::Suspend => self.screen.suspend()?,
                    Effect::Mouse => {
                        self.has_mouse = model.has_mouse();
                        self.screen
                            .use_mouse(self.has_mouse)
                            .context("taking the mouse")?;
                    }
                    Effect::Pick => match self.pick(true, None)? {
                        Next::Process(pid) if pid == subject.pid => {}
                        Next::Back => {}
                        other => return Ok(other),
                    },
                    Effect::Write => {
                        let written = write(subject, model)
                            .unwrap_or_else(|error| format!("not written: {error:#}"));
                        model.say(written);
                    }
                }
            }
            if !keys.is_empty() {
                self.screen
                    .draw(|look, cells| top::draw(model, look, cells))?;
            }
        }
    }

    /// Returns the keys that were typed; `None` if it is time to end.
    fn keys(&mut self) -> anyhow::Result<Option<Vec<Key>>> {
        let is_waiting = self.keys.is_waiting();
        let timeout = if is_waiting {
            ESCAPE_TIMEOUT
        } else {
            KEY_TIMEOUT
        };
        let bytes = full_screen::read_keys(timeout)?;
        if self.interrupt.is_requested() {
            return Ok(None);
        }
        Ok(bytes.map(|bytes| match bytes.as_slice() {
            [] => self.keys.rest().into_iter().collect(),
            bytes => self.keys.feed(bytes),
        }))
    }
}

/// Writes the second that is shown into a file of its own, and says which.
fn write(subject: &Subject, model: &Model) -> anyhow::Result<String> {
    let sample = model.sample();
    let path = subject.free_file(sample.number)?;
    let mut output = Output::whole(Some(&path), Access::Umask)?;
    output
        .buffer
        .extend_from_slice(format!("{}\n", top::json(&subject.title(), sample)).as_bytes());
    output.finish()?;
    let capture = format!("dptrace capture -p {} --for 10s", subject.pid);
    Ok(format!(
        "written: {} ({capture} keeps all records and events)",
        printable::path(&path)
    ))
}
