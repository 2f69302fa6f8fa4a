//! Owners: the connection, bdev or thread that a record of the newer eras belongs to, with a
//! description.

use text::printable;

use crate::Error;
use crate::problems::{Problem, Problems};
use crate::source::{Fields, ReadAt, read_range};
use crate::text::until_nul;
use crate::units::{FileOffset, Ticks};

/// Bytes before the description (`struct spdk_trace_owner`, packed): `u64 tsc`, `u8 type`.
const HEAD_SIZE: usize = 9;

/// Bytes per read.
const READ_BYTES: usize = 64 * 1024;
/// First id that SPDK assigns (`trace_flags_init`, lib/trace/trace_flags.c).
const FIRST_ID: usize = 256;
/// Number of refreshes per refresh of the whole table, for a live file.
const FULL_REFRESH_INTERVAL: u32 = 40;

/// One owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Time of registration. Ids are reused: a record before this time belongs to an earlier owner.
    pub since: Ticks,
    /// Owner type.
    pub kind: u8,
    /// Description given by the application.
    pub description: String,
}

/// The owners of a trace, by id.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    by_id: Vec<Option<Box<Owner>>>,
    /// Raw bytes of the table, as last read.
    raw: Vec<u8>,
    changes: u64,
    place: OwnerPlace,
    /// Number of entries up to the last one ever registered.
    used: usize,
    refreshes: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct OwnerPlace {
    at: FileOffset,
    count: u16,
    description_size: u16,
}

impl Owners {
    /// Reads `count` owners at `at`. Owners outside the file are left out and reported.
    pub(crate) fn read<S: ReadAt + ?Sized>(
        source: &S,
        at: FileOffset,
        count: u16,
        description_size: u16,
        problems: &mut Problems,
    ) -> Result<Self, Error> {
        let place = OwnerPlace {
            at,
            count,
            description_size,
        };
        let mut owners = Self {
            place,
            ..Self::default()
        };
        let missing = owners.refresh(source)?;
        if missing > 0 {
            problems.add_many(Problem::OwnerOutside, None, at, missing);
        }
        Ok(owners)
    }

    /// Returns the offset of the table, if there is one.
    pub(crate) fn begin(&self) -> Option<FileOffset> {
        (self.place.count > 0).then_some(self.place.at)
    }

    /// Reads the table of a live file again; returns the number of owners outside the file. Only
    /// changed entries are parsed: there is room for thousands, and few change.
    pub(crate) fn refresh<S: ReadAt + ?Sized>(&mut self, source: &S) -> Result<u64, Error> {
        self.refresh_until(source, true)
    }

    /// Reads the table again, but mostly only its used part, and a piece after it for new owners:
    /// of 2 MiB, a few KiB are in use. SPDK assigns the entries one after another, and reuses freed
    /// ones only after the last. Any other change is found by the next full read.
    pub(crate) fn refresh_used<S: ReadAt + ?Sized>(&mut self, source: &S) -> Result<u64, Error> {
        self.refreshes = self.refreshes.wrapping_add(1);
        self.refresh_until(source, self.refreshes.is_multiple_of(FULL_REFRESH_INTERVAL))
    }

