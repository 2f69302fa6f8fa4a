//! Lists of CPUs on the kernel's command line (Documentation/admin-guide/kernel-parameters.rst,
//! "cpu lists").

use kernel_text::cpus::CpuSet;

/// Returns the value of the last parameter with this name; empty if it has none.
pub(crate) fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let found = line.split_whitespace().rev().find_map(|word| {
        let rest = word.strip_prefix(name)?;
        if rest.is_empty() {
            Some("")
        } else {
            rest.strip_prefix('=')
        }
    });
    found.map(|value| value.trim_matches('"'))
}

/// Parses a list of CPUs: numbers, ranges, `N` for the last CPU, `all`, and groups of a range,
/// `0-31:2/4`. `None` if it is not a list.
pub(crate) fn list(text: &str, possible: &CpuSet) -> Option<CpuSet> {
    let last = possible.iter().last()?;
    if text == "all" {
        return Some(possible.clone());
    }
    let number = |text: &str| {
        if text == "N" {
            Some(last)
        } else {
            text.parse::<u32>().ok()
        }
    };
    let mut cpus = CpuSet::default();
    for part in text.split(',') {
        let (range, groups) = part
            .split_once(':')
            .map_or((part, None), |(range, groups)| (range, Some(groups)));
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        // CPUs beyond the last one are ignored.
        let (from, to) = (number(from)?, number(to)?.min(last));
        let (used, size) = match groups {
            Some(groups) => groups
                .split_once('/')
                .and_then(|(used, size)| Some((used.parse().ok()?, size.parse().ok()?)))?,
            None => (1, 1),
        };
        if size == 0u32 || used > size {
            return None;
        }
        cpus = cpus.or(&(from..=to)
            .filter(|cpu| (cpu - from) % size < used)
            .collect());
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_of_the_kernel() {
        let possible = CpuSet::from_list("0-15").unwrap();
        for (text, cpus) in [
            ("2-5", "2-5"),
            ("all", "0-15"),
            ("1-N", "1-15"),
            ("0-15:2/4", "0-1,4-5,8-9,12-13"),
            ("3,99", "3"),
            ("N", "15"),
        ] {
            assert_eq!(list(text, &possible).unwrap().to_string(), cpus, "{text}");
        }
        for text in ["", "x", "1-", "0-3:2", "0-3:1/0", "0-3:5/4"] {
            assert_eq!(list(text, &possible), None, "{text}");
        }
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let line = "quiet rcu_nocbs=1 rcu_nocbs_poll rcu_nocbs=2-3 nohz_full";
        assert_eq!(
            (
                value(line, "rcu_nocbs"),
                value(line, "nohz_full"),
                value(line, "isolcpus")
            ),
            (Some("2-3"), Some(""), None)
        );
    }
}
