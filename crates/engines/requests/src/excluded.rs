//! Requests that wait by design, so that their times do not show how fast requests are served:
//! those of admin queues, on which requests for asynchronous events wait until there is an event or
//! the connection ends.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use objects::ObjectSpec;
use records::{Context, Field};
use spdk_trace::{Record, Ticks};

use crate::{QUEUE, field};

/// Reason that a request is not counted with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Excluded {
    /// It belongs to an admin queue, number 0 of its controller.
    Admin,
    /// It was not answered, and its queue is unknown.
    Unanswered,
}

impl Excluded {
    /// Returns the reason to exclude a request, if any: its queue may be known, and it may have had
    /// no answer ([`crate::TrackedObject::is_unanswered`]). On an I/O queue such a request was
    /// given up, and is the one to look at.
    pub fn from_flags(is_admin: Option<bool>, is_unanswered: bool) -> Option<Self> {
        match is_admin {
            Some(true) => Some(Self::Admin),
            None if is_unanswered => Some(Self::Unanswered),
            Some(false) | None => None,
        }
    }

    /// Returns its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Unanswered => "unanswered",
        }
    }

    /// Describes such requests, after their number in the title of a table.
    pub fn in_title(self) -> &'static str {
        match self {
            Self::Admin => "of admin queues, on which requests for async events wait by design",
            Self::Unanswered => "without an answer: async events of admin queues, or given up",
        }
    }

    /// Describes such requests, above their rows.
    pub fn headline(self) -> &'static str {
        let title = self.in_title();
        title.strip_prefix("of ").unwrap_or(title)
    }
}

/// Number of an admin queue (NVMe base specification, 1.5), as the text of a field.
const ADMIN_QUEUE: &str = "0";

/// Finder of the queues of requests.
///
/// It remembers the queues of owners: reading an owner's description takes longer than the rest of
/// a record's work.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Field with the number of a request's queue.
    number: Field,
    owners: HashMap<u16, (Ticks, bool), RandomState>,
}

impl Queues {
    /// Finds the queues of objects of these kinds.
    pub fn new(specs: &[ObjectSpec]) -> anyhow::Result<Self> {
        Ok(Self {
            number: field::parse(QUEUE, specs)?,
            owners: HashMap::default(),
        })
    }

    /// Learns from a record whether its object's queue is an admin queue, unless that is already
    /// known. `related` is the same for the object that it works for.
    pub(crate) fn learn(
        &mut self,
        is_admin: &mut Option<bool>,
        record: &Record<'_>,
        context: &Context<'_>,
        related: Option<bool>,
    ) {
        if is_admin.is_none() {
            *is_admin = self.is_admin(record, context).or(related);
        }
    }

    /// Returns whether the record's queue is an admin queue, if the record shows that.
    fn is_admin(&mut self, record: &Record<'_>, context: &Context<'_>) -> Option<bool> {
        let owner = record.owner_since;
        if let Some((id, since)) = owner
            && let Some((_, is_admin)) = self.owners.get(&id).filter(|(known, _)| *known == since)
        {
            return Some(*is_admin);
        }
        if owner.is_none() && context.annotator.is_none() {
            return None;
        }
        let is_admin = self.number.value(record, context)? == ADMIN_QUEUE;
        if let Some((id, since)) = owner {
            self.owners.insert(id, (since, is_admin));
        }
        Some(is_admin)
    }
}
