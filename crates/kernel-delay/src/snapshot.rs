//! A thread's value, as it was read from the map.

use bpf_codegen::delay::layout::{HISTOGRAM, SLOTS, call, state, value};

use crate::sample::wide_at;

/// A thread's value. One that is too short has zeros behind it.
///
/// A value has room for every system call, and a thread makes few of them: the others' zeros are not kept, or a process of
/// 4,000 threads would take 160 MB for its two snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    /// What is before the calls.
    head: Vec<u8>,
    /// The calls that have something, by slot.
    calls: Vec<(u32, [u8; call::SIZE as usize])>,
}

impl Snapshot {
    /// Of the map's bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let (head, rest) = bytes.split_at_checked(value::CALLS.cast_unsigned().into()).unwrap_or((bytes, &[]));
        let (calls, _) = rest.as_chunks::<{ call::SIZE as usize }>();
        let calls = (0..SLOTS).zip(calls.iter().copied()).filter(|(_, call)| call.iter().any(|&byte| byte != 0));
        Self { head: head.to_vec(), calls: calls.collect() }
    }

    /// Until when its time is accounted for.
    pub fn mark(&self) -> u64 {
        self.wide(value::MARK)
    }

    /// When the thread was born; 0 where that was before it was seen.
    pub fn born(&self) -> u64 {
        self.wide(value::BORN)
    }

    /// Whether no event has told of the thread yet.
    pub fn is_unsure(&self) -> bool {
        self.narrow(value::STATE) == state::UNSURE
    }

    /// Whether the thread is gone.
    pub fn is_dead(&self) -> bool {
        self.narrow(value::STATE) == state::DEAD
    }

    /// A 64-bit number at an offset of [`value`].
    pub(crate) fn wide(&self, at: i16) -> u64 {
        self.number::<8>(at.cast_unsigned().into()).map_or(0, u64::from_le_bytes)
    }

    /// A 32-bit number at an offset of [`value`].
    pub(crate) fn narrow(&self, at: i16) -> u32 {
        self.number::<4>(at.cast_unsigned().into()).map_or(0, u32::from_le_bytes)
    }

    /// A part ([`call`]) of a system call's entry.
    pub(crate) fn call(&self, slot: u32, part: i16) -> u64 {
        let Ok(at) = self.calls.binary_search_by_key(&slot, |(slot, _)| *slot) else { return 0 };
        wide_at(&self.calls[at].1, part.cast_unsigned().into())
    }

    /// The slot and part of a call that a bucket is, if it is one.
    pub(crate) fn call_of_bucket(bucket: u32) -> Option<(u32, i16)> {
        let offset = bucket.checked_sub(value::CALLS.cast_unsigned().into())?;
        let part = if offset % call::SIZE == u32::from(call::CPU.cast_unsigned()) { call::CPU } else { call::BLOCKED };
        Some((offset / call::SIZE, part))
    }

    /// A histogram.
    pub(crate) fn histogram(&self, at: i16) -> Vec<u32> {
        (0..HISTOGRAM as i16).map(|index| self.narrow(at + index * 4)).collect()
    }

    /// Its name; what is not UTF-8, and control characters, are shown as `\xNN`.
    pub fn comm(&self) -> String {
        let at = usize::from(value::COMM.cast_unsigned());
        name(self.head.get(at..at + 16).unwrap_or_default())
    }

    fn number<const BYTES: usize>(&self, at: usize) -> Option<[u8; BYTES]> {
        self.head.get(at..at + BYTES)?.try_into().ok()
    }
}

/// A task's name from its 16 bytes, as foreign text is shown.
pub(crate) fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    spdk_trace::printable(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `/proc/PID/task/TID/comm` is shown, which has the name while the thread lives.
    #[test]
    fn a_name_is_shown_with_its_odd_bytes() {
        assert_eq!(name(b"ren\x01\xff1\0ing\0"), "ren\\x01\\xff1");
        assert_eq!(name(b"sixteen bytes ab"), "sixteen bytes ab");
    }
}
