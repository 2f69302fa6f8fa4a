//! The screen: draws each second, and reacts to keys.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use console::full_screen::{self, Cells, TerminalGuard};
use console::interrupt::Interrupt;
use console::messages::{hold_notes, print_notes};
use console::output::Output;
use console::terminal;
use ratatui_core::terminal::Terminal;
use text::printable;
use top::{Effect, Keys, Model, Tab};
use top_feed::{FeedOptions, Feeds, Sources, Subject};
use whole_file::Access;

use super::Audit;

/// Time to wait for a key.
const KEY_TIMEOUT: Duration = Duration::from_millis(100);
/// A byte that could begin a sequence is the key Escape after this time.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(25);

/// Shows the process until a key ends it, or a signal, or the end of the terminal.
pub(super) fn watch(
    subject: &Subject,
    interrupt: Interrupt,
    sources: Sources,
    options: &FeedOptions,
    audit: Audit,
) -> anyhow::Result<()> {
    hold_notes();
    let shown = show(subject, interrupt, sources, options, audit);
    print_notes();
    shown
}

fn show(
    subject: &Subject,
    interrupt: Interrupt,
    sources: Sources,
    options: &FeedOptions,
    audit: Audit,
) -> anyhow::Result<()> {
    let ours = TerminalGuard::take().context("taking the terminal")?;
    let mut screen = Terminal::new(Cells::default()).context("looking at the terminal")?;
    let mut model = Model::new(&subject.title(), sources.missing.clone());
    if audit == Audit::Never {
        model.no_cpus("--no-kernel was given".to_owned());
    }
    let look = full_screen::capabilities();
    let mut draw = |model: &mut Model| -> anyhow::Result<()> {
        screen
            .draw(|frame| top::draw(model, look, frame.buffer_mut()))
            .context("drawing")?;
        Ok(())
    };
    draw(&mut model)?;
    let mut feeds = sources.start(options, true, &terminal::observer())?;
    if audit == Audit::AtOnce {
        feeds.audit(subject.pid)?;
    }
    let ended = follow(subject, interrupt, &mut model, &mut feeds, audit, &mut draw);
    // First: detaching takes a moment, and the keys are the shell's by then.
    drop(ours);
    feeds.finish();
    ended
}

fn follow(
    subject: &Subject,
    interrupt: Interrupt,
    model: &mut Model,
    feeds: &mut Feeds,
    audit: Audit,
    draw: &mut impl FnMut(&mut Model) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut keys, mut size) = (Keys::default(), full_screen::size());
    loop {
        let mut is_new = false;
        while let Some(sample) = feeds.next(Duration::ZERO)? {
            model.push(sample);
            is_new = true;
        }
        if audit == Audit::WhenOpened && model.tab() == Tab::Cpus && !model.has_ended() {
            feeds.audit(subject.pid)?;
        }
        if let Some(why) = feeds.no_cpus() {
            model.no_cpus(why);
            is_new = true;
        }
        if !model.has_ended() && subject.has_ended() {
            model.end();
            is_new = true;
        }
        let before = std::mem::replace(&mut size, full_screen::size());
        if is_new || size != before {
            draw(model)?;
        }
        if interrupt.is_requested() {
            return Ok(());
        }
        let Some(bytes) = full_screen::read_keys(if keys.is_waiting() {
            ESCAPE_TIMEOUT
        } else {
            KEY_TIMEOUT
        })?
        else {
            return Ok(());
        };
        let typed = if bytes.is_empty() {
            keys.rest().into_iter().collect()
        } else {
            keys.feed(&bytes)
        };
        for key in &typed {
            match model.key(*key) {
                Effect::None => {}
                Effect::Quit => return Ok(()),
                Effect::Mouse => {
                    full_screen::take_mouse(model.has_mouse()).context("taking the mouse")?;
                }
                Effect::Write => {
                    let written = write(subject, model)
                        .unwrap_or_else(|error| format!("not written: {error:#}"));
                    model.say(written);
                }
            }
        }
        if !typed.is_empty() {
            draw(model)?;
        }
    }
}

/// Writes the second that is shown into a file of its own, and says which.
fn write(subject: &Subject, model: &Model) -> anyhow::Result<String> {
    let sample = model.sample();
    let path = |more: &str| {
        PathBuf::from(format!(
            "dptrace-top-{}-{}{more}.json",
            subject.pid, sample.number
        ))
    };
    let free = (0..1000)
        .map(|n| {
            if n == 0 {
                path("")
            } else {
                path(&format!("-{n}"))
            }
        })
        .find(|path| !path.exists());
    let path = free.context("there are a thousand files of that name")?;
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
