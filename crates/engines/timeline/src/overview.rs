//! All captures of a folder that `dptrace capture --slow` wrote: the slowest request of each.

use std::path::{Path, PathBuf};

use live_objects::ObjectSources;
use objects::ObjectSpec;
use observer::Observer;
use scene::{Experience, Request};
use screen::{HEAD, Screen, counted, time};
use text::json::{begin, quoted};
use text::printable::path as printable;
use text::shell;
use trace_source::{Place, captures};

use super::first::is_early;
use super::inputs::Inputs;
use super::judge::{RequestFindings, judge, judged};
use super::one::best;
use super::pass::RequestLabels;
use super::requests::Options;
use super::text::{TIME_WIDTH, USUAL_WIDTH, row};

/// Width of a moment, in columns: `2026-11-23 03:12:44.123`.
const MOMENT_WIDTH: usize = 23;

/// Captures of a folder.
pub struct Overview {
    folder: PathBuf,
    /// Captures, the oldest first.
    captures: Vec<CaptureRow>,
}

/// One capture of the folder.
struct CaptureRow {
    path: PathBuf,
    /// When its request ended, in UTC.
    at: String,
    /// Cause of the capture; the reason if it can't be read.
    cause: Result<Cause, String>,
}

/// Cause of a capture.
enum Cause {
    /// Slowest request.
    Slowest(Box<RequestFindings>),
    /// Sentence on a thread that was away.
    Away(String),
    /// Nothing that the capture shows from its begin.
    Unknown,
}

impl CaptureRow {
    fn read(path: PathBuf, specs: &[ObjectSpec]) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let at = captures::slow_time(&name).unwrap_or_default();
        let cause = cause(&path, specs).map_err(|error| format!("{error:#}"));
        Self { path, at, cause }
    }

    fn slowest(&self) -> Option<&RequestFindings> {
        match &self.cause {
            Ok(Cause::Slowest(found)) => Some(found),
            _ => None,
        }
    }

    /// Returns the length of the slowest request in nanoseconds; 0 if there is none.
    fn length(&self) -> u64 {
        self.slowest().map_or(0, |it| it.length)
    }

    /// Describes the slowest request, or the thread that was away.
    fn words(&self) -> String {
        match &self.cause {
            Ok(Cause::Slowest(found)) if found.unfinished => {
                format!("{}: had not ended, in {}", found.name(), found.last)
            }
            Ok(Cause::Slowest(found)) => format!("{}: {}", found.name(), found.blame()),
            Ok(Cause::Away(fact)) => fact.clone(),
            Ok(Cause::Unknown) => "no request began and ended in it".to_owned(),
            Err(why) => why.clone(),
        }
    }

    fn json(&self) -> String {
        let none = RequestFindings::default();
        let found = self.slowest();
        let away = match &self.cause {
            Ok(Cause::Away(fact)) => Some(fact.as_str()),
            _ => None,
        };
        let of = found.unwrap_or(&none);
        let maybe = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), quoted);
        format!(
            "{},\"capture\":{},\"utc\":{},\"object\":{},\"kind\":{},\"subsystem\":{},\"whose\":{},\
             \"length_ns\":{},\"still_open\":{},\"blame\":{},\"away\":{},\"error\":{}}}\n",
            begin("timeline.capture"),
            quoted(&printable(&self.path)),
            quoted(&(self.at.replace(' ', "T") + "Z")),
            maybe(found.map(|it| it.object.as_str())),
            maybe(found.map(|it| it.kind.as_str())),
            maybe(of.subsystem.as_deref()),
            maybe(of.owner.as_deref()),
            found.map_or_else(|| "null".to_owned(), |it| it.length.to_string()),
            of.unfinished,
            maybe(found.map(RequestFindings::blame).as_deref()),
            maybe(away),
            maybe(self.cause.as_ref().err().map(String::as_str)),
        )
    }
}

impl Overview {
    /// Reads the captures of a folder. `None` if not a single path is given, or if it is not a folder
    /// with several captures.
    ///
    /// # Errors
    /// Fails if a spec of objects can't be read.
    pub fn from_files(
        files: &[PathBuf],
        objects: &ObjectSources,
        observer: &Observer,
    ) -> anyhow::Result<Option<Self>> {
        let [folder] = files else { return Ok(None) };
        let captures = captures::slow_in(folder);
        if captures.len() < 2 {
            return Ok(None);
        }
        let specs = objects.for_place(&Place::File(folder.to_owned())).specs()?;
        let read = |path| {
            observer.step();
            CaptureRow::read(path, &specs)
        };
        Ok(Some(Self {
            folder: folder.to_owned(),
            captures: captures.into_iter().map(read).collect(),
        }))
    }

