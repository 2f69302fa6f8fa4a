//! Line about a slow request, or a time in which a thread was away: its time, subject, length and
//! cause, and the place of its capture.

use std::fmt::Write as _;

use scene::BootNanos;
use screen::{counted, time, wrap};
use text::json::quoted;
use timeline::judge::{AbsenceReport, RequestFindings};

use super::window::MissedRequests;

/// Beginning of each line below a line: as many blanks as the time takes.
const NOTE_INDENT: &str = "\n             ";
/// Limit on the columns of a note below a line.
const NOTE_COLUMNS: usize = 100;

/// Contents of a line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// End of the request or the time away, or for an open request the time of the look, in
    /// nanoseconds since 1970.
    pub(crate) at: u64,
    /// Begin of the time away that the line is about; `None` if it is about a request.
    pub(crate) away_since: Option<BootNanos>,
    /// Times in which threads were away, from the capture.
    pub(crate) away: AbsenceReport,
    /// Judgement of the request; `None` if its beginning is not in the capture.
    pub(crate) judged: Option<RequestFindings>,
    /// Length in nanoseconds, as it was measured while the trace was followed.
    pub(crate) length: u64,
    pub(crate) kind: String,
    pub(crate) is_open: bool,
    /// Number of other slow requests of the same time.
    pub(crate) more: u64,
    /// Slow requests since the last line that have no capture.
    pub(crate) missed: MissedRequests,
    /// Numbers of slots of the trace and of events of the kernel that are missing in the capture.
    pub(crate) lost: (u64, u64),
    /// Time before the request that the capture has, in nanoseconds, if that is less than asked
    /// for.
    pub(crate) short: Option<u64>,
    /// Path of its capture, or the reason why there is none.
    pub(crate) folder: Result<String, String>,
}

impl Line {
    /// Formats the line, with the rest of what is known on indented lines below it.
    pub(crate) fn text(&self) -> String {
        let mut line = text::utc::moment(self.at.into())
            .strftime("%H:%M:%S.%3f ")
            .to_string();
        let mut absences = self.away.sentences.iter();
        let mut rest = Vec::new();
        if self.away_since.is_none() {
            self.request(&mut line);
        } else if let Some(first) = absences.next() {
            line.push_str(&first.fact);
            rest.push(first.consequence.clone());
        } else {
            // Events of it were lost.
            line = line + "a thread that writes a ring was away for " + &time(self.length);
        }
        match &self.folder {
            Ok(folder) => line = line + " -> " + folder,
            Err(why) => rest.insert(0, format!("no capture: {why}")),
        }
        if self.away_since.is_none() && self.more > 0 {
            rest.push(format!("{} more at that time", self.more));
        }
        rest.extend(absences.map(|absence| absence.fact.clone()));
        self.losses(&mut rest);
        for wrapped in rest.iter().flat_map(|note| wrap(note, NOTE_COLUMNS)) {
            line.push_str(NOTE_INDENT);
            line.push_str(&wrapped);
        }
        line
    }

    /// Writes the request, its length, and its cause.
    fn request(&self, line: &mut String) {
        line.push_str(
            &self
                .judged
                .as_ref()
                .map_or(self.kind.clone(), RequestFindings::name),
        );
        let length = self
            .judged
            .as_ref()
            .map_or(self.length, |judged| judged.length.max(self.length));
        match &self.judged {
            Some(judged) if self.is_open => {
                // Writing into a string can't fail.
                let _ = write!(
                    line,
                    " is still open after {}, in {}",
                    time(length),
                    judged.last
                );
            }
            Some(judged) => {
                let _ = write!(line, " took {}: {}", time(judged.length), judged.blame());
            }
            None => {
                let verb = if self.is_open {
                    "is still open after"
                } else {
                    "took"
                };
                let _ = write!(
                    line,
                    " {verb} {}: its beginning is not in the capture",
                    time(length)
                );
            }
        }
    }

