//! Requests that had not ended when the trace did: no percentile has them, and one of them may be the one that hangs.

use screen::{counted, time};
use timeline::{BootNanos, Request};

use super::json::quoted;
use super::pass::Kept;
use super::source::Source;
use super::words;

/// The requests of hosts that had not ended.
#[derive(Debug, Default)]
pub(crate) struct StillOpen {
    /// Those of which it is known that their queue is none on which requests wait by design.
    count: u64,
    /// Those of which it is not known.
    unknown: u64,
    /// The oldest of the former.
    oldest: Option<Open>,
}

#[derive(Debug)]
struct Open {
    begin: BootNanos,
    object: String,
    owner: Option<Box<str>>,
    last: u16,
    first: u16,
}

impl StillOpen {
    /// Takes a request, if it is one.
    pub(super) fn add(&mut self, request: &Request<Kept>) {
        if !request.unfinished || request.is_perhaps_over || request.related.is_some() {
            return;
        }
        match request.kept.is_admin {
            Some(true) => return,
            None => {
                self.unknown += 1;
                return;
            }
            Some(false) => self.count += 1,
        }
        let begin = request.begin();
        if self.oldest.as_ref().is_none_or(|oldest| begin < oldest.begin) {
            self.oldest = Some(Open {
                begin,
                object: request.name.to_string(),
                owner: request.kept.owner.clone(),
                last: request.records.last().map(|mark| mark.tpoint).unwrap_or_default(),
                first: request.first(),
            });
        }
    }

    /// Says how many had not ended at that time, if one had taken longer than all that had: others are only in flight.
    pub(crate) fn sentence(&self, source: &Source, end: BootNanos, longest: u64) -> Option<String> {
        let oldest = self.oldest.as_ref()?;
        let open = end.0.saturating_sub(oldest.begin.0);
        if open <= longest {
            return None;
        }
        let (first, last) = (source.tpoint(oldest.first), source.tpoint(oldest.last));
        let whose = oldest.owner.as_ref().map_or_else(String::new, |owner| format!(" of {owner}"));
        let more = match self.unknown {
            0 => String::new(),
            1 => "; 1 more may wait by design, its queue is not known".to_owned(),
            more => format!("; {more} more may wait by design, their queues are not known"),
        };
        Some(format!(
            "{} had not ended, and no figure has them: {} ({}){whose} was open for {}, since {last}{more}",
            counted(self.count, "request"),
            oldest.object,
            words::kind(first),
            time(open)
        ))
    }

    /// The same as a line of JSON; empty if there are none.
    pub(super) fn json(&self, source: &Source, end: BootNanos) -> String {
        let Some(oldest) = self.oldest.as_ref() else { return String::new() };
        format!(
            "{{\"still_open\":{},\"unknown_queue\":{},\"object\":{},\"first\":{},\"last\":{},\"whose\":{},\"boot_ns\":{},\
             \"open_ns\":{}}}\n",
            self.count,
            self.unknown,
            quoted(&oldest.object),
            quoted(source.tpoint(oldest.first)),
            quoted(source.tpoint(oldest.last)),
            oldest.owner.as_deref().map_or_else(|| "null".to_owned(), quoted),
            oldest.begin.0,
            end.0.saturating_sub(oldest.begin.0)
        )
    }
}
