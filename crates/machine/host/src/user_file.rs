//! Files that the user names, to be read as a whole, up to a limit; and members of folders that he names, which are regular files.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::foreign;

/// Limit on the bytes of holes in a file, beyond the number of bytes that it has on the disk.
const MAX_HOLES: u64 = 16 << 20;

/// Limit on the size of a script, in bytes: more than any real script has, and than bpftrace takes.
pub const SCRIPT: u64 = 16 << 20;
/// Limit on the size of a file of object specs, in bytes. Built-in ones have some KB, and reading
/// one takes 75 times its size.
pub const SPECS: u64 = 1 << 20;
/// Limit on the size of a recording, in bytes: some forty million hits.
pub const RECORDING: u64 = 4 << 30;
/// Limit on the size of a raw trace that comes through a pipe, in bytes. One in a file has no
/// limit, and a JSON document is read as it comes.
pub const PIPED_TRACE: u64 = 4 << 30;
/// Bytes that are enough to recognize a file.
pub const HEAD_BYTES: u64 = 512;

/// Returns true if this user's files and processes come before those of others: root's, and those
/// of the user who runs this program.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::getuid().as_raw()
}

/// Returns the first bytes of a regular file.
pub fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_member(path)?
        .take(HEAD_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file, a pipe, a socket or a terminal. A directory has no bytes, and a device has no end:
/// both are errors.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    // /dev/null is a device that ends at once.
    let is_endless = || kind.is_block_device() || (&file).read(&mut [0]).is_ok_and(|read| read > 0);
    if (kind.is_block_device() || kind.is_char_device()) && !file.is_terminal() && is_endless() {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is a device, neither a file nor a pipe",
        ));
    }
    Ok(file)
}

/// Opens a member of a folder, such as a capture, which others may have made: a regular file; links
/// are followed. Opening never blocks, as it would on a pipe.
pub fn open_member(path: &Path) -> io::Result<File> {
    foreign::named(path).map(foreign::OpenedFile::into_file).map_err(|error| {
        if foreign::is_no_file(&error) {
            let text = "it is not a regular file (a pipe, a device, a socket or a folder): only \
                        files are read here";
            return io::Error::new(ErrorKind::InvalidInput, text);
        }
        error
    })
}

/// Reads all of a file; returns an error if it has more than `most` bytes, or is mostly holes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, most)
}

/// Reads all of a member of a folder, within the same limits.
pub fn read_member(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open_member(path)?, most)
}

fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_long(most));
    }
    check_holes(&file)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length as usize + 1)
        .map_err(|_| ErrorKind::OutOfMemory)?;
    read_to(&mut bytes, file, most)?;
    Ok(bytes)
}

/// Returns an error if most of a regular file is holes: a file of some bytes can claim any length,
/// and holes read as zeros.
pub fn check_holes(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let length = about.len();
    if !about.is_file() || length <= MAX_HOLES || about.blocks().saturating_mul(512) >= length {
        return Ok(());
    }
    let (mut data, mut at) = (0, 0);
    while at < length {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // There is no data behind this (lseek(2)).
            Err(Errno::NXIO) => break,
            // The file system has no holes.
            Err(_) => return Ok(()),
        };
        at = seek(file, SeekFrom::Hole(begin))?.max(begin + 1);
        data += at - begin;
    }
    seek(file, SeekFrom::Start(0))?;
    if length.saturating_sub(data) <= data.saturating_add(MAX_HOLES) {
        return Ok(());
    }
    let message = format!(
        "it claims {length} bytes, and has {data} on the disk: the rest are holes, which are not \
         read"
    );
    Err(io::Error::new(ErrorKind::InvalidData, message))
}

/// Reads a stream to its end; returns an error if that is more than `most` bytes.
pub fn read_stream(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_to(&mut bytes, stream, most)?;
    Ok(bytes)
}

/// Does the same, but appends to the bytes that were read before, which count, too.
pub fn read_to(bytes: &mut Vec<u8>, stream: impl Read, most: u64) -> io::Result<()> {
    stream.take(most + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > most {
        Err(too_long(most))
    } else {
        Ok(())
    }
}

fn too_long(most: u64) -> io::Error {
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!("it has more than {most} bytes, the most that is read"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_no_content() {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"some bytes\n").unwrap();
        // Few holes are read as zeros.
        file.set_len(1 << 20).unwrap();
        assert_eq!(read(&path, 1 << 30).unwrap().len(), 1 << 20);
        file.set_len(1 << 29).unwrap();
        let error = read(&path, 1 << 30).unwrap_err().to_string();
        assert!(error.contains("it claims 536870912 bytes"), "{error}");
        // A file that is nothing but a hole.
        File::create(&path).unwrap().set_len(1 << 29).unwrap();
        assert!(read(&path, 1 << 30).is_err());
    }

    #[test]
    fn endless_files_are_refused_and_long_ones_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(Path::new("/dev/null"), 4).unwrap(), b"");
        // The kernel states a length of 0 for it.
        assert_eq!(
            read(Path::new("/proc/self/maps"), 4).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
        assert_eq!(
            read(Path::new("/dev/zero"), 4).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(
            read(dir.path(), 4).unwrap_err().kind(),
            ErrorKind::IsADirectory
        );
        assert_eq!(
            read_member(Path::new("/dev/zero"), 4).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(
            read_member(dir.path(), 4).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(read_member(&path, 5).unwrap(), b"12345");
        assert_eq!(
            read_stream(io::repeat(0), 4).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
    }
}
