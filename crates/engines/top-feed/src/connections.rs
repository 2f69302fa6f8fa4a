//! Connections of records, with their identities.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use objects::{Annotator, ObjectSpec, OwnerProperties};
use records::CONNECTION_LETTER;
use spdk_trace::{ArgValue, Record, Ticks, Tpoint};
use text::printable;
use top::Identity;

/// Name of the spec of connections.
const SPEC: &str = "qpair";
/// Transport of connections that were seen at sockets.
const SOCKET: &str = "SOCKET";

/// Key that distinguishes connections in the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// Number of the records' owner, and the time since which that owner has it.
    Owner(u16, Ticks),
    /// Address of the queue pair, and the time since which it is known to be there; 0 if that is
    /// not known.
    Pointer(u64, Ticks),
}

/// Connections that were seen.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    by_key: HashMap<Key, u32, RandomState>,
    all: Vec<ConnectionEntry>,
    /// Names of arguments that point to connections.
    args: Vec<String>,
}

/// Connection with its identity as far as it is known.
#[derive(Clone, Debug)]
struct ConnectionEntry {
    identity: Arc<Identity>,
    /// True if there is nothing more to find out.
    is_whole: bool,
    /// Second in which that was last tried.
    tried: u64,
}

impl Connections {
    pub(crate) fn new(specs: &[ObjectSpec]) -> Self {
        let args = specs
            .iter()
            .find(|spec| spec.name == SPEC)
            .map(|spec| spec.tracepoint_args.clone());
        Self {
            args: args.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns the place of the tracepoint's argument that points to the connection of its records.
    pub(crate) fn pointer(&self, tpoint: &Tpoint) -> Option<usize> {
        tpoint
            .args
            .iter()
            .position(|spec| self.args.contains(&spec.name))
    }

    /// Returns the connection of a request's record, to which the argument `pointer` points. An
    /// incomplete identity is looked up again once in each `second`.
    pub(crate) fn find_or_add(
        &mut self,
        record: &Record<'_>,
        pointer: Option<usize>,
        annotator: Option<&Annotator>,
        second: u64,
    ) -> Option<u32> {
        let key = key(record, pointer, annotator)?;
        if let Some(&found) = self.by_key.get(&key) {
            let known = &mut self.all[found as usize];
            if !known.is_whole && known.tried != second {
                *known = ConnectionEntry::new(key, record, annotator, second);
            }
            return Some(found);
        }
        // Its begin was not known when its first request came.
        if let Key::Pointer(address, Ticks(1..)) = key
            && let Some(found) = self.by_key.remove(&Key::Pointer(address, Ticks(0)))
        {
            self.by_key.insert(key, found);
            self.all[found as usize] = ConnectionEntry::new(key, record, annotator, second);
            return Some(found);
        }
        let number = u32::try_from(self.all.len()).ok()?;
        self.all
            .push(ConnectionEntry::new(key, record, annotator, second));
        self.by_key.insert(key, number);
        Some(number)
    }

    /// Returns the identity of a connection.
    pub(crate) fn identity(&self, number: u32) -> Arc<Identity> {
        self.all
            .get(number as usize)
            .map(|known| Arc::clone(&known.identity))
            .unwrap_or_default()
    }

    /// Drops all connections but those for which `is_used`. Returns the new number of each; `None`
    /// if it was dropped.
    pub(crate) fn keep(&mut self, is_used: impl Fn(u32) -> bool) -> Vec<Option<u32>> {
        let mut numbers = Vec::with_capacity(self.all.len());
        let (mut number, mut kept) = (0, 0);
        self.all.retain(|_| {
            let is_kept = is_used(number);
            number += 1;
            numbers.push(is_kept.then_some(kept));
            kept += u32::from(is_kept);
            is_kept
        });
        self.by_key.retain(
            |_, number| match numbers.get(*number as usize).copied().flatten() {
                Some(new) => {
                    *number = new;
                    true
                }
                None => false,
            },
        );
        numbers
    }

    /// Returns the number of known connections.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

fn key(record: &Record<'_>, pointer: Option<usize>, annotator: Option<&Annotator>) -> Option<Key> {
    let pointer = match record.args.iter().nth(pointer.unwrap_or(usize::MAX)) {
        Some((_, ArgValue::Int(n) | ArgValue::Pointer(n))) if n > 0 => n,
        _ => return record.owner_since.map(|(id, since)| Key::Owner(id, since)),
    };
    let begin = annotator
        .and_then(|annotator| annotator.find(record, SPEC))
        .map_or(Ticks(0), |found| found.begin);
    Some(Key::Pointer(pointer, begin))
}

impl ConnectionEntry {
    fn new(key: Key, record: &Record<'_>, annotator: Option<&Annotator>, tried: u64) -> Self {
        let object =
            annotator.and_then(|annotator| Some((annotator, annotator.find(record, SPEC)?)));
        let property =
            |name| object.and_then(|(annotator, object)| annotator.property(object, name));
        let described = record.owner.filter(|_| matches!(key, Key::Owner(..)));
        if let (Some(text), true) = (
            described,
            record.tpoint.owner_prefix == Some(CONNECTION_LETTER),
        ) {
            return Self::of_socket(text, key, tried);
        }
        let described = described.map(OwnerProperties::parse).unwrap_or_default();
        let one_of = |names: [&'static str; 2], property_name| {
            let text = property(property_name)
                .or_else(|| names.iter().find_map(|name| described.get(name)));
            text.map(|text| printable::text(text.as_bytes()).into_owned())
        };
        let address = match key {
            Key::Owner(id, _) => format!("owner {id}"),
            Key::Pointer(address, _) => format!("{address:#x}"),
        };
        let (subnqn, host) = (
            one_of(["subnqn", "target"], "subnqn"),
            one_of(["peer", "peer"], "hostnqn"),
        );
        let queue = one_of(["qid", "qid"], "qid").and_then(|text| text.parse().ok());
        let transport = record
            .tpoint
            .name
            .split('_')
            .next()
            .unwrap_or_default()
            .to_owned();
        let is_whole = subnqn.is_some() && queue.is_some();
        let identity = Identity {
            subnqn: subnqn.unwrap_or_else(|| address.clone()),
            host: host.unwrap_or_default(),
            queue,
            transport,
            address,
        };
        Self {
            identity: identity.into(),
            is_whole,
            tried,
        }
    }

    /// Makes the entry of a connection that was seen at a socket, from its text: the peer and the
    /// own port, or the number of a Unix socket.
    fn of_socket(text: &str, key: Key, tried: u64) -> Self {
        let (peer, own) = text.split_once(" -> ").unwrap_or(("", text));
        let address = match key {
            Key::Owner(id, since) => format!("owner {id} since {}", since.0),
            Key::Pointer(address, _) => format!("{address:#x}"),
        };
        let identity = Identity {
            subnqn: printable::text(own.as_bytes()).into_owned(),
            host: printable::text(peer.as_bytes()).into_owned(),
            queue: None,
            transport: SOCKET.to_owned(),
            address,
        };
        Self {
            identity: identity.into(),
            is_whole: true,
            tried,
        }
    }
}
