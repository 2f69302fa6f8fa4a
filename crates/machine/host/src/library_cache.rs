//! Shared libraries by name, from the dynamic linker's cache.

use std::path::{Path, PathBuf};

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

fn find(cache: &[u8], name: &str) -> Vec<PathBuf> {
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
    let mut found: Vec<PathBuf> = Vec::new();
    for index in 0..count.min(most) {
        let at = HEADER + index * ENTRY;
        let names = word(at + 4)
            .zip(word(at + 8))
            .and_then(|(key, value)| text(key).zip(text(value)));
        if let Some((_, path)) = names.filter(|(soname, _)| is_called(soname, name)) {
            let path = PathBuf::from(path);
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns true if the name means a library of this soname.
pub fn is_called(soname: &str, name: &str) -> bool {
    let stem = soname.split_once(".so").map_or(soname, |(stem, _)| stem);
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
