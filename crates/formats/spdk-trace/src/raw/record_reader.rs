//! Records of the slots of a ring, with their arguments.

use crate::numbering::Numbering;
use crate::order::continued;
use crate::raw::{Context, Lane};
use crate::record::{ArgData, Args, MAX_PACKED, OwnerLabel, Poller, Record};
use crate::slot::Slots;
use crate::tpoint::Tpoint;

/// Reader that turns slots into records, with the state between records.
#[derive(Debug)]
pub(crate) struct RecordReader {
    numbering: Numbering,
    /// Arguments joined from several slots.
    scratch: Vec<u8>,
}

impl RecordReader {
    pub(crate) fn new() -> Self {
        Self {
            numbering: Numbering::new(),
            scratch: Vec::with_capacity(MAX_PACKED),
        }
    }

    #[inline]
    pub(crate) fn record<'a>(
        &'a mut self,
        lane: Lane<'a>,
        index: usize,
        context: &'a Context<'_>,
    ) -> Option<Record<'a>> {
        let slot = lane.slots.at(index);
        let tpoint = context.tpoints.get(slot.tpoint_id())?;
        let object = self.numbering.object(tpoint, slot.object_id(), slot.tsc());
        let packed = pack(
            &mut self.scratch,
            lane.slots,
            index,
            tpoint,
            context.tpoints.continuation_id(),
        );
        let args = Args {
            specs: &tpoint.args,
            data: ArgData::Packed(packed),
        };
        let related = if tpoint.relations.is_empty() {
            None
        } else {
            self.numbering.related(context.tpoints, tpoint, args)
        };
        let poller = tpoint
            .owner_prefix
            .map(|prefix| Poller::Id(prefix, slot.owner_id()));
        let owner = if context.era.has_owners() {
            context.owners.at(slot.owner_id(), slot.tsc())
        } else {
            None
        };
        let owner_since = owner.map(|owner| (slot.owner_id(), owner.since));
        let owner = owner.map(|o| o.description.as_str());
        Some(Record {
            lcore: lane.lcore,
            thread_name: lane.thread_name,
            tsc: slot.tsc(),
            tpoint,
            size: slot.size(),
            poller,
            owner,
            owner_since,
            label: match (owner, poller) {
                (Some(description), _) => OwnerLabel::Description(description),
                (None, Some(poller)) => OwnerLabel::Poller(poller),
                (None, None) => OwnerLabel::None,
            },
            object,
            related,
            args,
            annotations: None,
            lost_since: lane.lost_since,
        })
    }
}

/// Returns the bytes of a record's arguments, back to back, as far as their slots exist.
#[inline]
fn pack<'a>(
    scratch: &'a mut Vec<u8>,
    slots: Slots<'a>,
    index: usize,
    tpoint: &Tpoint,
    continuation_id: u16,
) -> &'a [u8] {
    let slot = slots.at(index);
    if tpoint.continuations() == 0 {
        return slot.inline_args();
    }
    scratch.clear();
    scratch.extend_from_slice(slot.inline_args());
    for next in continued(slots, index, continuation_id).take(tpoint.continuations()) {
        scratch.extend_from_slice(slots.at(next).continued_args());
    }
    scratch
}
