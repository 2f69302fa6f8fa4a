//! Sets of CPUs, as the kernel writes them: as a list, `0-3,8`, or as a mask of groups of 32 bits, `ff,00000003`
//! (Documentation/admin-guide/cputopology.rst; `bitmap_parselist` and `bitmap_parse` in lib/bitmap-str.c).

use std::collections::BTreeSet;
use std::fmt;

/// Limit on CPU numbers: more CPUs than any kernel has (`CONFIG_NR_CPUS` ends at 8192 on x86-64,
/// 4096 on aarch64).
const MAX_CPUS: u32 = 1 << 16;
/// Bits of a group of a mask (`CHUNKSZ` in lib/bitmap-str.c).
const GROUP: u32 = 32;

/// A set of CPUs by number. It is shown as the kernel lists it; an empty one as an empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    /// Parses a list, `0-3,8`; `None` if it is malformed. The set is empty for an empty list, or
    /// for `(null)`, which some files of /sys contain.
    pub fn from_list(list: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        let list = list.trim();
        if list.is_empty() || list == "(null)" {
            return Some(Self(cpus));
        }
        for part in list.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return None;
            }
            cpus.extend(from..=to);
        }
        Some(Self(cpus))
    }

    /// Parses a mask, `ff,00000003`; `None` if it is malformed.
    pub fn from_mask(mask: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        let mut first = 0;
        for group in mask.trim().rsplit(',') {
            if group.is_empty()
                || group.len() > 8
                || !group.bytes().all(|byte| byte.is_ascii_hexdigit())
                || first >= MAX_CPUS
            {
                return None;
            }
            let bits = u32::from_str_radix(group, 16).ok()?;
            cpus.extend(
                (0..GROUP)
                    .filter(|bit| bits >> bit & 1 != 0)
                    .map(|bit| first + bit),
            );
            first += GROUP;
        }
        Some(Self(cpus))
    }

    /// Formats the set as a mask, as the kernel takes it.
    pub fn mask(&self) -> String {
        let groups = self.0.last().map_or(1, |last| last / GROUP + 1);
        let bits = |group: u32| {
            let set = (0..GROUP).filter(|bit| self.0.contains(&(group * GROUP + bit)));
            set.fold(0u32, |bits, bit| bits | 1 << bit)
        };
        let mut texts = (0..groups).rev().map(bits);
        let first = texts
            .next()
            .map_or_else(String::new, |bits| format!("{bits:x}"));
        texts.fold(first, |text, bits| format!("{text},{bits:08x}"))
    }

    /// Returns true if this CPU is in the set.
    pub fn has(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the CPUs, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Returns the CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// Returns the CPUs that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// Returns the CPUs that are in one of both sets.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }
}

/// Parses a CPU's number.
fn number(text: &str) -> Option<u32> {
    // `parse` accepts a sign.
    text.parse()
        .ok()
        .filter(|&cpu| cpu < MAX_CPUS && !text.starts_with('+'))
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(from) = cpus.next() {
            let mut to = from;
            while let Some(next) = cpus.next_if_eq(&(to + 1)) {
                to = next;
            }
            write!(f, "{separator}{from}")?;
            if to > from {
                write!(f, "-{to}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_shown() {
        for (list, shown) in [
            ("0-3,8\n", "0-3,8"),
            ("", ""),
            ("(null)", ""),
            ("5,4", "4-5"),
            ("0,2,4", "0,2,4"),
            ("65535", "65535"),
        ] {
            assert_eq!(
                CpuSet::from_list(list).unwrap().to_string(),
                shown,
                "{list:?}"
            );
        }
        for list in [
            "x",
            "1-",
            "-1",
            "3-1",
            "+1",
            "1,,2",
            "0-4294967295",
            "65536",
            "nvmf_tgt",
        ] {
            assert_eq!(CpuSet::from_list(list), None, "{list:?}");
        }
    }

    #[test]
    fn masks_are_read_and_written() {
        for (mask, list) in [
            ("3\n", "0-1"),
            ("ff,00000003", "0-1,32-39"),
            ("0", ""),
            ("80000000,00000000,00000001", "0,95"),
        ] {
            let set = CpuSet::from_mask(mask).unwrap();
            assert_eq!(
                (set.to_string().as_str(), set.mask().as_str()),
                (list, mask.trim()),
                "{mask:?}"
            );
        }
        for mask in ["", "x", "1,", "123456789", "+1", "1,-1"] {
            assert_eq!(CpuSet::from_mask(mask), None, "{mask:?}");
        }
        assert_eq!(CpuSet::from_mask(&"0,".repeat(3000)), None);
    }

    #[test]
    fn sets_are_compared() {
        let set = |list| CpuSet::from_list(list).unwrap();
        assert_eq!(
            (set("0-3").and(&set("2-5")), set("0-3").without(&set("2-5"))),
            (set("2-3"), set("0-1"))
        );
        assert_eq!((set("0").or(&set("2")), set("0-3").len()), (set("0,2"), 4));
        assert!(set("7").has(7) && !set("7").has(6) && set("").is_empty());
        assert_eq!(set("0-1").iter().collect::<CpuSet>(), set("0-1"));
    }
}
