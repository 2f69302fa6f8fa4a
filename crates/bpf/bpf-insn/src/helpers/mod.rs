//! The kernel's helper functions: numbers, names, and the first release that has each.

mod table;

use std::fmt;
use uapi::KernelVersion;

/// Helper function, by its number in `enum bpf_func_id` (`linux/bpf.h`). The constants name the
/// known ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Helper(pub u32);

/// Row of the table of helpers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    id: u32,
    name: &'static str,
    since: Option<KernelVersion>,
}

impl Helper {
    /// Returns its name in C code (`bpf_map_lookup_elem`), if the number is a known one.
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.name)
    }

    /// Returns the first Linux release that has it, known for the helpers of use to a tracer.
    pub fn since(self) -> Option<KernelVersion> {
        self.entry().and_then(|entry| entry.since)
    }

    /// Finds the helper of this name, with or without the prefix `bpf_`.
    pub fn by_name(name: &str) -> Option<Self> {
        let bare = name.strip_prefix("bpf_").unwrap_or(name);
        let entry = table::TABLE
            .iter()
            .find(|entry| entry.name.strip_prefix("bpf_") == Some(bare))?;
        Some(Self(entry.id))
    }

    /// Returns all known helpers, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        table::TABLE.iter().map(|entry| Self(entry.id))
    }

    fn entry(self) -> Option<&'static Entry> {
        let index = self.0.checked_sub(1)?;
        // The table has no gaps, which a test checks.
        table::TABLE.get(index as usize)
    }
}

impl fmt::Display for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "helper#{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_no_gaps() {
        for (index, entry) in table::TABLE.iter().enumerate() {
            assert_eq!(entry.id as usize, index + 1, "{}", entry.name);
        }
    }

    #[test]
    fn names_go_both_ways() {
        for helper in Helper::all() {
            let name = helper.name().unwrap();
            assert_eq!(Helper::by_name(name), Some(helper));
        }
        assert_eq!(
            Helper::by_name("ringbuf_output"),
            Some(Helper::RINGBUF_OUTPUT)
        );
        assert_eq!(Helper::by_name("bpf_no_such"), None);
    }

    #[test]
    fn unknown_numbers_are_shown_as_numbers() {
        assert_eq!(Helper(0).to_string(), "helper#0");
        assert_eq!(Helper(u32::MAX).to_string(), "helper#4294967295");
        assert_eq!(Helper::LOOP.to_string(), "bpf_loop");
    }

    #[test]
    fn releases_of_the_tracers_helpers_are_known() {
        let since = |helper: Helper| helper.since().map(|version| version.to_string());
        assert_eq!(since(Helper::MAP_LOOKUP_ELEM).as_deref(), Some("3.19"));
        assert_eq!(since(Helper::PROBE_READ_USER_STR).as_deref(), Some("5.5"));
        assert_eq!(since(Helper::RINGBUF_RESERVE).as_deref(), Some("5.8"));
        assert_eq!(since(Helper::GET_ATTACH_COOKIE).as_deref(), Some("5.15"));
        assert_eq!(since(Helper::SKB_STORE_BYTES), None);
    }
}
