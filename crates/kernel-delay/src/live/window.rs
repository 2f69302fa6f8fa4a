//! The window of the programs in the kernel: announced, given to triggers, cut, closed.

use sys::clock::monotonic_nanos;
use zerocopy::IntoBytes as _;

use super::tracer::Tracer;
use crate::error::DelayError;
use crate::layout::{COUNTS, Counts, TURNS, WINDOW, WINDOW_SHIFT, WindowValue, armed};
use crate::sample::Window;

/// How far ahead of now a time is set: all CPUs must be able to read it before it comes, and we may lose ours meanwhile.
const AHEAD: u64 = 2_000_000;
/// How often a window is announced anew, each time further ahead, where it could be read too late.
const ANNOUNCEMENTS: u32 = 8;
/// The greatest time: not yet.
pub(super) const NEVER: u64 = u64::MAX;

/// A window at a moment.
#[derive(Clone, Copy, Debug)]
pub struct WindowState {
    /// The window. Where a trigger has not started it yet its times are of no use.
    pub window: Window,
    /// Whether it was announced, and its start is known to all programs.
    pub has_begun: bool,
    /// Whether a trigger stopped it, and its stop is known to all programs.
    pub is_stopped: bool,
}

impl Tracer {
    /// Announces a window of this length, which starts at once. What comes between its start and the moment at which it
    /// can be read would be lost: then it is announced anew.
    pub fn open(&mut self, length: Option<u64>, armed: u32) -> Result<Window, DelayError> {
        let mut ahead = AHEAD;
        loop {
            let start = monotonic_nanos() + ahead;
            let stop = length.map_or(NEVER, |length| start.saturating_add(length));
            let value = window_value(&Window { start, stop, number: self.number, edge: 0 }, armed);
            self.put_window(&value)?;
            if monotonic_nanos() < start || ahead >= AHEAD << ANNOUNCEMENTS {
                return Ok(Window { start, stop, number: self.number, edge: 0 });
            }
            self.put_window(&WindowValue { start: NEVER, stop: NEVER, ..value })?;
            self.prepare()?;
            ahead *= 2;
        }
    }

    /// Gives the start to a trigger; the window is then of this length, or ends by a trigger.
    pub fn arm(&mut self, length: Option<u64>) -> Result<(), DelayError> {
        let missed = self.get::<Counts>(COUNTS)?.missed;
        self.missed += missed - self.missed_before.unwrap_or(missed);
        // So large that it is later than any time, and that a time added to it is no small number.
        let duration = length.unwrap_or(NEVER / 2);
        let value = window_value(&Window { start: NEVER, stop: NEVER, number: self.number, edge: 0 }, armed::FOR_START);
        self.put_window(&WindowValue { duration, start_took: 0, ..value })
    }

    /// The window as it is now.
    pub fn window(&self) -> Result<WindowState, DelayError> {
        let WindowValue { start, stop, start_took, stop_took, .. } = self.get(WINDOW)?;
        let edge = start_took.saturating_sub(1) + stop_took.saturating_sub(1);
        let window = Window { start, stop, number: self.number, edge };
        Ok(WindowState { window, has_begun: start_took != 0, is_stopped: stop_took != 0 })
    }

    /// Ends the window very soon, unless it has ended or never began.
    pub fn cut(&self) -> Result<Window, DelayError> {
        let WindowState { mut window, .. } = self.window()?;
        let stop = monotonic_nanos() + AHEAD;
        window.stop = window.stop.min(stop.max(window.start));
        self.put_window(&window_value(&window, armed::NO))?;
        Ok(window)
    }

    /// Takes the turn from the triggers once a window is over, so that those that come now are missed.
    pub fn close(&mut self, window: &Window) -> Result<(), DelayError> {
        self.put_window(&window_value(window, armed::NO))?;
        self.missed_before = Some(self.get::<Counts>(COUNTS)?.missed);
        Ok(())
    }

    /// Announces a window, and whose turn it is.
    fn put_window(&self, value: &WindowValue) -> Result<(), DelayError> {
        // Where programs can exchange a word there is no map of turns.
        let Ok(turns) = self.map(TURNS) else { return self.put(WINDOW, value) };
        turns.clear()?;
        self.put(WINDOW, value)?;
        let turn = value.armed as u32;
        if [armed::FOR_START, armed::FOR_STOP].contains(&turn) {
            turns.map.update(turn.as_bytes(), turn.as_bytes()).map_err(|source| turns.failed(source))?;
        }
        Ok(())
    }

    /// Makes the window's start "never" before anything of the next one is written: `emit::window_bounds` says why.
    pub(super) fn end_window(&self) -> Result<(), DelayError> {
        self.put(WINDOW, &WindowValue { start: NEVER, ..self.get(WINDOW)? })
    }
}

/// What the window's map holds of a window.
fn window_value(window: &Window, armed: u32) -> WindowValue {
    let Window { start, stop, number, edge } = *window;
    WindowValue {
        start,
        stop,
        number: u64::from(number) << WINDOW_SHIFT,
        duration: 0,
        start_took: edge + 1,
        stop_took: 0,
        armed: armed.into(),
    }
}
