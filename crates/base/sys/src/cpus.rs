//! CPU numbers as the kernel lists them (Documentation/admin-guide/cputopology.rst): `0-3,7`.
//!
//! `host` reads the contents of `/sys`. The number of possible CPUs is read here all the same: it
//! decides how many bytes the kernel writes for a lookup in a per-CPU map, so a wrong number from
//! outside would make the calls of this crate unsound.

use std::collections::BTreeSet;
use std::io;
use std::sync::OnceLock;

/// Kernel's list of the possible CPUs.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// Parses a list of numbers and ranges of CPUs; `None` if it is invalid.
pub fn parse_list(list: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in list.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(from.parse::<usize>().ok()?..=to.parse().ok()?);
    }
    Some(cpus)
}

/// Returns the number of possible CPUs: per-CPU maps have a value for each (`num_possible_cpus`).
pub fn possible() -> io::Result<usize> {
    static KNOWN: OnceLock<usize> = OnceLock::new();
    if let Some(&known) = KNOWN.get() {
        return Ok(known);
    }
    let text = std::fs::read_to_string(POSSIBLE).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{POSSIBLE}, which lists the CPUs: {error}"),
        )
    })?;
    // The numbers may have gaps; the kernel's arrays have none.
    let last = parse_list(&text)
        .and_then(|cpus| cpus.last().copied())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(*KNOWN.get_or_init(|| last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read() {
        let parsed = |list| parse_list(list).map(Vec::from_iter);
        assert_eq!(parsed("0-1\n"), Some(vec![0, 1]));
        assert_eq!(parsed("0"), Some(vec![0]));
        assert_eq!(parsed("0-2,8-9,5"), Some(vec![0, 1, 2, 5, 8, 9]));
        assert_eq!((parsed(""), parsed("x"), parsed("1-")), (None, None, None));
        assert!(possible().unwrap() > 0);
    }
}
