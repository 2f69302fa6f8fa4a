//! Windows of the programs in the kernel: announces them, arms triggers for them, cuts and closes
//! them.

use sys::clock::monotonic_nanos;

use super::tracer::Tracer;
use crate::error::DelayError;
use crate::layout::{COUNTS, Counts, TURNS, WINDOW, WINDOW_SHIFT, WindowValue, armed};
use crate::sample::Window;

/// Lead of an announced time, in nanoseconds: all CPUs must be able to read it before it comes,
/// even if dptrace loses its CPU.
const LEAD_NANOS: u64 = 2_000_000;
/// Maximum number of repeated announcements of a window, each with twice the lead, if it could be
/// read too late.
const ANNOUNCEMENTS: u32 = 8;
/// Time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// State of a window.
#[derive(Clone, Copy, Debug)]
pub struct WindowState {
    /// Window; its times mean nothing before it has begun.
    pub window: Window,
    /// True if it was announced, and all programs see its start.
    pub has_begun: bool,
    /// True if a trigger stopped it, and all programs see its stop.
    pub is_stopped: bool,
}

impl Tracer {
    /// Announces a window of this length, which starts at once. If its start came before it could
    /// be read, the time between would be lost: then it is announced again.
    pub fn open(&mut self, length: Option<u64>, armed: u32) -> Result<Window, DelayError> {
        let mut ahead = LEAD_NANOS;
        loop {
            let start = monotonic_nanos() + ahead;
            let stop = length.map_or(NEVER, |length| start.saturating_add(length));
            let window = Window {
                start,
                stop,
                number: self.number,
                edge: 0,
            };
            let value = window_value(&window, armed);
            self.put_window(&value)?;
            if monotonic_nanos() < start || ahead >= LEAD_NANOS << ANNOUNCEMENTS {
                return Ok(window);
            }
            self.put_window(&WindowValue {
                start: NEVER,
                stop: NEVER,
                ..value
            })?;
            self.prepare()?;
            ahead *= 2;
        }
    }

    /// Arms a trigger for the start; the window then has this length, or a trigger ends it.
    pub fn arm(&mut self, length: Option<u64>) -> Result<(), DelayError> {
        let missed = self.get::<Counts>(COUNTS)?.missed;
        self.missed += missed - self.missed_before.unwrap_or(missed);
        // Later than any time, but small enough that a time can be added without wrapping.
        let duration = length.unwrap_or(NEVER / 2);
        let value = window_value(
            &Window {
                start: NEVER,
                stop: NEVER,
                number: self.number,
                edge: 0,
            },
            armed::FOR_START,
        );
        self.put_window(&WindowValue {
            duration,
            start_took: 0,
            ..value
        })
    }

    /// Reads the window and its state.
    pub fn window(&self) -> Result<WindowState, DelayError> {
        let WindowValue {
            start,
            stop,
            start_took,
            stop_took,
            ..
        } = self.get(WINDOW)?;
        let edge = start_took.saturating_sub(1) + stop_took.saturating_sub(1);
        let window = Window {
            start,
            stop,
            number: self.number,
            edge,
        };
        Ok(WindowState {
            window,
            has_begun: start_took != 0,
            is_stopped: stop_took != 0,
        })
    }

    /// Ends the window very soon, unless it has ended or never began.
    pub fn cut(&self) -> Result<Window, DelayError> {
        let WindowState { mut window, .. } = self.window()?;
        let stop = monotonic_nanos() + LEAD_NANOS;
        window.stop = window.stop.min(stop.max(window.start));
        self.put_window(&window_value(&window, armed::NO))?;
        Ok(window)
    }

    /// Takes the turn from the triggers once a window is over, so that later hits are missed.
    pub fn close(&mut self, window: &Window) -> Result<(), DelayError> {
        self.put_window(&window_value(window, armed::NO))?;
        self.missed_before = Some(self.get::<Counts>(COUNTS)?.missed);
        Ok(())
    }

    /// Announces a window, and the holder of the turn.
    fn put_window(&self, value: &WindowValue) -> Result<(), DelayError> {
        // If programs can exchange a word, there is no map of turns.
        let Ok(turns) = self.map(TURNS) else {
            return self.put(WINDOW, value);
        };
        turns.clear()?;
        self.put(WINDOW, value)?;
        let turn = value.armed as u32;
        if [armed::FOR_START, armed::FOR_STOP].contains(&turn) {
            turns.put(turn, &turn)?;
        }
        Ok(())
    }

    /// Sets the window's start to "never" before anything of the next one is written; see
    /// `emit::window_bounds`.
    pub(super) fn end_window(&self) -> Result<(), DelayError> {
        self.put(
            WINDOW,
            &WindowValue {
                start: NEVER,
                ..self.get(WINDOW)?
            },
        )
    }
}

/// Converts a window to the value of its map.
fn window_value(window: &Window, armed: u32) -> WindowValue {
    let Window {
        start,
        stop,
        number,
        edge,
    } = *window;
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