    fn refresh_until<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        is_whole: bool,
    ) -> Result<u64, Error> {
        let OwnerPlace {
            at,
            count,
            description_size,
        } = self.place;
        let size = HEAD_SIZE + usize::from(description_size);
        let at_once = (READ_BYTES / size).max(1);
        let mut known = 0;
        while known < usize::from(count) {
            if !is_whole && known >= self.used + at_once {
                return Ok(0);
            }
            let offset = at.0.saturating_add((known * size) as u64);
            let want = at_once.min(usize::from(count) - known) * size;
            let bytes = read_range(source, offset, want as u64).map_err(|source| Error::Read {
                what: "the owners",
                at,
                source,
            })?;
            self.take(known, &bytes, size);
            known += bytes.len() / size;
            if bytes.len() < want {
                break;
            }
        }
        self.by_id.truncate(known);
        self.raw.truncate(known * size);
        Ok((usize::from(count) - known) as u64)
    }

    /// Updates the owners from index `first` on.
    fn take(&mut self, first: usize, bytes: &[u8], size: usize) {
        let begin = first * size;
        if self.raw.get(begin..begin + bytes.len()) == Some(bytes) {
            return;
        }
        for (i, owner) in bytes.chunks_exact(size).enumerate() {
            let begin = begin + i * size;
            match self.raw.get_mut(begin..begin + size) {
                Some(before) if before == owner => continue,
                Some(before) => before.copy_from_slice(owner),
                None => self.raw.extend_from_slice(owner),
            }
            self.changes += 1;
            let parsed = parse(owner).map(Box::new);
            if parsed.is_some() {
                self.used = self.used.max(first + i + 1);
            }
            match self.by_id.get_mut(first + i) {
                Some(known) => *known = parsed,
                None => self.by_id.push(parsed),
            }
        }
    }

    /// Applies changed bytes of the file to owners already read; returns the owners that changed.
    pub(crate) fn change(
        &mut self,
        at: FileOffset,
        bytes: &[u8],
    ) -> impl Iterator<Item = (u16, &Owner)> {
        let size = HEAD_SIZE + usize::from(self.place.description_size);
        let (from, to) = (
            at.0.max(self.place.at.0),
            at.0.saturating_add(bytes.len() as u64),
        );
        let to = to.min(self.place.at.0.saturating_add(self.raw.len() as u64));
        let mut touched = 0..0;
        if from < to {
            let (begin, end) = (
                (from - self.place.at.0) as usize,
                (to - self.place.at.0) as usize,
            );
            let news = &bytes[(from - at.0) as usize..(to - at.0) as usize];
            if &self.raw[begin..end] != news {
                self.raw[begin..end].copy_from_slice(news);
                touched = begin / size..end.div_ceil(size).min(self.by_id.len());
            }
        }
        for id in touched.clone() {
            self.changes += 1;
            self.by_id[id] = parse(&self.raw[id * size..][..size]).map(Box::new);
        }
        // Id 0 belongs to no owner.
        let ids = touched.start.max(1)..touched.end;
        ids.filter_map(|id| Some((id as u16, self.by_id[id].as_deref()?)))
    }

    /// Returns the range of the table in the file.
    pub fn place(&self) -> Option<std::ops::Range<u64>> {
        let begin = self.begin()?.0;
        Some(begin..begin.saturating_add(self.raw.len() as u64))
    }

    /// Returns the size of an owner in the file, in bytes.
    pub fn entry_size(&self) -> usize {
        HEAD_SIZE + usize::from(self.place.description_size)
    }

    /// Returns the owner that had this id at `tsc`. Id 0 has none.
    #[inline]
    pub fn at(&self, id: u16, tsc: Ticks) -> Option<&Owner> {
        let owner = self.by_id.get(usize::from(id))?.as_deref()?;
        (id != 0 && owner.since < tsc).then_some(owner)
    }

    /// Returns a counter of changes: while it stays the same, a reader need not read the owners
    /// again.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns whether these are all owners that ever existed. SPDK assigns every id once before it
    /// reuses one, and some ids are still unassigned.
    pub fn are_all(&self) -> bool {
        self.by_id.iter().skip(FIRST_ID).any(Option::is_none)
    }

    /// Iterates over every owner ever registered and not overwritten, with its id.
    pub fn all(&self) -> impl Iterator<Item = (u16, &Owner)> {
        let registered = (0..=u16::MAX).zip(&self.by_id).skip(1);
        registered.filter_map(|(id, owner)| owner.as_deref().map(|o| (id, o)))
    }
}

fn parse(bytes: &[u8]) -> Option<Owner> {
    let fields = Fields(bytes);
    let since = fields.u64(0).filter(|&tsc| tsc != 0)?;
    Some(Owner {
        since: Ticks(since),
        kind: fields.u8(8)?,
        description: printable::text(until_nul(bytes.get(HEAD_SIZE..)?)).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    use super::*;

    /// A table, and the number of bytes read from it.
    struct Table(Vec<u8>, Cell<usize>);

    impl ReadAt for Table {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let read = rest.len().min(buffer.len());
            buffer[..read].copy_from_slice(&rest[..read]);
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }

    #[test]
    fn a_live_file_is_read_as_far_as_it_is_used() {
        const SIZE: usize = HEAD_SIZE + 119;
        let mut table = Table(vec![0; 16_384 * SIZE], Cell::default());
        let register = |table: &mut Table, id: usize| table.0[id * SIZE] = 1;
        let mut problems = Problems::default();
        let mut owners = Owners::read(&table, FileOffset(0), 16_384, 119, &mut problems).unwrap();
        let ids = |owners: &mut Owners, table: &Table| {
            table.1.set(0);
            owners.refresh_used(table).unwrap();
            (
                owners
                    .all()
                    .map(|(id, _)| usize::from(id))
                    .collect::<Vec<_>>(),
                table.1.get(),
            )
        };
        (256..300).for_each(|id| register(&mut table, id));
        let (found, read) = ids(&mut owners, &table);
        assert!(found.into_iter().eq(256..300) && read < 200_000, "{read}");
        assert!(owners.are_all());
        // Registers more owners than are read ahead.
        (300..3_000).for_each(|id| register(&mut table, id));
        assert!(ids(&mut owners, &table).0.into_iter().eq(256..3_000));
        // The next full read finds an owner far away.
        register(&mut table, 16_000);
        let whole = (0..FULL_REFRESH_INTERVAL)
            .map(|_| ids(&mut owners, &table))
            .find(|(found, _)| found.contains(&16_000));
        assert!(whole.is_some_and(|(found, read)| found.len() == 2_745 && read == table.0.len()));
        (256..16_383).for_each(|id| register(&mut table, id));
        owners.refresh(&table).unwrap();
        assert!(owners.are_all());
        register(&mut table, 16_383);
        owners.refresh(&table).unwrap();
        assert!(
            !owners.are_all(),
            "the next one gets an id that was another's"
        );
    }
}
