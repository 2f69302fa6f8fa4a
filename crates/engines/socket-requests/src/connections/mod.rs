//! Connections of the server, and the requests on each: turns events of sockets into records.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::layout::{Ends, Event, family, kind};
use crate::operation;
use crate::trace::{CONNECTIONS, RecordKind, RequestRecord};

/// Nanoseconds within which the sends of one reply make one record, except for the first: a large
/// file is sent in thousands of pieces.
const REPLY_GRAIN: u64 = 10_000_000;
/// Nanoseconds for which records wait for earlier ones: the last send of a reply is known to be the
/// last only later.
pub(crate) const HOLD: u64 = 2 * REPLY_GRAIN;

/// A connection of the server's that begins to be recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewConnection {
    /// Number in the trace.
    pub(crate) number: u16,
    /// Time of its first event.
    pub(crate) since: u64,
    /// Peer and own address.
    pub(crate) text: String,
}

/// Totals of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Requests that were received.
    pub requests: u64,
    /// Connections of which requests were seen.
    pub connections: u64,
    /// Connections that were given up for others, since more were in use at a time than the trace
    /// has numbers for. A request of such a connection may be seen in parts.
    pub forgotten: u64,
    /// Connections that the process itself opened to other servers, whose requests are not its own.
    pub outgoing: u64,
    /// Events of sockets that were lost, since the ring was full.
    pub lost: u64,
}

/// Connections, and records that wait for earlier ones.
pub(crate) struct Connections {
    /// State by the number of the socket. Sockets that are none of a server's have none.
    known: HashMap<u64, Option<Connection>>,
    /// Sockets by the number of the connection.
    numbers: Vec<Option<u64>>,
    /// Number to try next.
    next: u16,
    waiting: BinaryHeap<Reverse<Waiting>>,
    arrived: u64,
    /// Sockets whose last send waits to be the last.
    pending: Vec<u64>,
    pub(crate) totals: Totals,
}

/// A connection of the server.
struct Connection {
    number: u16,
    phase: Phase,
    last: u64,
}

/// Phase of a connection.
enum Phase {
    /// Nothing has been received since the last reply.
    Idle,
    /// Data has arrived.
    Queued,
    /// A request has been received.
    Received,
    /// A reply is being sent.
    Replying {
        /// Time of the last send of which there is a record.
        recorded: u64,
        /// Sends since then, as one.
        since: Option<RequestRecord>,
    },
}

/// Record that waits, ordered by its time, then by its arrival.
struct Waiting {
    at: u64,
    arrival: u64,
    record: RequestRecord,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.arrival) == (other.at, other.arrival)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.arrival).cmp(&(other.at, other.arrival))
    }
}

