//! Connections of the server, and the requests on each: turns events of sockets into records.

mod held;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use held::HeldRecords;

use crate::layout::{Ends, Event, family, kind};
use crate::operation;
use crate::trace::{CONNECTIONS, RecordKind, RequestRecord};

/// Nanoseconds within which the sends of one reply make one record, except for the first: a large
/// file is sent in thousands of pieces.
const REPLY_GRAIN: u64 = 10_000_000;
/// Largest number of a connection; the least is 1.
const MAX_NUMBER: u16 = CONNECTIONS - 1;
/// Nanoseconds for which records wait for earlier ones: the last send of a reply is known to be the
/// last only later.
pub(crate) const HOLD: u64 = 2 * REPLY_GRAIN;

/// A connection of the server's that begins to be recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewConnection {
    /// Number in the trace.
    pub(crate) number: u16,
    /// Time just before its first event.
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
    held: HeldRecords,
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

impl Connections {
    pub(crate) fn new() -> Self {
        Self {
            known: HashMap::new(),
            numbers: vec![None; usize::from(CONNECTIONS)],
            next: 1,
            held: HeldRecords::default(),
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
        let Step {
            ended,
            record,
            waits,
        } = connection.take(event);
        let is_received =
            |record: &RequestRecord| matches!(record.kind, RecordKind::Received | RecordKind::New);
        self.totals.requests += u64::from(record.as_ref().is_some_and(is_received));
        if waits {
            self.pending.push(event.cookie);
        }
        for record in ended.into_iter().chain(record) {
            self.held.push(record);
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
            // An owner is that of later records only.
            since: event.at.saturating_sub(1),
            text: ends.text(event.cookie),
        })
    }

    /// Returns a number for a socket: a free one, or that of the connection that was not used for
    /// the longest time.
    fn number(&mut self, cookie: u64) -> u16 {
        let number = self.free_number().unwrap_or_else(|| {
            self.forget();
            // At least one has become free.
            self.free_number().unwrap_or(self.next)
        });
        self.next = 1 + number % MAX_NUMBER;
        self.numbers[usize::from(number)] = Some(cookie);
        number
    }

    /// Returns the first free number from the next one on.
    fn free_number(&self) -> Option<u16> {
        (0..MAX_NUMBER)
            .map(|step| 1 + (self.next - 1 + step) % MAX_NUMBER)
            .find(|number| self.numbers[usize::from(*number)].is_none())
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
        for cookie in std::mem::take(&mut self.pending) {
            let Some(Some(connection)) = self.known.get_mut(&cookie) else {
                continue;
            };
            let settled = connection.settle(reached);
            if connection.has_unrecorded_sends() {
                self.pending.push(cookie);
            }
            if let Some(record) = settled {
                self.held.push(record);
            }
        }
        let mut records = Vec::new();
        while let Some(record) = self.held.pop_before(reached.saturating_sub(HOLD)) {
            records.push(record);
        }
        records
    }

    /// Returns all remaining records.
    pub(crate) fn finish(&mut self) -> Vec<RequestRecord> {
        self.until(u64::MAX)
    }
}

/// Effect of an event on a connection.
#[derive(Default)]
struct Step {
    /// Record of the last sends of a reply that this event ends.
    ended: Option<RequestRecord>,
    /// Record of the event itself.
    record: Option<RequestRecord>,
    /// True if the event is a send that waits to be recorded with those that follow.
    waits: bool,
}

impl Connection {
    /// Takes the next event.
    fn take(&mut self, event: &Event) -> Step {
        self.last = event.at;
        let number = self.number;
        let record = |kind| RequestRecord {
            at: event.at,
            kind,
            connection: number,
            tid: event.tid,
            bytes: event.bytes,
            operation: String::new(),
        };
        match (event.kind, &self.phase) {
            (kind::SENT, _) => self.phase.sent(record(RecordKind::Replied)),
            // More data of the request.
            (kind::ARRIVED, Phase::Received | Phase::Queued)
            | (kind::RECEIVED, Phase::Received) => Step::default(),
            (kind::ARRIVED, _) => self.begin(Phase::Queued, record(RecordKind::Queued)),
            (_, phase) => {
                let kind = if matches!(phase, Phase::Queued) {
                    RecordKind::Received
                } else {
                    RecordKind::New
                };
                let received = RequestRecord {
                    operation: operation::name(event.text()),
                    ..record(kind)
                };
                self.begin(Phase::Received, received)
            }
        }
    }

    /// Enters a phase with its record, and ends the reply before it.
    fn begin(&mut self, phase: Phase, record: RequestRecord) -> Step {
        let before = std::mem::replace(&mut self.phase, phase);
        let ended = match before {
            Phase::Replying { since, .. } => since,
            _ => None,
        };
        Step {
            ended,
            record: Some(record),
            waits: false,
        }
    }

    /// Returns the record of sends after which none followed for a while, if all events before
    /// `reached` have come.
    fn settle(&mut self, reached: u64) -> Option<RequestRecord> {
        let Phase::Replying { recorded, since } = &mut self.phase else {
            return None;
        };
        let sends = since.take_if(|sends| sends.at.saturating_add(REPLY_GRAIN) < reached)?;
        *recorded = sends.at;
        Some(sends)
    }

    fn has_unrecorded_sends(&self) -> bool {
        matches!(self.phase, Phase::Replying { since: Some(_), .. })
    }
}

impl Phase {
    /// Takes a send.
    fn sent(&mut self, record: RequestRecord) -> Step {
        match self {
            // A greeting, or the reply to a request that was not seen; or data of the next request
            // has come during the reply: to which of both the send belongs is not known.
            Self::Idle | Self::Queued => Step::default(),
            Self::Received => {
                *self = Self::Replying {
                    recorded: record.at,
                    since: None,
                };
                Step {
                    record: Some(record),
                    ..Step::default()
                }
            }
            Self::Replying { recorded, since } => {
                let waits = since.is_none();
                let before = since.take().map_or(0, |sends| sends.bytes);
                let sends = RequestRecord {
                    bytes: record.bytes.saturating_add(before),
                    ..record
                };
                if sends.at.saturating_sub(*recorded) < REPLY_GRAIN {
                    *since = Some(sends);
                    return Step {
                        waits,
                        ..Step::default()
                    };
                }
                *recorded = sends.at;
                Step {
                    record: Some(sends),
                    ..Step::default()
                }
            }
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
