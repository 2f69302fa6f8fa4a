//! Records whose every field follows from their tsc, and a check that a reader returned no others.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use spdk_trace::{ArgValue, Object, ReadAt};
use testkit::{Era, Record, Tpoint, TraceBuilder};

const SHORT: u16 = 64;
const LONG: u16 = 65;

/// Creates a trace of this era without records. A record takes one slot or three.
pub(crate) fn empty(era: Era, slots: usize, lcores: u32) -> TraceBuilder {
    let mut t = TraceBuilder::new(era).slots(slots);
    if era.spec().owners.is_some() {
        t = t.owner_count(0);
    }
    t.tpoint(Tpoint::new(SHORT, "SHORT").int("n", 8))
        .tpoint(Tpoint::new(LONG, "LONG").int("n", 8).str("text", 40));
    for lcore in 0..lcores {
        t.lcore(lcore);
    }
    t
}

/// Returns the record of this time.
pub(crate) fn record(tsc: u64) -> Record {
    let record = Record::new(if is_long(tsc) { LONG } else { SHORT }, tsc)
        .size(size(tsc))
        .object(object(tsc))
        .int(!tsc);
    if is_long(tsc) {
        record.str(&text(tsc))
    } else {
        record
    }
}

fn is_long(tsc: u64) -> bool {
    tsc.is_multiple_of(5) || tsc.is_multiple_of(7)
}

fn size(tsc: u64) -> u32 {
    (tsc as u32).wrapping_mul(0x9e37_79b1)
}

fn object(tsc: u64) -> u64 {
    tsc.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

fn text(tsc: u64) -> String {
    format!("the record of tsc {tsc:020}")
}

/// Checks that the record matches its tsc. Returns its lcore and tsc, and whether its arguments are
/// complete; those in overwritten slots may be missing.
pub(crate) fn check_record(record: &spdk_trace::Record<'_>) -> (u32, u64, bool) {
    let tsc = record.tsc.0;
    assert_eq!(
        record.tpoint.name,
        if is_long(tsc) { "LONG" } else { "SHORT" },
        "tsc {tsc}"
    );
    assert_eq!(
        (record.size, record.object),
        (size(tsc), Object::Untyped(object(tsc))),
        "tsc {tsc}"
    );
    let args: Vec<_> = record.args.iter().map(|(_, value)| value).collect();
    let text = text(tsc);
    let whole = [ArgValue::Int(!tsc), ArgValue::Str(text.as_bytes())];
    let recorded = 1 + usize::from(is_long(tsc));
    assert_eq!(args, whole[..args.len().clamp(1, recorded)], "tsc {tsc}");
    (record.lcore.0.into(), tsc, args.len() == recorded)
}

/// Path of a trace file, removed on drop.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let shm = PathBuf::from("/dev/shm");
        let folder = if shm.is_dir() {
            shm
        } else {
            std::env::temp_dir()
        };
        Self(folder.join(format!("spdk-trace-test-{}-{name}", std::process::id())))
    }

    pub(crate) fn open(&self) -> FileSource {
        match File::open(&self.0) {
            Ok(file) => FileSource(file),
            Err(error) => panic!("{}: {error}", self.0.display()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // If removal fails, the file does not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file as source for the reader.
pub(crate) struct FileSource(File);

impl ReadAt for FileSource {
    fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.0, buf, offset)
    }
}
