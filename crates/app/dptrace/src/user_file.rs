//! How much is read of files that the user names.

use std::io::{self, Read as _};
use std::path::Path;

pub(crate) use host::user_file::{check_holes, open, open_member, read, read_member, read_stream, read_to};

/// The most that is read of a script, in bytes: more than anybody writes, and than bpftrace takes.
pub(crate) const SCRIPT: u64 = 16 << 20;
/// The most that is read of a file of object specs, in bytes. Those that are built in have some KB, and reading one takes 75
/// times its size.
pub(crate) const SPECS: u64 = 1 << 20;
/// The most that is read of a recording, in bytes: some forty million hits.
pub(crate) const RECORDING: u64 = 4 << 30;
/// The most that is read of a raw trace that comes through a pipe, in bytes. One in a file has no limit, and a JSON document is
/// read as it comes.
pub(crate) const PIPED_TRACE: u64 = 4 << 30;
/// Bytes that are enough to see what a file is.
pub(crate) const START: u64 = 512;

/// Returns whether this user's files and processes come before those of others: root's do, and those of whoever runs this program.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::getuid().as_raw()
}

/// The first bytes of a regular file.
pub(crate) fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_member(path)?.take(START).read_to_end(&mut bytes)?;
    Ok(bytes)
}
