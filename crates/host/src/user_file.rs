//! Files that the user names, to be read as a whole, up to a limit.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Opens a file, a pipe, a socket or a terminal. A directory has no bytes, and a device has no end.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    // Of devices, /dev/null has an end at once.
    let is_endless = || kind.is_block_device() || (&file).read(&mut [0]).is_ok_and(|read| read > 0);
    if (kind.is_block_device() || kind.is_char_device()) && !file.is_terminal() && is_endless() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a device, neither a file nor a pipe"));
    }
    Ok(file)
}

/// All of a file, or an error if it has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_long(most));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize + 1).map_err(|_| ErrorKind::OutOfMemory)?;
    read_to(&mut bytes, file, most)?;
    Ok(bytes)
}

/// All that comes from a stream, or an error if that is more than `most` bytes.
pub fn read_stream(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_to(&mut bytes, stream, most)?;
    Ok(bytes)
}

/// The same, behind what was read of it before.
pub fn read_to(bytes: &mut Vec<u8>, stream: impl Read, most: u64) -> io::Result<()> {
    stream.take(most + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(()) }
}

fn too_long(most: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes, the most that is read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_what_is_long_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(Path::new("/dev/null"), 4).unwrap(), b"");
        // It says that it has no bytes.
        assert_eq!(read(Path::new("/proc/self/maps"), 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(Path::new("/dev/zero"), 4).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(read(dir.path(), 4).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read_stream(io::repeat(0), 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
