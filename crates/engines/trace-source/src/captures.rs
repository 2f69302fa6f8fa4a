//! Opens captures, for all commands that read a trace.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use capture::{Reader, Source};
use observer::Observer;
use scene::{Clock, parts_per_million};
use screen::counted;
use spdk_trace::Trace;
use text::printable::path as printable;
use text::shell;

use crate::input::LoadedTrace;
use crate::{FileSource, MeasuredRate};

/// Name of the file that describes a capture.
pub const META: &str = "meta.json";
/// Name of the trace's stream.
pub const RINGS: &str = "trace.rings";
/// Name of the kernel's stream.
pub const KERNEL: &str = "kernel.events";
/// Name of the recording of objects.
pub const OBJECTS: &str = "objects.txt";

/// Opens a capture. Cut or damaged parts are reported, and read as far as they go.
pub fn reader(dir: &Path, observer: &Observer) -> anyhow::Result<Reader> {
    let reader = reader_quietly(dir)?;
    report(&reader, dir, observer);
    Ok(reader)
}

/// Reports the missing parts of a capture.
pub fn report(reader: &Reader, dir: &Path, observer: &Observer) {
    if reader.meta().end.is_none() {
        observer.note(&format!(
            "{} was cut short, or is still being written: it is read as far as it goes",
            printable(dir)
        ));
    }
    for (what, count) in reader.left_out() {
        let (counted, are) = (counted(count, what), if count == 1 { "is" } else { "are" });
        observer.note(&format!(
            "{counted} {are} left out: {} has more than dptrace keeps in memory",
            printable(dir)
        ));
    }
}

/// Returns the newest capture in a folder that is none itself, and their number; `None` if there is
/// none. The names of captures have their times.
pub fn newest_in(folder: &Path) -> Option<(PathBuf, usize)> {
    if is_capture(folder) {
        return None;
    }
    let entries = folder.read_dir().ok()?.filter_map(Result::ok);
    let captures = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "capture") && is_capture(path));
    let mut captures: Vec<PathBuf> = captures.collect();
    captures.sort_unstable();
    let count = captures.len();
    Some((captures.pop()?, count))
}

/// Opens a capture without any report.
pub fn reader_quietly(dir: &Path) -> anyhow::Result<Reader> {
    let reading = |file: &str| format!("reading {}", printable(dir.join(file)));
    let meta = dir.join(META);
    let meta = match FileSource::open_member(&meta) {
        Ok(source) => source,
        Err(error) if error.kind() == ErrorKind::NotFound && dir.join("metadata").is_file() => {
            bail!(
                "{} is a DPDK trace (Common Trace Format), which only dptrace trace reads",
                printable(dir)
            )
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!(
                "{} is a folder, but not a capture: it has no {META} (dptrace capture makes \
                 captures)",
                printable(dir)
            )
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let hint = ownership_hint(dir);
            return Err(error).with_context(|| format!("{}{hint}", reading(META)));
        }
        Err(error) => return Err(error).with_context(|| reading(META)),
    };
    let part = |file: &str| match FileSource::open_member(&dir.join(file)) {
        Ok(source) => Ok(Some(Arc::new(source) as Source)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| reading(file)),
    };
    let reader = Reader::open(&meta, part(RINGS)?, part(KERNEL)?);
    reader.with_context(|| format!("reading the capture {}", printable(dir)))
}

/// Returns how to get a capture that was made as root; empty if it belongs to another user.
fn ownership_hint(dir: &Path) -> String {
    let is_roots = dir.metadata().is_ok_and(|folder| folder.uid() == 0);
    if is_roots && !host::capabilities::is_root() {
        format!(
            ", which belongs to root (sudo chown -R \"$USER\" {})",
            shell::word(dir)
        )
    } else {
        String::new()
    }
}

/// Loads the trace of a capture, with the rate of its ticks.
pub fn load(dir: &Path, observer: &Observer) -> anyhow::Result<LoadedTrace> {
    let reader = reader(dir, observer)?;
    let reading = || format!("reading the capture {}", printable(dir));
    let trace = reader.trace().with_context(reading)?;
    let measured = reader.clock().ok().map(|clock| measured(&clock, &trace));
    Ok(LoadedTrace {
        trace: Trace::Captured(Box::new(trace)),
        name: printable(dir),
        measured,
        capture: Some(Box::new(reader.meta().clone())),
    })
}

fn measured(clock: &Clock, trace: &spdk_trace::CapturedTrace) -> MeasuredRate {
    let rate = clock.rate();
    MeasuredRate {
        rate,
        stated_off: parts_per_million(trace.tick_rate(), rate),
        uncertainty: 0.0,
    }
}

/// Returns the folder of the capture to which a file belongs: users may name the largest of its
/// files.
pub fn folder_of(path: &Path) -> Option<PathBuf> {
    let parts = [META, RINGS, KERNEL, OBJECTS];
    let is_part = path
        .file_name()
        .is_some_and(|name| parts.iter().any(|part| name == *part))
        && path.is_file();
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    (is_part && is_capture(folder)).then(|| folder.to_owned())
}

/// Returns true if a path is the folder of a capture.
pub fn is_capture(path: &Path) -> bool {
    path.join(META).is_file()
}

/// Returns the files of a capture, with a description of each; an empty list if the path is no
/// folder.
pub fn files(path: &Path) -> Vec<(&'static str, PathBuf)> {
    let all = [
        ("the capture's description", META),
        ("the captured trace", RINGS),
    ];
    let all = all.into_iter().chain([
        ("the captured events", KERNEL),
        ("the capture's recording", OBJECTS),
    ]);
    if path.is_dir() {
        all.map(|(what, name)| (what, path.join(name))).collect()
    } else {
        Vec::new()
    }
}

/// Returns the recording of objects in a capture; `None` if it is missing or empty.
pub fn objects(path: &Path) -> Option<PathBuf> {
    let objects = path.join(OBJECTS);
    let has_some = path.is_dir()
        && objects
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    has_some.then_some(objects)
}
