//! Layouts of SPDK's structs by version, for programs without debug information
//! (`objects/layouts`).
//!
//! The files hold C definitions. The comment line above each has the versions for which it is
//! valid: `// v22.01 to v23.01`, `// v24.01`, or `// from v25.01`.

use std::fmt;
use std::str::FromStr;

/// The files, ordered so that contained structs come first.
const FILES: [&str; 4] = [
    include_str!("../../../../objects/layouts/spdk-nvme.h"),
    include_str!("../../../../objects/layouts/spdk-bdev.h"),
    include_str!("../../../../objects/layouts/spdk-thread.h"),
    include_str!("../../../../objects/layouts/spdk-nvmf.h"),
];

/// A release of SPDK: `v22.09`. Its fixes (`v22.09.1`) and candidates have the same layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpdkVersion {
    /// Year, two digits.
    pub year: u8,
    /// Month, from 1.
    pub month: u8,
}

impl fmt::Display for SpdkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{:02}.{:02}", self.year, self.month)
    }
}

/// Error for a text that is no version of SPDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a version of SPDK: {text:?} (expected one like v22.09)")]
pub struct NoVersion {
    text: String,
}

impl FromStr for SpdkVersion {
    type Err = NoVersion;

    /// Parses `v22.09`, `22.09`, `v22.09.1` or `v22.09-pre`.
    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let wrong = || NoVersion {
            text: text.to_owned(),
        };
        let mut numbers = text.strip_prefix('v').unwrap_or(text).splitn(3, ['.', '-']);
        let mut number = || {
            let digits = numbers
                .next()
                .filter(|digits| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()));
            digits
                .and_then(|digits| digits.parse::<u8>().ok())
                .ok_or_else(wrong)
        };
        let (year, month) = (number()?, number()?);
        if (1..=12).contains(&month) {
            Ok(Self { year, month })
        } else {
            Err(wrong())
        }
    }
}

/// Searches the bytes of a program file, block by block, for the version that the program prints at
/// startup (`SPDK_VERSION_STRING`, include/spdk/version.h: `SPDK v24.09`).
#[derive(Debug, Default)]
pub struct VersionSearch {
    /// Last bytes of the previous blocks, too few to contain a version.
    tail: Vec<u8>,
}

/// Text before the version.
const STATED: &[u8] = b"SPDK v";
/// Length of this text and the version, in bytes.
const STATED_LENGTH: usize = STATED.len() + "24.09".len();

impl VersionSearch {
    /// Searches the next block. Returns the first version found so far; must not be called again
    /// after that.
    pub fn feed(&mut self, block: &[u8]) -> Option<SpdkVersion> {
        const OVERLAP_BYTES: usize = STATED_LENGTH - 1;
        self.tail
            .extend_from_slice(&block[..block.len().min(OVERLAP_BYTES)]);
        let found = first_version(&self.tail).or_else(|| first_version(block));
        let last = if block.len() < OVERLAP_BYTES {
            self.tail.as_slice()
        } else {
            block
        };
        self.tail = last[last.len().saturating_sub(OVERLAP_BYTES)..].to_vec();
        found
    }
}

fn first_version(bytes: &[u8]) -> Option<SpdkVersion> {
    let stated = memchr::memmem::find_iter(bytes, STATED);
    let mut texts = stated.filter_map(|at| bytes.get(at + STATED.len()..at + STATED_LENGTH));
    texts.find_map(|text| std::str::from_utf8(text).ok()?.parse().ok())
}

/// Iterates over the structs with known layouts for this version: name and definition, in the order
/// of [`layout_text`].
pub fn structs(version: SpdkVersion) -> impl Iterator<Item = (&'static str, &'static str)> {
    valid_for(version).filter_map(|definition| {
        let named = definition.text.trim_start().strip_prefix("struct ")?;
        Some((named.split_whitespace().next()?, definition.text))
    })
}

/// A definition, and the versions for which it is valid.
struct Definition {
    first: SpdkVersion,
    /// Last version. `None` if it is valid for the newest known version; it is then used for later
    /// ones too.
    last: Option<SpdkVersion>,
    text: &'static str,
}

/// Returns the layouts of this version, as C definitions; contained structs come first. The text is
/// empty for a version older than all known. A version newer than all known gets the newest
/// layouts: values read with them have to be checked anyway.
#[must_use]
pub fn layout_text(version: SpdkVersion) -> String {
    valid_for(version)
        .map(|definition| definition.text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn valid_for(version: SpdkVersion) -> impl Iterator<Item = Definition> {
    let is_valid = move |definition: &Definition| {
        definition.first <= version && definition.last.is_none_or(|last| version <= last)
    };
    definitions().filter(is_valid)
}

/// Returns every version in which some layout changed, oldest first.
#[must_use]
pub fn versions() -> Vec<SpdkVersion> {
    let mut versions: Vec<_> = definitions().map(|definition| definition.first).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

fn definitions() -> impl Iterator<Item = Definition> {
    FILES
        .iter()
        .flat_map(|file| file.split("\n\n"))
        .filter_map(|part| {
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
        for text in [
            "", "v", "22", "v22", "v22.9", "v22.13", "v22.00", "v+2.09", "v22.0x", "vv22.09",
            "2022.09",
        ] {
            assert!(text.parse::<SpdkVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_stated_version_is_found_however_the_blocks_are_cut() {
        let text = b"SPDK vNext, SPDK v, SPDK v2\0SPDK SPDK v24.09-pre git\0 SPDK v22.01";
        for size in 1..=text.len() {
            let mut search = VersionSearch::default();
            let found = text.chunks(size).find_map(|block| search.feed(block));
            assert_eq!(found, Some(version("v24.09")), "{size}");
        }
        let mut search = VersionSearch::default();
        for block in [&b"SPDK v24.0"[..], b"", b"x SPDK v24.13 SPDK v24"] {
            assert_eq!(search.feed(block), None);
        }
        assert!(
            search.tail.len() < STATED_LENGTH,
            "no more is kept than a version can begin in"
        );
    }

    #[test]
    fn structs_have_names() {
        let known: Vec<_> = structs(version("v24.09")).collect();
        assert_eq!(known.len(), 19);
        assert!(
            known
                .iter()
                .all(|(name, text)| text.contains(&format!("struct {name} {{"))),
            "{known:?}"
        );
        assert!(known.iter().any(|(name, _)| *name == "spdk_nvmf_qpair"));
    }

    #[test]
    fn each_version_has_each_type_once() {
        let known = versions();
        assert_eq!((known.first(), known.len()), (Some(&version("v21.07")), 17));
        for known in known {
            let text = layout_text(known);
            let mut types: Vec<_> = text
                .lines()
                .filter(|line| line.starts_with("struct ") || line.starts_with("enum "))
                .collect();
            let all = types.len();
            types.sort_unstable();
            types.dedup();
            // The initiator's struct for several paths was added in v21.10.
            let expected = if known == version("v21.07") { 19 } else { 20 };
            assert_eq!((types.len(), all), (expected, expected), "{known}");
        }
        assert_eq!(layout_text(version("v20.10")), "");
        assert_eq!(
            layout_text(version("v30.01")),
            layout_text(*versions().last().unwrap())
        );
        // No part of a file was taken for text between the definitions.
        let parts = FILES.iter().flat_map(|file| file.split("\n\n")).count();
        assert_eq!(definitions().count(), parts - FILES.len());
    }
}
