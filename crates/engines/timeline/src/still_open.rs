//! Requests that had not ended when the trace did: they are in no percentile, and one of them may
//! hang.

use scene::{BootNanos, Request};
use screen::{counted, time};

use text::json::{begin, quoted};

use super::pass::RequestLabels;
use super::source::Source;
use super::words;

/// Requests of hosts that had not ended.
#[derive(Debug, Default)]
pub struct OpenRequests {
    /// Number of requests on a queue where none waits by design.
    count: u64,
    /// Number of requests on an unknown queue.
    unknown: u64,
    /// Oldest request on a known queue.
    oldest: Option<OpenRequest>,
    /// Length of the longest ended request that counts, in nanoseconds.
    longest_ended: u64,
}

#[derive(Debug)]
struct OpenRequest {
    begin: BootNanos,
    object: String,
    owner: Option<Box<str>>,
    last: u16,
    first: u16,
}

impl OpenRequests {
    /// Adds a request, unless it has ended.
    pub fn add(&mut self, request: &Request<RequestLabels>) {
        if !request.unfinished || request.is_perhaps_over || request.related.is_some() {
            return;
        }
        match request.is_admin {
            Some(true) => return,
            None => {
                self.unknown += 1;
                return;
            }
            Some(false) => self.count += 1,
        }
        let begin = request.begin();
        if self
            .oldest
            .as_ref()
            .is_none_or(|oldest| begin < oldest.begin)
        {
            self.oldest = Some(OpenRequest {
                begin,
                object: request.name.to_string(),
                owner: request.data.owner.clone(),
                last: request
                    .records
                    .last()
                    .map(|mark| mark.tpoint)
                    .unwrap_or_default(),
                first: request.first(),
            });
        }
    }

    /// Notes the length of an ended request that counts.
    pub fn compare(&mut self, request: &Request<RequestLabels>) {
        self.longest_ended = self.longest_ended.max(request.length());
    }

    /// Returns a sentence on the requests that had not ended by `end`, if one was open longer than
    /// any ended one took: others are merely in flight.
    pub fn sentence(&self, source: &Source, end: BootNanos) -> Option<String> {
        let oldest = self.oldest.as_ref()?;
        let open = end.0.saturating_sub(oldest.begin.0);
        if open <= self.longest_ended {
            return None;
        }
        let (first, last) = (source.tpoint(oldest.first), source.tpoint(oldest.last));
        let whose = oldest
            .owner
            .as_ref()
            .map_or_else(String::new, |owner| format!(" of {owner}"));
        let more = match self.unknown {
            0 => String::new(),
            1 => "; 1 more may wait by design: its queue is unknown".to_owned(),
            more => format!("; {more} more may wait by design: their queues are unknown"),
        };
        Some(format!(
            "{} had not ended (not included in the figures): {} ({}){whose} was open for {}, since \
             {last}{more}",
            counted(self.count, "request"),
            oldest.object,
            words::kind(first),
            time(open)
        ))
    }

    /// Formats a line of JSON; empty if there are none.
    pub fn json(&self, source: &Source, end: BootNanos) -> String {
        let Some(oldest) = self.oldest.as_ref() else {
            return String::new();
        };
        format!(
            "{},\"still_open\":{},\"unknown_queue\":{},\"object\":{},\"first\":{},\"last\":{},\"whose\":{},\"boot_ns\":{},\
             \"open_ns\":{}}}\n",
            begin("timeline.still-open"),
            self.count,
            self.unknown,
            quoted(&oldest.object),
            quoted(source.tpoint(oldest.first)),
            quoted(source.tpoint(oldest.last)),
            oldest
                .owner
                .as_deref()
                .map_or_else(|| "null".to_owned(), quoted),
            oldest.begin.0,
            end.0.saturating_sub(oldest.begin.0)
        )
    }
}