    /// Returns the captures, the oldest first.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.captures.iter().map(|it| it.path.clone()).collect()
    }

    /// Returns the capture with the slowest request, which a report shows in detail.
    pub fn slowest(&self) -> &Path {
        &self.captures[self.slowest_index()].path
    }

    /// Returns the index of that capture: of equal ones, the newest.
    fn slowest_index(&self) -> usize {
        let rows = self.captures.iter().enumerate();
        let slowest = rows.max_by_key(|(_, row)| row.length());
        slowest.map_or(0, |(index, _)| index)
    }

    /// States which capture a page or another file is about, and how to see another one.
    pub fn note(&self) -> String {
        let (title, shown, other) = (self.title(), self.shown(), self.other());
        format!("{title}: this is about {shown}; {other}")
    }

    fn title(&self) -> String {
        let count = counted(self.captures.len() as u64, "capture");
        format!("{} has {count}", printable(&self.folder))
    }

    /// Names the capture that is shown in detail.
    fn shown(&self) -> String {
        let which = match self.captures[self.slowest_index()].length() {
            0 => "newest",
            _ => "slowest",
        };
        format!("the {which}, {}", printable(self.slowest()))
    }

    /// Returns the command for another capture, the newest of the others.
    fn other(&self) -> String {
        let shown = self.slowest();
        let mut others = self.captures.iter().rev().map(|it| &*it.path);
        let other = others.find(|path| *path != shown).unwrap_or(shown);
        format!("another one: dptrace report {}", shell::word(other))
    }

    /// Returns what comes before the report in detail, in its form.
    pub fn before(&self, options: &Options) -> String {
        if options.as_json {
            self.captures.iter().map(CaptureRow::json).collect()
        } else {
            self.text(options.screen)
        }
    }

    /// Formats a row for each capture, and the note.
    fn text(&self, screen: Screen) -> String {
        let head = format!(
            "    {:MOMENT_WIDTH$}{:>TIME_WIDTH$}  slowest request, and what delayed it",
            "ended (UTC)", "took"
        );
        let mut text = format!("{}\n{}\n", self.title(), screen.paint(HEAD, head));
        for (index, capture) in self.captures.iter().enumerate() {
            let took = match capture.length() {
                0 => "-".to_owned(),
                length => time(length),
            };
            let start = format!(
                "{:>3} {:MOMENT_WIDTH$}{took:>TIME_WIDTH$}  ",
                index + 1,
                capture.at
            );
            text += &row(screen, &start, &capture.words());
        }
        let below = format!(
            "below: number {}, {}",
            self.slowest_index() + 1,
            self.shown()
        );
        for line in screen::wrap(&below, screen.width().unwrap_or(USUAL_WIDTH)) {
            text = text + &line + "\n";
        }
        // A command is copied as one line.
        text + &self.other() + "\n\n"
    }
}

/// Finds the cause of a capture. Nothing is reported: the report in detail does that.
fn cause(dir: &Path, specs: &[ObjectSpec]) -> anyhow::Result<Cause> {
    let observer = Observer::silent();
    let inputs = Inputs::open_to_judge(dir, specs, &observer)?;
    let end = inputs.source.meta.as_ref().and_then(|it| it.end.as_ref());
    if end.is_some_and(|end| end.why.ends_with(captures::AWAY)) {
        let found = judge(dir, specs, None, &mut Experience::default(), &observer)?;
        if let Some(first) = found.away.sentences.into_iter().next() {
            return Ok(Cause::Away(first.fact));
        }
    }
    Ok(slowest(&inputs).map_or(Cause::Unknown, |it| Cause::Slowest(Box::new(it))))
}

/// Finds the slowest request: one that ended, or that had been open for longer.
fn slowest(inputs: &Inputs) -> Option<RequestFindings> {
    let source = &inputs.source;
    let rank = |request: &Request<RequestLabels>| {
        let is_late = !request.unfinished || request.is_admin == Some(false);
        let counts = is_late && request.excluded.is_none() && !is_early(request, source);
        counts.then_some(request.length())
    };
    let (_, best) = best(inputs, rank);
    best.map(|(_, request)| judged(&request, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(minute: u64, cause: Cause) -> CaptureRow {
        let name = captures::slow_name((1_795_403_564 + 60 * minute) * 1_000_000_000, 1);
        CaptureRow {
            at: captures::slow_time(&name).unwrap(),
            path: Path::new("w.watch").join(name),
            cause: Ok(cause),
        }
    }

    #[test]
    fn each_capture_has_a_row_and_the_slowest_is_shown() {
        let request = |length| {
            Cause::Slowest(Box::new(RequestFindings {
                object: "r1".to_owned(),
                kind: "TCP_REQ".to_owned(),
                subsystem: Some("cnode1".to_owned()),
                owner: Some("10.0.0.1:1000 nqn.2016-06.io.spdk:cnode1 qid:1".to_owned()),
                length,
                ..RequestFindings::default()
            }))
        };
        let away = Cause::Away("reactor_0 was away once for 20.0 ms".to_owned());
        let mut overview = Overview {
            folder: "w.watch".into(),
            captures: vec![
                row(0, request(2_000_000)),
                row(1, request(5_000_000)),
                row(2, away),
                row(3, Cause::Unknown),
            ],
        };
        let text = overview.text(Screen::default());
        assert_eq!(
            text,
            "w.watch has 4 captures\n    \
             ended (UTC)                 took  slowest request, and what delayed it\n  \
             1 2026-11-23 03:12:44.000  2.00 ms  r1 (TCP_REQ) of cnode1, 10.0.0.1:1000 qid:1: no kernel events\n  \
             2 2026-11-23 03:13:44.000  5.00 ms  r1 (TCP_REQ) of cnode1, 10.0.0.1:1000 qid:1: no kernel events\n  \
             3 2026-11-23 03:14:44.000        -  reactor_0 was away once for 20.0 ms\n  \
             4 2026-11-23 03:15:44.000        -  no request began and ended in it\n\
             below: number 2, the slowest, w.watch/slow-20261123-031344.000-1.capture\n\
             another one: dptrace report w.watch/slow-20261123-031544.000-1.capture\n\n"
        );
        // Without a request, the newest is shown, and the next one is another.
        overview.captures.drain(..2);
        assert_eq!(
            overview.note(),
            "w.watch has 2 captures: this is about the newest, \
             w.watch/slow-20261123-031544.000-1.capture; another one: dptrace report \
             w.watch/slow-20261123-031444.000-1.capture"
        );
    }
}
