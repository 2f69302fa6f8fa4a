//! Offsets in a thread's value that this value holds: of its current call, and of the sum that its
//! time goes to.

use core::mem::offset_of;

use super::{CallEntry, SLOTS, Thread, ThreadValue};

/// Returns the offset of a slot's entry in a thread's value.
pub const fn entry_of(slot: u32) -> u32 {
    offset_of!(ThreadValue, calls) as u32 + slot * size_of::<CallEntry>() as u32
}

/// Returns the slot whose entry is at this offset.
pub const fn slot_of(entry: u32) -> u32 {
    entry.saturating_sub(entry_of(0)) / size_of::<CallEntry>() as u32
}

/// Sum of a thread that its time goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bucket {
    /// [`Thread::unsure`].
    Unsure,
    /// [`Thread::ready`].
    Ready,
    /// [`Thread::stopped`].
    Stopped,
    /// [`Thread::hard`].
    Hard,
    /// [`Thread::soft`].
    Soft,
    /// [`Thread::frozen`].
    Frozen,
    /// [`Thread::traced`].
    Traced,
    /// [`CallEntry::cpu`] of this slot.
    OnCpu(u32),
    /// [`CallEntry::blocked`] of this slot.
    Blocked(u32),
}

impl Bucket {
    /// Returns the bucket at an offset in a thread's value; `None` if no sum is there, or time
    /// belongs to nobody.
    pub fn at(offset: u32) -> Option<Self> {
        let simple = [
            (offset_of!(Thread, unsure), Self::Unsure),
            (offset_of!(Thread, ready), Self::Ready),
            (offset_of!(Thread, stopped), Self::Stopped),
            (offset_of!(Thread, hard), Self::Hard),
            (offset_of!(Thread, soft), Self::Soft),
            (offset_of!(Thread, frozen), Self::Frozen),
            (offset_of!(Thread, traced), Self::Traced),
        ];
        if let Some((_, bucket)) = simple.into_iter().find(|(at, _)| *at == offset as usize) {
            return Some(bucket);
        }
        let slot = slot_of(offset);
        let part = offset
            .checked_sub(entry_of(slot))
            .filter(|_| slot < SLOTS)? as usize;
        match part {
            _ if part == offset_of!(CallEntry, cpu) => Some(Self::OnCpu(slot)),
            _ if part == offset_of!(CallEntry, blocked) => Some(Self::Blocked(slot)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each sum is found at its offset, and nothing else is a bucket.
    #[test]
    fn a_bucket_is_one_of_the_sums() {
        let cpu = |slot| entry_of(slot) + offset_of!(CallEntry, cpu) as u32;
        assert_eq!(
            Bucket::at(offset_of!(Thread, soft) as u32),
            Some(Bucket::Soft)
        );
        assert_eq!(
            [0, SLOTS - 1].map(|slot| Bucket::at(cpu(slot))),
            [0, SLOTS - 1].map(|slot| Some(Bucket::OnCpu(slot)))
        );
        assert_eq!(Bucket::at(cpu(3) + 8), Some(Bucket::Blocked(3)));
        for nothing in [
            0,
            1,
            cpu(3) - 8,
            cpu(3) + 1,
            cpu(SLOTS),
            offset_of!(Thread, nobody) as u32,
            u32::MAX,
        ] {
            assert_eq!(Bucket::at(nothing), None, "{nothing}");
        }
    }
}
