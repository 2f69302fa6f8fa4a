//! Windows of the programs in the kernel: announces them, gives them to triggers, cuts and closes them.

use sys::clock::monotonic_nanos;

use super::tracer::Tracer;
use crate::error::DelayError;
use crate::layout::{COUNTS, Counts, TURNS, WINDOW, WINDOW_SHIFT, WindowValue, armed};
use crate::sample::Window;

/// Lead of an announced time, in nanoseconds: all CPUs must be able to read it before it comes, even if dptrace loses its CPU.
const AHEAD: u64 = 2_000_000;
/// Maximum number of times a window is announced again, each time with twice the lead, if it could be read too late.
const ANNOUNCEMENTS: u32 = 8;
/// Time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// State of a window.
#[derive(Clone, Copy, Debug)]
pub struct WindowState {
    /// The window; its times mean nothing before it has begun.
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
            let window = Window { start, stop, number: self.number, edge: 0 };
            let value = window_value(&window, armed);
            self.put_window(&value)?;
            if monotonic_nanos() < start || ahead >= AHEAD << ANNOUNCEMENTS {
                return Ok(window);
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

    /// Reads the window and its state.
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
            turns.put(turn, &turn)?;
        }
        Ok(())
    }

    /// Makes the window's start "never" before anything of the next one is written: `emit::window_bounds` says why.
    pub(super) fn end_window(&self) -> Result<(), DelayError> {
        self.put(WINDOW, &WindowValue { start: NEVER, ..self.get(WINDOW)? })
    }
}

/// Converts a window to the value of its map.
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
