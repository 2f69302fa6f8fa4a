//! Shared libraries by name, from the dynamic linker's cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use text::patterns;

use crate::foreign;

/// The cache that ldconfig(8) writes.
const CACHE: &str = "/etc/ld.so.cache";
/// Limit on the size of the cache, in bytes: real ones have some hundred kilobytes.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Magic number of the cache's form since glibc 2.2, `CACHEMAGIC_VERSION_NEW` in
/// `sysdeps/generic/dl-cache.h`. Since glibc 2.32 this form is the whole file; before, it may
/// follow an older form.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Size of `struct cache_file_new` in bytes: the magic, two counts, and 20 bytes more.
const HEADER: usize = 48;
/// Size of `struct file_entry_new` in bytes: flags, key and value as offsets from the header, OS
/// version, hardware capabilities.
const ENTRY: usize = 24;

/// Limit on the number of near names.
const MAX_NEAR_NAMES: usize = 3;

/// Returns the libraries of this name in the dynamic linker's cache: `libc`, `c`, `libc.so`,
/// `libc.so.6` are all one.
fn library(name: &str) -> Vec<PathBuf> {
    foreign::named(Path::new(CACHE))
        .and_then(|file| file.text(MAX_CACHE_BYTES))
        .map(|cache| find(&cache, name))
        .unwrap_or_default()
}

/// Returns the library of this name that programs of this machine load. The cache has one for each
/// machine that it knows: the first that exists is this one's.
pub fn installed(name: &str) -> Option<PathBuf> {
    library(name).into_iter().find(|path| path.exists())
}

/// Returns the names of libraries that a name may mean, without their endings: of those with the
/// sonames of a process, and of those in the cache. Packages have similar names (`zlib`, `openssl`).
pub fn nearest(wanted: &str, mapped: &[String]) -> Vec<String> {
    let cache = foreign::named(Path::new(CACHE)).and_then(|file| file.text(MAX_CACHE_BYTES));
    let cache = cache.unwrap_or_default();
    let installed = entries(&cache).into_iter().map(|(soname, _)| soname);
    near_stems(
        wanted,
        mapped.iter().map(String::as_str).chain(installed).map(stem),
    )
}

fn near_stems<'a>(wanted: &str, stems: impl Iterator<Item = &'a str>) -> Vec<String> {
    let is_of_version = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let plain = wanted.to_ascii_lowercase();
    let plain = stem(&plain).trim_end_matches(is_of_version);
    let core = plain.strip_prefix("lib").or(plain.strip_suffix("lib"));
    let core = core.unwrap_or(plain);
    if core.is_empty() {
        return Vec::new();
    }
    let library = format!("lib{core}");
    let stems: BTreeSet<&str> = stems.filter(|stem| stem.starts_with("lib")).collect();
    if stems.contains(library.as_str()) {
        return vec![library];
    }
    let mut near = patterns::nearest(&library, stems.iter().copied(), MAX_NEAR_NAMES);
    near.extend(patterns::nearest(
        plain,
        stems.iter().copied(),
        MAX_NEAR_NAMES,
    ));
    near.extend(
        stems
            .iter()
            .filter(|stem| stem.len() >= 6 && plain.contains(&stem[3..])),
    );
    let mut seen = BTreeSet::new();
    near.retain(|name| seen.insert(*name));
    near.truncate(MAX_NEAR_NAMES);
    near.into_iter().map(str::to_owned).collect()
}

fn find(cache: &[u8], name: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for (soname, path) in entries(cache) {
        let path = PathBuf::from(path);
        if is_called(soname, name) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Returns the soname and the path of each library in the cache.
fn entries(cache: &[u8]) -> Vec<(&str, &str)> {
    let Some(start) = cache
        .windows(MAGIC.len())
        .position(|window| window == MAGIC)
    else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let word = |at: usize| {
        cache
            .get(at..at + 4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let text = |at: u32| {
        let bytes = cache.get(at as usize..)?;
        std::str::from_utf8(&bytes[..bytes.iter().position(|&byte| byte == 0)?]).ok()
    };
    let count = word(MAGIC.len()).unwrap_or(0) as usize;
    let most = cache.len().saturating_sub(HEADER) / ENTRY;
    let entry = |index| {
        let at = HEADER + index * ENTRY;
        let (key, value) = word(at + 4).zip(word(at + 8))?;
        text(key).zip(text(value))
    };
    (0..count.min(most)).filter_map(entry).collect()
}

/// Returns a library's name without its ending: `libc` of `libc.so.6`.
fn stem(soname: &str) -> &str {
    soname.split_once(".so").map_or(soname, |(stem, _)| stem)
}

/// Returns true if the name means a library of this soname.
pub fn is_called(soname: &str, name: &str) -> bool {
    let stem = stem(soname);
    soname == name
        || stem == name
        || stem.strip_prefix("lib") == Some(name)
        || soname
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.') && name.contains(".so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_library() {
        let all = ["libc", "c", "libc.so", "libc.so.6"];
        assert!(all.iter().all(|name| is_called("libc.so.6", name)));
        assert!(
            !["libm", "lib", "libc.so.7", "cc"]
                .iter()
                .any(|name| is_called("libc.so.6", name))
        );
    }

    #[test]
    fn libraries_near_a_name() {
        let near = |wanted| {
            let stems = [
                "libc",
                "libcrypto",
                "libm",
                "libpython3.11",
                "libssl",
                "libz",
                "ld-linux",
            ];
            near_stems(wanted, stems.into_iter()).join(" ")
        };
        for (wanted, meant) in [
            ("zlib", "libz"),
            ("Zlib1", "libz"),
            ("z-1.3", "libz"),
            ("libz2", "libz"),
            ("libssll", "libssl"),
            ("openssl", "libssl"),
            ("glibc", "libc"),
            ("python", "libpython3.11"),
            ("nothing_like_it", ""),
            ("", ""),
        ] {
            assert_eq!(near(wanted), meant, "{wanted}");
        }
    }

    #[test]
    fn the_cache_of_this_machine_has_the_c_library() {
        if std::path::Path::new(CACHE).exists() && !library("libc").is_empty() {
            assert!(library("libc.so.6")[0].exists());
        }
    }

    #[test]
    fn a_broken_cache_has_nothing() {
        for length in [0, 10, 30, 60, 100] {
            let mut cache = [MAGIC, &[0xff; 100]].concat();
            cache.truncate(length);
            assert_eq!(find(&cache, "libc"), Vec::<PathBuf>::new());
        }
    }
}
