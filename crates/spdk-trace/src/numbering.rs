//! Objects' running numbers and ages, as SPDK's own printer gives them: in the order of the whole trace.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::header::TpointTable;
use crate::record::{ArgValue, Args, Object, ObjectName, Related};
use crate::tpoint::Tpoint;
use crate::units::Ticks;

/// An object that was created.
#[derive(Clone, Copy, Debug)]
struct Seen {
    number: u64,
    created: Ticks,
}

/// What was created so far.
#[derive(Debug)]
pub(crate) struct Numbering {
    counters: [u64; 256],
    /// By type and id.
    seen: HashMap<(u8, u64), Seen, RandomState>,
}

impl Numbering {
    pub(crate) fn new() -> Self {
        Self { counters: [0; 256], seen: HashMap::default() }
    }

    /// What a record of `tpoint` with that `id` is about; a record that creates an object gives it its number.
    #[inline]
    pub(crate) fn object(&mut self, tpoint: &Tpoint, id: u64, tsc: Ticks) -> Object {
        let kind = tpoint.object_type;
        if kind == 0 {
            return if id == 0 { Object::None } else { Object::Untyped(id) };
        }
        let seen = if tpoint.new_object {
            let counter = &mut self.counters[usize::from(kind)];
            let seen = Seen { number: *counter, created: tsc };
            *counter += 1;
            self.seen.insert((kind, id), seen);
            seen
        } else {
            match self.seen.get(&(kind, id)) {
                Some(&seen) => seen,
                None => return Object::Unseen(id),
            }
        };
        let age = Ticks(tsc.0.saturating_sub(seen.created.0));
        Object::Known { name: named(tpoint.object_prefix, seen.number), id, age: Some(age) }
    }

    /// The first of the tracepoint's relations whose argument is an object that was created.
    #[inline]
    pub(crate) fn related(&self, tpoints: &TpointTable, tpoint: &Tpoint, args: Args<'_>) -> Option<Related> {
        tpoint.relations.iter().find_map(|relation| {
            let (_, value) = args.iter().nth(usize::from(relation.arg))?;
            let (ArgValue::Int(id) | ArgValue::Pointer(id)) = value else { return None };
            let seen = self.seen.get(&(relation.object_type, id))?;
            let prefix = tpoints.object_prefix(relation.object_type);
            Some(Related { name: named(prefix, seen.number), arg: Some(relation.arg) })
        })
    }
}

/// An object type that was never registered has no prefix; its objects are still told apart.
fn named(prefix: Option<char>, number: u64) -> ObjectName {
    ObjectName { prefix: prefix.unwrap_or('?'), number }
}
