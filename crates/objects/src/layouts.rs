//! Layouts of SPDK's structs by version, for programs without debug information (`objects/layouts`).
//!
//! The files hold C definitions. The comment line above each has the versions for which it is valid: `// v22.01 to v23.01`,
//! `// v24.01`, or `// from v25.01`.

use std::fmt;
use std::str::FromStr;

/// The files, in the order in which their structs contain each other.
const FILES: [&str; 4] = [
    include_str!("../../../objects/layouts/spdk-nvme.h"),
    include_str!("../../../objects/layouts/spdk-bdev.h"),
    include_str!("../../../objects/layouts/spdk-thread.h"),
    include_str!("../../../objects/layouts/spdk-nvmf.h"),
];

/// A release of SPDK: `v22.09`. Fixes of a release (`v22.09.1`) have its layouts, and so do its candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpdkVersion {
    /// Year, two digits.
    pub year: u8,
    /// Month.
    pub month: u8,
}

impl fmt::Display for SpdkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{:02}.{:02}", self.year, self.month)
    }
}

/// A text that is no version of SPDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a version of SPDK: {text:?} (expected one like v22.09)")]
pub struct NoVersion {
    text: String,
}

impl FromStr for SpdkVersion {
    type Err = NoVersion;

    /// From `v22.09`, `22.09`, `v22.09.1`, `v22.09-pre`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let wrong = || NoVersion { text: text.to_owned() };
        let mut numbers = text.strip_prefix('v').unwrap_or(text).splitn(3, ['.', '-']);
        let mut number = || {
            let digits =
                numbers.next().filter(|digits| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()));
            digits.and_then(|digits| digits.parse::<u8>().ok()).ok_or_else(wrong)
        };
        let (year, month) = (number()?, number()?);
        if (1..=12).contains(&month) { Ok(Self { year, month }) } else { Err(wrong()) }
    }
}

/// One definition, and the versions for which it is valid.
struct Definition {
    first: SpdkVersion,
    /// None where it is valid for the newest version known, and taken for later ones.
    last: Option<SpdkVersion>,
    text: &'static str,
}

/// The layouts of this version, as C definitions; what a struct contains comes before it. An older version than all known has none.
/// For a newer one than all known, the newest are taken: what is read with them has to be checked anyway.
#[must_use]
pub fn layout_text(version: SpdkVersion) -> String {
    let valid =
        |definition: &Definition| definition.first <= version && definition.last.is_none_or(|last| version <= last);
    definitions().filter(valid).map(|definition| definition.text).collect::<Vec<_>>().join("\n")
}

/// Every version in which some layout changed, the oldest first.
#[must_use]
pub fn versions() -> Vec<SpdkVersion> {
    let mut versions: Vec<_> = definitions().map(|definition| definition.first).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

fn definitions() -> impl Iterator<Item = Definition> {
    FILES.iter().flat_map(|file| file.split("\n\n")).filter_map(|part| {
        let (range, text) = part.trim_start().split_once('\n')?;
        let range = range.strip_prefix("// ")?;
        let (first, last) = if let Some(first) = range.strip_prefix("from ") {
            (first.parse().ok()?, None)
        } else {
            let (first, last) = range.split_once(" to ").unwrap_or((range, range));
            (first.parse().ok()?, Some(last.parse().ok()?))
        };
        Some(Definition { first, last, text })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> SpdkVersion {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_read_as_they_are_written() {
        for text in ["v22.09", "22.09", "v22.09.1", "v22.09-pre", "v22.09.1-rc1"] {
            assert_eq!(version(text), SpdkVersion { year: 22, month: 9 }, "{text}");
        }
        assert_eq!(version("v22.09").to_string(), "v22.09");
        for text in ["", "v", "22", "v22", "v22.9", "v22.13", "v22.00", "v+2.09", "v22.0x", "vv22.09", "2022.09"] {
            assert!(text.parse::<SpdkVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_version_has_each_struct_once() {
        let known = versions();
        assert_eq!((known.first(), known.len()), (Some(&version("v21.07")), 17));
        for known in known {
            let text = layout_text(known);
            let mut structs: Vec<_> = text.lines().filter(|line| line.starts_with("struct ")).collect();
            let all = structs.len();
            structs.sort_unstable();
            structs.dedup();
            // The initiator's struct for several paths came with v21.10.
            let expected = if known == version("v21.07") { 18 } else { 19 };
            assert_eq!((structs.len(), all), (expected, expected), "{known}");
        }
        assert_eq!(layout_text(version("v20.10")), "");
        assert_eq!(layout_text(version("v30.01")), layout_text(*versions().last().unwrap()));
        // No part of a file was taken for text between the definitions.
        let parts = FILES.iter().flat_map(|file| file.split("\n\n")).count();
        assert_eq!(definitions().count(), parts - FILES.len());
    }
}
