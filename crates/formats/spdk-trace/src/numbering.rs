//! Numbers and ages of objects, assigned as in `spdk_trace`: in the order of the whole trace.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::header::TpointTable;
use crate::record::{ArgValue, Args, Object, ObjectName, RelatedObject};
use crate::tpoint::Tpoint;
use crate::units::Ticks;

/// An object whose creation was recorded.
#[derive(Clone, Copy, Debug)]
struct CreatedObject {
    number: u64,
    created: Ticks,
}

/// All objects created so far.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// Objects by type.
    types: Vec<Objects>,
}

/// The objects of one type.
#[derive(Clone, Debug, Default)]
struct Objects {
    created: u64,
    /// The newest object with each id.
    by_id: HashMap<u64, CreatedObject, RandomState>,
}

impl Numbering {
    pub(crate) fn new() -> Self {
        Self {
            types: vec![Objects::default(); 256],
        }
    }

    /// Returns the object of a record of `tpoint` with this `id`. A record that creates an object
    /// assigns its number.
    #[inline]
    pub(crate) fn object(&mut self, tpoint: &Tpoint, id: u64, tsc: Ticks) -> Object {
        let kind = tpoint.object_type;
        if kind == 0 {
            return if id == 0 {
                Object::None
            } else {
                Object::Untyped(id)
            };
        }
        let objects = &mut self.types[usize::from(kind)];
        let seen = if tpoint.new_object {
            let seen = CreatedObject {
                number: objects.created,
                created: tsc,
            };
            objects.created += 1;
            objects.by_id.insert(id, seen);
            seen
        } else {
            match objects.by_id.get(&id) {
                Some(&seen) => seen,
                None => return Object::Unseen(id),
            }
        };
        let age = Ticks(tsc.0.saturating_sub(seen.created.0));
        Object::Known {
            name: named(tpoint.object_prefix, seen.number),
            id,
            age: Some(age),
        }
    }

    /// Returns the object of the tracepoint's first relation whose argument is the id of a created
    /// object.
    #[inline]
    pub(crate) fn related(
        &self,
        tpoints: &TpointTable,
        tpoint: &Tpoint,
        args: Args<'_>,
    ) -> Option<RelatedObject> {
        tpoint.relations.iter().find_map(|relation| {
            let (_, value) = args.iter().nth(usize::from(relation.arg))?;
            let (ArgValue::Int(id) | ArgValue::Pointer(id)) = value else {
                return None;
            };
            let seen = self.types[usize::from(relation.object_type)]
                .by_id
                .get(&id)?;
            let prefix = tpoints.object_prefix(relation.object_type);
            Some(RelatedObject {
                name: named(prefix, seen.number),
                arg: Some(relation.arg),
            })
        })
    }
}

/// Returns the name of an object. Unregistered types, which have no prefix, get `?`.
fn named(prefix: Option<char>, number: u64) -> ObjectName {
    ObjectName {
        prefix: prefix.unwrap_or('?'),
        number,
    }
}
