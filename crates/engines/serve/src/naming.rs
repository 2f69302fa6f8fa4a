//! Connection of a record: subsystem, host and transport, found once for each owner or queue pair.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use objects::ObjectSpec;
use records::{Context, Field};
use requests::{CONNECTION, field};
use spdk_trace::{ArgValue, Record, Ticks, Tpoint};

use super::groups::{GroupId, Groups, Key};

/// Property of a queue pair that names the host.
const HOST: &str = "qpair.hostnqn";
/// Property of a queue pair that names the subsystem.
const SUBSYSTEM: &str = "qpair.subnqn";
/// Part of the names of all tracepoints of requests, after the transport's name.
const REQUEST: &str = "_REQ_";
/// Limit on the queue pairs that are remembered. Beyond it, all are looked up again.
const MAX_QPAIRS: usize = 1 << 14;

/// Finder of the connections of records.
pub(crate) struct ConnectionResolver {
    fields: [Field; 2],
    /// Names of arguments that point to queue pairs.
    args: Vec<String>,
    /// Transport of each tracepoint; `None` if it is not a request's.
    transports: Vec<Option<Box<str>>>,
    owners: HashMap<u16, (Ticks, Option<GroupId>), RandomState>,
    pointers: HashMap<u64, Option<GroupId>, RandomState>,
    forgotten: u64,
}

impl ConnectionResolver {
    /// Creates a finder for a trace with these tracepoints.
    pub(crate) fn new(specs: &[ObjectSpec], tpoints: &[Tpoint]) -> anyhow::Result<Self> {
        let field = |name| field::parse(name, specs);
        let mut transports = Vec::new();
        for tpoint in tpoints {
            let id = usize::from(tpoint.id);
            transports.resize_with(transports.len().max(id + 1), || None);
            transports[id] = tpoint
                .name
                .split_once(REQUEST)
                .map(|(transport, _)| transport.into());
        }
        let spec = specs.iter().find(|spec| spec.name == CONNECTION);
        Ok(Self {
            fields: [field(SUBSYSTEM)?, field(HOST)?],
            args: spec
                .map(|spec| spec.tracepoint_args.clone())
                .unwrap_or_default(),
            transports,
            owners: HashMap::default(),
            pointers: HashMap::default(),
            forgotten: 0,
        })
    }

    /// Forgets all names, so that they are looked up again: more is known now, or connections were
    /// forgotten.
    pub(crate) fn renew(&mut self) {
        self.owners.clear();
        self.pointers.clear();
    }

    /// Returns true if connections were forgotten since the last call: `forgotten` counts them.
    pub(crate) fn has_forgotten(&mut self, forgotten: u64) -> bool {
        std::mem::replace(&mut self.forgotten, forgotten) != forgotten
    }

    /// Returns the connection of a record; `None` if it is not known.
    pub(crate) fn named(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        groups: impl FnOnce(Key) -> GroupId,
    ) -> Option<GroupId> {
        if let Some((id, since)) = record.owner_since {
            if let Some((_, named)) = self.owners.get(&id).filter(|(known, _)| *known == since) {
                return *named;
            }
            let named = self.look_up(record, context, groups);
            self.owners.insert(id, (since, named));
            return named;
        }
        let mut args = record
            .args
            .iter()
            .filter(|(spec, _)| self.args.iter().any(|name| **name == *spec.name));
        let (_, ArgValue::Int(pointer) | ArgValue::Pointer(pointer)) = args.next()? else {
            return None;
        };
        if let Some(named) = self.pointers.get(&pointer) {
            return *named;
        }
        let named = self.look_up(record, context, groups);
        if self.pointers.len() >= MAX_QPAIRS {
            self.pointers.clear();
        }
        self.pointers.insert(pointer, named);
        named
    }

    fn look_up(
        &self,
        record: &Record<'_>,
        context: &Context<'_>,
        groups: impl FnOnce(Key) -> GroupId,
    ) -> Option<GroupId> {
        let [subnqn, hostnqn] = self
            .fields
            .each_ref()
            .map(|field| field.value(record, context));
        if subnqn.is_none() && hostnqn.is_none() {
            return None;
        }
        let text = |value: Option<Cow<'_, str>>| value.map(Cow::into_owned).unwrap_or_default();
        let transport = self.transport(record.tpoint.id).to_owned();
        let key = Key {
            subnqn: text(subnqn),
            hostnqn: text(hostnqn),
            transport,
        };
        Some(groups(key))
    }

    /// Returns the transport whose requests have this tracepoint; empty for other tracepoints.
    pub(crate) fn transport(&self, tpoint: u16) -> &str {
        self.transports
            .get(usize::from(tpoint))
            .and_then(Option::as_deref)
            .unwrap_or_default()
    }
}

/// Returns the connection for requests of a transport whose subsystem and host are not known.
pub(crate) fn unknown(groups: &mut Groups, transport: &str) -> GroupId {
    groups.id(Key {
        transport: transport.to_owned(),
        ..Key::default()
    })
}
