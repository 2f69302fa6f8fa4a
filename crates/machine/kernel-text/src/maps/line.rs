//! One line of a memory map.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::{Backing, Device, Mapping, Permissions};
use elf::{FileOffset, ProcAddr};

/// Mark that the kernel puts behind the path of a file that is gone (`d_path` in `fs/d_path.c`).
const DELETED: &[u8] = b" (deleted)";

/// Parses a line; the error names the expected part.
pub(super) fn mapping(line: &[u8]) -> Result<Mapping, &'static str> {
    let mut rest = line;
    let (start, end) = pair(field(&mut rest), b'-').ok_or("an address range in hex")?;
    if start > end {
        return Err("an address range that does not end before it starts");
    }
    let permissions = permissions(field(&mut rest)).ok_or("permissions such as r-xp")?;
    let offset = number(field(&mut rest), 16).ok_or("a file offset in hex")?;
    let device = pair(field(&mut rest), b':')
        .and_then(device)
        .ok_or("a device such as fe:01")?;
    let inode = number(field(&mut rest), 10).ok_or("an inode number")?;
    Ok(Mapping {
        start: ProcAddr(start),
        end: ProcAddr(end),
        permissions,
        offset: FileOffset(offset),
        device,
        inode,
        backing: backing(rest.trim_ascii_start()),
    })
}

/// Takes the text up to the next blank.
fn field<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let text = rest.trim_ascii_start();
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    let (field, after) = text.split_at(end);
    *rest = after;
    field
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let plain = digits.first().is_some_and(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| plain)?;
    u64::from_str_radix(digits, radix).ok()
}

/// Parses two numbers in hex with a separator between them.
fn pair(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = memchr::memchr(separator, text)?;
    Some((number(&text[..at], 16)?, number(&text[at + 1..], 16)?))
}

fn device((major, minor): (u64, u64)) -> Option<Device> {
    Some(Device {
        major: u32::try_from(major).ok()?,
        minor: u32::try_from(minor).ok()?,
    })
}

fn permissions(text: &[u8]) -> Option<Permissions> {
    let [read, write, execute, shared] = text else {
        return None;
    };
    let flag = |found: &u8, set: u8, clear: u8| match *found {
        found if found == set => Some(true),
        found if found == clear => Some(false),
        _ => None,
    };
    Some(Permissions {
        read: flag(read, b'r', b'-')?,
        write: flag(write, b'w', b'-')?,
        execute: flag(execute, b'x', b'-')?,
        shared: flag(shared, b's', b'p')?,
    })
}

fn backing(name: &[u8]) -> Backing {
    if name.is_empty() {
        return Backing::Anonymous;
    }
    if !name.starts_with(b"/") {
        return Backing::Special(String::from_utf8_lossy(name).into_owned());
    }
    let (path, deleted) = match name.strip_suffix(DELETED) {
        Some(path) => (path, true),
        None => (name, false),
    };
    Backing::File {
        path: OsString::from_vec(unescape(path)).into(),
        deleted,
    }
}

/// Unescapes a path: the kernel writes a newline as `\012` and leaves all else as it is
/// (`seq_file_path` with "\n").
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    plain
}
