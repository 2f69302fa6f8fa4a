//! The first and last lines of a recording: its process, and the times for which it is complete.

use spdk_trace::Ticks;

use crate::alive::WATCHED_ARG;
use crate::recording::{Event, Value, events, write_line};
use crate::spec::TSC;

/// Prefix of the names of lines about the recording itself.
pub const RECORDING: &str = "recording_";
/// Name of the first line of a recording. Its `tsc` is 0, since no time precedes it.
const BEGIN: &str = "recording_begin";
/// Name of a line with the number of lost hits: the last line, and one as soon as any are lost.
const END: &str = "recording_end";

/// The first line of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Id of the recorded process.
    pub pid: u32,
    /// Begin of the recording.
    pub since: Ticks,
    /// Time from which probes report each beginning and end; `None` if none do.
    pub watched: Option<Ticks>,
}

/// A line about the recording itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The recording begins.
    Begin(Header),
    /// The recording has lost `lost` hits; if 0, it ends.
    End {
        /// Time of the line.
        at: Ticks,
        /// Number of lost hits.
        lost: u64,
    },
}

impl Header {
    /// Finds the first line of a recording that states its process.
    pub fn find(text: &str) -> Option<Self> {
        events(text, |name| name == BEGIN, 0)
            .flatten()
            .find_map(|(_, event)| match Frame::parse(&event) {
                Some(Frame::Begin(header)) => Some(header),
                _ => None,
            })
    }
}

/// Returns the time of a recording's last line with a time.
pub fn last_time(text: &str) -> Option<Ticks> {
    let time = |line| {
        events(line, |_| true, 0)
            .next()?
            .ok()
            .map(|(_, event)| Ticks(event.tsc))
    };
    text.lines().rev().find_map(time)
}

impl Frame {
    /// Returns whether lines of this name are about the recording.
    pub(crate) fn is(name: &str) -> bool {
        [BEGIN, END].contains(&name)
    }

    /// Parses a line; `None` if it is about an object, or incomplete.
    pub(crate) fn parse(event: &Event<'_>) -> Option<Self> {
        let number = |name: &str| match event.arg(name) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        };
        match event.probe {
            BEGIN => Some(Self::Begin(Header {
                pid: number("pid")?.try_into().ok()?,
                since: Ticks(number("since")?),
                watched: number(WATCHED_ARG).filter(|tsc| *tsc > 0).map(Ticks),
            })),
            END => Some(Self::End {
                at: Ticks(event.tsc),
                lost: number("lost")?,
            }),
            _ => None,
        }
    }

    /// Formats the line of a recording.
    pub fn line(&self) -> String {
        let int = Value::Int;
        let (name, args) = match *self {
            Self::Begin(Header {
                pid,
                since,
                watched,
            }) => {
                let watched = watched.map_or(0, |tsc| tsc.0);
                (
                    BEGIN,
                    vec![
                        (TSC, 0),
                        ("pid", pid.into()),
                        ("since", since.0),
                        (WATCHED_ARG, watched),
                    ],
                )
            }
            Self::End { at, lost } => (END, vec![(TSC, at.0), ("lost", lost)]),
        };
        let mut text = String::new();
        // SANITY: writing numbers to a string does not fail.
        let _ = write_line(
            &mut text,
            name,
            args.into_iter().map(|(name, number)| (name, int(number))),
        );
        text
    }
}

/// Periods in which a recording has every beginning and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WholeTimes {
    /// Begin and end of each period; the last may be open.
    times: Vec<(Ticks, Ticks)>,
}

impl WholeTimes {
    /// Applies a line about the recording.
    pub(crate) fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Begin(header) => self.watch(header.watched),
            Frame::End { at, lost: 0 } => self.end(at),
            // The lost hits and their times are unknown. A second such line of one recording
            // changes nothing.
            Frame::End { .. } => drop(self.times.pop_if(|(_, end)| *end == Ticks(u64::MAX))),
        }
    }

    /// Notes that probes report everything from `since` on.
    pub(crate) fn watch(&mut self, since: Option<Ticks>) {
        if let Some(since) = since
            && !self.times.iter().any(|(first, _)| *first == since)
        {
            self.times.push((since, Ticks(u64::MAX)));
        }
    }

    /// Notes that probes report nothing after `at`.
    pub(crate) fn end(&mut self, at: Ticks) {
        if let Some((_, end)) = self
            .times
            .iter_mut()
            .rfind(|(_, end)| *end == Ticks(u64::MAX))
        {
            *end = at;
        }
    }

    /// Returns whether nothing was missed between these times.
    pub(crate) fn contains(&self, from: Ticks, to: Ticks) -> bool {
        self.times
            .iter()
            .any(|&(first, last)| first <= from && to <= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Recording;

    #[test]
    fn a_recording_with_losses_is_never_whole_however_often_it_says_so() {
        let begin = |since| {
            Frame::Begin(Header {
                pid: 4711,
                since: Ticks(since),
                watched: Some(Ticks(since)),
            })
        };
        let (mut times, lost) = (WholeTimes::default(), |at, lost| Frame::End {
            at: Ticks(at),
            lost,
        });
        for frame in [begin(10), lost(20, 0), begin(30), lost(40, 5), lost(50, 9)] {
            times.frame(frame);
        }
        assert!(
            times.contains(Ticks(10), Ticks(20)) && !times.contains(Ticks(30), Ticks(35)),
            "{times:?}"
        );
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let header = Header {
            pid: 4711,
            since: Ticks(5),
            watched: Some(Ticks(7)),
        };
        let unwatched = Header {
            watched: None,
            ..header
        };
        for frame in [
            Frame::Begin(header),
            Frame::Begin(unwatched),
            Frame::End {
                at: Ticks(9),
                lost: 3,
            },
        ] {
            let line = frame.line();
            let recording = Recording::parse(&line, Frame::is);
            assert_eq!(Frame::parse(&recording.events[0]), Some(frame), "{line}");
        }
        let text = format!("Attaching 3 probes...\n{}\n", Frame::Begin(header).line());
        let end = Frame::End {
            at: Ticks(9),
            lost: 0,
        }
        .line();
        assert_eq!(
            (
                last_time(&format!("{end}\nstopped\n")),
                last_time("stopped\n")
            ),
            (Some(Ticks(9)), None)
        );
        assert_eq!(
            (Header::find(&text), Header::find("add: tsc=0x1, pid=0x5")),
            (Some(header), None)
        );
    }
}