impl Connections {
    pub(crate) fn new() -> Self {
        Self {
            known: HashMap::new(),
            numbers: vec![None; usize::from(CONNECTIONS)],
            next: 1,
            waiting: BinaryHeap::new(),
            arrived: 0,
            pending: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Takes the next event, in the order of time. Returns the connection if it is a new one.
    /// `is_server` tells whether the process listens on a port.
    pub(crate) fn event(
        &mut self,
        event: &Event,
        is_server: impl FnOnce(u16) -> bool,
    ) -> Option<NewConnection> {
        let new = if event.ends.family != 0 && !self.known.contains_key(&event.cookie) {
            self.learn(event, is_server)
        } else {
            None
        };
        let Some(Some(connection)) = self.known.get_mut(&event.cookie) else {
            return new;
        };
        connection.last = event.at;
        let record = |kind| RequestRecord {
            at: event.at,
            kind,
            connection: connection.number,
            tid: event.tid,
            bytes: event.bytes,
            operation: String::new(),
        };
        let mut records = Vec::new();
        match (event.kind, &mut connection.phase) {
            (kind::ARRIVED, Phase::Received | Phase::Queued) => {}
            (kind::ARRIVED, phase) => {
                records.extend(phase.finish());
                records.push(record(RecordKind::Queued));
                *phase = Phase::Queued;
            }
            (kind::RECEIVED, Phase::Received) => {}
            (kind::RECEIVED, phase) => {
                records.extend(phase.finish());
                let is_queued = matches!(phase, Phase::Queued);
                let kind = if is_queued {
                    RecordKind::Received
                } else {
                    RecordKind::New
                };
                self.totals.requests += 1;
                records.push(RequestRecord {
                    operation: operation::name(event.text()),
                    ..record(kind)
                });
                *phase = Phase::Received;
            }
            (kind::SENT, phase) => {
                let (written, waits) = phase.sent(record(RecordKind::Replied));
                records.extend(written);
                if waits {
                    self.pending.push(event.cookie);
                }
            }
            _ => {}
        }
        for record in records {
            self.wait(record);
        }
        new
    }

    /// Learns of a socket that is not known yet.
    fn learn(
        &mut self,
        event: &Event,
        is_server: impl FnOnce(u16) -> bool,
    ) -> Option<NewConnection> {
        let ends = &event.ends;
        let is_ours = match ends.family {
            family::UNIX => ends.is_named != 0,
            _ => is_server(ends.own_port),
        };
        if self.known.len() >= 2 * usize::from(CONNECTIONS) {
            self.forget();
        }
        if !is_ours {
            self.totals.outgoing += 1;
            self.known.insert(event.cookie, None);
            return None;
        }
        let number = self.number(event.cookie);
        self.totals.connections += 1;
        let connection = Connection {
            number,
            phase: Phase::Idle,
            last: event.at,
        };
        self.known.insert(event.cookie, Some(connection));
        Some(NewConnection {
            number,
            // An owner has the records after that time, as in SPDK's traces, and this event's is one.
            since: event.at.saturating_sub(1),
            text: ends.text(event.cookie),
        })
    }

    /// Returns a number for a socket: a free one, or that of the connection that was not used for
    /// the longest time.
    fn number(&mut self, cookie: u64) -> u16 {
        let count = CONNECTIONS - 1;
        let free = (0..count)
            .map(|step| 1 + (self.next - 1 + step) % count)
            .find(|number| self.numbers[usize::from(*number)].is_none());
        let number = free.unwrap_or_else(|| {
            self.forget();
            self.next
        });
        self.next = 1 + number % count;
        self.numbers[usize::from(number)] = Some(cookie);
        number
    }

    /// Forgets the half of the connections that were not used for the longest time, and all other
    /// sockets.
    fn forget(&mut self) {
        let mut last: Vec<u64> = self
            .known
            .values()
            .flatten()
            .map(|connection| connection.last)
            .collect();
        let middle = last.len() / 2;
        let newest_dropped = if last.is_empty() {
            0
        } else {
            *last.select_nth_unstable(middle).1
        };
        let numbers = &mut self.numbers;
        let mut forgotten = 0;
        self.known.retain(|_, connection| {
            let is_kept = connection
                .as_ref()
                .is_some_and(|connection| connection.last > newest_dropped);
            if let Some(connection) = connection.as_ref().filter(|_| !is_kept) {
                numbers[usize::from(connection.number)] = None;
                forgotten += 1;
            }
            is_kept
        });
        self.totals.forgotten += forgotten;
    }

    /// Returns the records that no earlier ones can precede, if all events before `reached` have
    /// come.
    pub(crate) fn until(&mut self, reached: u64) -> Vec<RequestRecord> {
        let mut still = Vec::new();
        for cookie in std::mem::take(&mut self.pending) {
            let Some(Some(connection)) = self.known.get_mut(&cookie) else {
                continue;
            };
            match &mut connection.phase {
                Phase::Replying { recorded, since } => match since {
                    Some(sends) if sends.at.saturating_add(REPLY_GRAIN) < reached => {
                        *recorded = sends.at;
                        let record = since.take();
                        record.into_iter().for_each(|record| self.wait(record));
                    }
                    Some(_) => still.push(cookie),
                    None => {}
                },
                _ => {}
            }
        }
        self.pending = still;
        let mut records = Vec::new();
        while let Some(Reverse(first)) = self.waiting.peek()
            && first.at.saturating_add(HOLD) < reached
        {
            records.extend(self.waiting.pop().map(|Reverse(it)| it.record));
        }
        records
    }

    /// Returns all remaining records.
    pub(crate) fn finish(&mut self) -> Vec<RequestRecord> {
        self.until(u64::MAX)
    }

    fn wait(&mut self, record: RequestRecord) {
        self.arrived += 1;
        self.waiting.push(Reverse(Waiting {
            at: record.at,
            arrival: self.arrived,
            record,
        }));
    }
}

impl Phase {
    /// Takes a send: returns a record of it, and whether it waits for more.
    fn sent(&mut self, record: RequestRecord) -> (Option<RequestRecord>, bool) {
        match self {
            // A greeting, or the reply to a request that was not seen; or data of the next request
            // has come during the reply: to which of both the send belongs is not known.
            Self::Idle | Self::Queued => (None, false),
            Self::Received => {
                *self = Self::Replying {
                    recorded: record.at,
                    since: None,
                };
                (Some(record), false)
            }
            Self::Replying { recorded, since } => {
                let bytes = since.as_ref().map_or(0, |sends| sends.bytes);
                let is_first = since.is_none();
                let sends = RequestRecord {
                    bytes: record.bytes.saturating_add(bytes),
                    ..record
                };
                if sends.at.saturating_sub(*recorded) < REPLY_GRAIN {
                    *since = Some(sends);
                    return (None, is_first);
                }
                (*recorded, *since) = (sends.at, None);
                (Some(sends), false)
            }
        }
    }

    /// Ends a reply; returns the record of its last sends, if there is none yet.
    fn finish(&mut self) -> Option<RequestRecord> {
        match self {
            Self::Replying { since, .. } => since.take(),
            _ => None,
        }
    }
}

impl Event {
    /// Returns the first bytes of what was received.
    fn text(&self) -> &[u8] {
        let count = (self.text_bytes as usize).min(self.text.len());
        &self.text[..count]
    }
}

impl Ends {
    /// Returns the peer and the own port: `10.0.0.7:41234 -> :5432`, or the number of a Unix socket.
    fn text(&self, cookie: u64) -> String {
        let peer: IpAddr = match self.family {
            family::INET => Ipv4Addr::from(self.peer4).into(),
            family::INET6 => Ipv6Addr::from(self.peer6).to_canonical(),
            _ => return format!("unix socket {cookie}"),
        };
        let peer = SocketAddr::new(peer, u16::from_be_bytes(self.peer_port));
        format!("{peer} -> :{}", self.own_port)
    }
}

#[cfg(test)]
mod tests;
