//! The events of all streams in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::{Event, Stream};

/// Streams that are read together. Of simultaneous events, that of the earlier stream comes first.
#[derive(Debug)]
pub struct MergedStreams<'b> {
    streams: Vec<Stream<'b>>,
    /// The next event of each stream that has one.
    next: Vec<Option<Event<'b>>>,
    /// The times of these events, with the indices of their streams.
    order: BinaryHeap<Reverse<(i64, usize)>>,
}

impl<'b> MergedStreams<'b> {
    /// Merges these streams.
    pub fn new(mut streams: Vec<Stream<'b>>) -> Self {
        let next: Vec<_> = streams.iter_mut().map(Iterator::next).collect();
        let times = next
            .iter()
            .enumerate()
            .filter_map(|(nth, event)| Some(Reverse((event.as_ref()?.nanos, nth))));
        Self {
            order: times.collect(),
            streams,
            next,
        }
    }

    /// Returns the streams, which are at their ends once no event is left.
    pub fn streams(&self) -> &[Stream<'b>] {
        &self.streams
    }
}

impl<'b> Iterator for MergedStreams<'b> {
    /// Index of the stream, and the event.
    type Item = (usize, Event<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut first = self.order.peek_mut()?;
        let Reverse((_, nth)) = *first;
        let following = self.streams[nth].next();
        match &following {
            Some(event) => *first = Reverse((event.nanos, nth)),
            None => drop(std::collections::binary_heap::PeekMut::pop(first)),
        }
        let event = std::mem::replace(&mut self.next[nth], following)?;
        Some((nth, event))
    }
}