    /// Adds the requests without a capture, and the losses in the capture.
    fn losses(&self, notes: &mut Vec<String>) {
        if self.missed.count > 0 {
            let (count, longest) = (self.missed.count, time(self.missed.longest));
            let have = if count == 1 { "has" } else { "have" };
            notes.push(format!(
                "{} {have} no capture, the slowest took {longest}",
                counted(count, "other slow request")
            ));
        }
        if let (slots @ 1.., _) = self.lost {
            notes.push(format!("{} lost in the capture", counted(slots, "slot")));
        }
        if let (_, events @ 1..) = self.lost {
            let events = counted(events, "event");
            notes.push(format!("{events} of the kernel lost in the capture"));
        }
        if let Some(short) = self.short {
            let short = time(short);
            notes.push(format!("the capture has only {short} of the time before"));
        }
    }

    pub(crate) fn json(&self) -> String {
        let mut line = String::new();
        self.write_request(&mut line);
        self.write_capture(&mut line);
        line
    }

    /// Writes the request as JSON: its length, and its cause.
    fn write_request(&self, line: &mut String) {
        let none = RequestFindings::default();
        let judged = self.judged.as_ref();
        let of = judged.unwrap_or(&none);
        let number = |number: u64| {
            if judged.is_some() {
                number.to_string()
            } else {
                "null".to_owned()
            }
        };
        let length = if self.is_open {
            of.length.max(self.length)
        } else {
            judged.map_or(self.length, |it| it.length)
        };
        let kind = judged
            .map(|judged| &judged.kind)
            .or(self.away_since.is_none().then_some(&self.kind));
        let begin = self.away_since.or(judged.map(|judged| judged.begin));
        let culprit = of.culprit.as_ref();
        let stage = stage_json(of.stage.as_ref());
        let _ = write!(
            line,
            "{},\"utc\":\"{}\",\"boot_ns\":{},\"object\":{},\"kind\":{},\"subsystem\":{},\"whose\":{},\"length_ns\":{length},\
             \"still_open\":{},\"kernel_at_least_ns\":{},\"kernel_at_most_ns\":{},\"who\":{},\"who_at_least_ns\":{},\
             \"who_at_most_ns\":{},\"unknown_ns\":{},\"stage\":{stage},\"blame\":{}",
            text::json::begin("watch.slow"),
            text::utc::text(self.at.into()),
            begin.map_or_else(|| "null".to_owned(), |begin| begin.0.to_string()),
            maybe(judged.map(|judged| judged.object.as_str())),
            maybe(kind.map(String::as_str)),
            maybe(of.subsystem.as_deref()),
            maybe(of.owner.as_deref()),
            self.is_open,
            number(of.at_least),
            number(of.at_most),
            maybe(culprit.map(|culprit| culprit.name.as_str())),
            culprit.map_or(0, |culprit| culprit.at_least),
            culprit.map_or(0, |culprit| culprit.at_most),
            number(of.unknown),
            maybe(
                judged
                    .filter(|_| !self.is_open)
                    .map(RequestFindings::blame)
                    .as_deref()
            ),
        );
    }

    /// Writes the rest of the JSON: times away, other requests, losses, and the place of the
    /// capture.
    fn write_capture(&self, line: &mut String) {
        let _ = write!(
            line,
            ",\"away\":[{}],\"more\":{},\"missed\":{},\"missed_longest_ns\":{},\"slots_lost\":{},\"events_lost\":{},\"before_ns\":{},\
             \"capture\":{},\"error\":{}}}",
            self.away.json.join(","),
            self.more,
            self.missed.count,
            self.missed.longest,
            self.lost.0,
            self.lost.1,
            self.short
                .map_or_else(|| "null".to_owned(), |short| short.to_string()),
            maybe(self.folder.as_deref().ok()),
            maybe(self.folder.as_ref().err().map(String::as_str)),
        );
    }
}

/// Formats a stage as JSON: its tracepoints and its length.
fn stage_json(stage: Option<&(String, String, u64)>) -> String {
    match stage {
        Some((from, to, length)) => {
            format!(
                "{{\"from\":{},\"to\":{},\"length_ns\":{length}}}",
                quoted(from),
                quoted(to)
            )
        }
        None => "null".to_owned(),
    }
}

fn maybe(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quoted)
}

#[cfg(test)]
mod tests;
