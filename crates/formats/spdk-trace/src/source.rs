//! Source of the bytes: the reader requests ranges and never opens a file itself.

use std::io;

/// Bytes that can be read at any position, possibly while another process writes them.
///
/// A live trace is read range by range, and the ring's cursor is read in between, so a plain slice
/// is not enough.
pub trait ReadAt {
    /// Returns the length in bytes.
    fn len(&self) -> u64;

    /// Fills `buf` from `offset` as far as there are bytes, and returns their number.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns whether there is nothing to read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ReadAt for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..))
            .unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> u64 {
        ReadAt::len(self.as_slice())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buf, offset)
    }
}

/// Reads the bytes `offset .. offset + want`, or fewer if the source ends.
///
/// The buffer never exceeds the source, despite the header's claims.
pub(crate) fn read_range<S: ReadAt + ?Sized>(
    source: &S,
    offset: u64,
    want: u64,
) -> io::Result<Vec<u8>> {
    let have = source.len().saturating_sub(offset).min(want);
    let size = usize::try_from(have).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(size)
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.resize(size, 0);
    let got = fill(source, &mut bytes, offset)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Reads until `buf` is full or the source ends.
pub(crate) fn fill<S: ReadAt + ?Sized>(
    source: &S,
    buf: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        // The operating system rejects an impossible offset; here it counts as past the end.
        let at = offset.saturating_add(done as u64);
        match if at < source.len() {
            source.read_at(&mut buf[done..], at)?
        } else {
            0
        } {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// Reads a little-endian `u64` at `offset`; `None` past the end.
pub(crate) fn read_u64<S: ReadAt + ?Sized>(source: &S, offset: u64) -> io::Result<Option<u64>> {
    let mut buf = [0; 8];
    Ok((fill(source, &mut buf, offset)? == 8).then(|| u64::from_le_bytes(buf)))
}

/// Little-endian fields of a header in memory; `None` past its end.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(self, offset: usize, len: usize) -> Option<&'a [u8]> {
        self.0.get(offset..offset.checked_add(len)?)
    }

    fn array<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        self.bytes(offset, N)?.try_into().ok()
    }

    pub(crate) fn u8(self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    pub(crate) fn u16(self, offset: usize) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(crate) fn u64(self, offset: usize) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
}
