//! Tracks of one connection on one lcore.

use std::collections::HashMap;
use std::io::{self, Write};

use foldhash::fast::RandomState;
use perfetto::{Lanes, Track, TrackKind, TrackSpec, Writer};
use scene::BootNanos;

use super::changes::Changes;
use super::{Names, parts, rank};
use crate::perfetto::Facts;

/// Number of track ranks reserved for the slots of one kind of requests: the next kind follows
/// them.
const LANES_OF_KIND: usize = 4096;

/// Connection on one lcore.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) track: Track,
    /// Slots and their tracks by kind of request, whose name the slices have.
    pub(super) lanes: HashMap<u64, (Lanes, Vec<Track>), RandomState>,
    pub(super) in_flight: Track,
    pub(super) depth: Option<Track>,
    pub(super) in_flight_changes: Changes,
}

impl Group {
    /// Returns the track of a slot that is free for a request of that kind.
    pub(super) fn lane<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        names: Names,
        begin: BootNanos,
        end: BootNanos,
        first: u16,
    ) -> io::Result<Track> {
        let (lanes, tracks) = self.lanes.entry(names.number).or_default();
        let lane = lanes.place(begin.0, end.0);
        if let Some(track) = tracks.get(lane) {
            return Ok(*track);
        }
        let tpoint = facts.tpoints.iter().find(|tpoint| tpoint.id == first);
        let name = tpoint.map_or("?", |tpoint| parts(&tpoint.name).0);
        // After the counters, with the slots of each kind together.
        let rank = rank(2 + (names.number as usize * LANES_OF_KIND).saturating_add(lane));
        let track = writer.track(&TrackSpec {
            name,
            parent: Some(self.track),
            rank,
            kind: TrackKind::Slices,
        })?;
        tracks.push(track);
        Ok(track)
    }

    pub(super) fn depth<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        at: BootNanos,
        depth: u64,
    ) -> io::Result<()> {
        let track = if let Some(track) = self.depth {
            track
        } else {
            let spec = TrackSpec {
                name: "queue depth",
                parent: Some(self.track),
                rank: 1,
                kind: TrackKind::Counter,
            };
            *self.depth.insert(writer.track(&spec)?)
        };
        writer.counter(track, at.0, depth.cast_signed())
    }
}
