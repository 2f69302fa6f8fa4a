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
use text::number::is_digits;
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
/// Reason for the end of a capture around the time in which a thread was away.
pub const AWAY: &str = "a thread was away";
/// Prefix of the name of a capture around a slow request.
const START: &str = "slow-";
/// Suffix of the name of a capture around a slow request.
const END: &str = ".capture";

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

/// Returns the name of a process's capture around a slow request, at a time in nanoseconds since
/// 1970. Names sort by time.
pub fn slow_name(real_nanos: u64, pid: u32) -> String {
    let at = text::utc::moment(real_nanos.into());
    format!("{START}{}-{pid}{END}", at.strftime("%Y%m%d-%H%M%S.%3f"))
}

/// Returns true for such a name: `slow-20261123-031244.123-4711.capture`.
pub fn is_slow_name(name: &str) -> bool {
    let Some(rest) = name
        .strip_prefix(START)
        .and_then(|name| name.strip_suffix(END))
    else {
        return false;
    };
    let parts: Vec<&str> = rest.split(['-', '.']).collect();
    parts.len() == 4
        && parts.iter().all(|part| is_digits(part))
        && (parts[0].len(), parts[1].len(), parts[2].len()) == (8, 6, 3)
        && rest.as_bytes().get(8) == Some(&b'-')
        && rest.as_bytes().get(15) == Some(&b'.')
        && rest.as_bytes().get(19) == Some(&b'-')
}

/// Returns when the request of such a name ended: `2026-11-23 03:12:44.123`, in UTC.
pub fn slow_time(name: &str) -> Option<String> {
    let digits = is_slow_name(name).then(|| &name[START.len()..])?;
    let (day, time) = (&digits[..8], &digits[9..19]);
    Some(format!(
        "{}-{}-{} {}:{}:{}",
        &day[..4],
        &day[4..6],
        &day[6..],
        &time[..2],
        &time[2..4],
        &time[4..]
    ))
}

/// Returns the captures around slow requests in a folder that is no capture itself, the oldest
/// first.
pub fn slow_in(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten();
    if is_capture(folder) {
        return Vec::new();
    }
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut captures: Vec<PathBuf> = names
        .filter(|name| is_slow_name(name))
        .map(|name| folder.join(name))
        .filter(|path| is_capture(path))
        .collect();
    captures.sort_unstable();
    captures
}

/// Returns the advice to capture a process first, for commands that only read captures.
pub fn captured_first(process: &str) -> String {
    let process = shell::word(process);
    format!(
        "capture the process first, then read the folder that this creates: dptrace capture -p \
         {process} --for 3s (or dptrace capture -p {process} --slow 500us, which waits for slow \
         requests)"
    )
}

/// Limit on the captures that an error names.
const MAX_NAMED: usize = 5;

/// Returns what a user can type after a command that reads captures: the captures in a folder, and
/// the folders of captures, the newest first. `None` if there are none.
pub fn choices(command: &str, folder: &Path) -> Option<String> {
    let entries = folder.read_dir().ok()?.filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| is_capture(path) || !slow_in(path).is_empty())
        .filter_map(|path| {
            let changed = path.metadata().ok()?.modified().ok()?;
            Some((changed, shell::word(path.file_name()?).into_owned()))
        })
        .collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    let mut names = found.iter().map(|(_, name)| &**name);
    let newest = names.next()?;
    let others: Vec<&str> = names.by_ref().take(MAX_NAMED - 1).collect();
    let here = if others.is_empty() {
        String::new()
    } else {
        format!(" (older: {})", others.join(", "))
    };
    Some(match names.count() {
        0 => format!("the newest here: {command} {newest}{here}"),
        more => format!("the newest here: {command} {newest}{here} and {more} more"),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name at 2026-11-23, 03:12:44 UTC, plus `ms` milliseconds.
    fn at(ms: u64) -> String {
        slow_name((1_795_403_564_000 + ms) * 1_000_000, 4711)
    }

    #[test]
    fn names_are_known_again() {
        assert_eq!(at(123), "slow-20261123-031244.123-4711.capture");
        assert!(is_slow_name(&at(7)) && at(7) < at(11) && at(11) < at(1_000));
        assert_eq!(
            slow_time(&at(123)).as_deref(),
            Some("2026-11-23 03:12:44.123")
        );
        for other in [
            "slow.capture",
            "slow-1-2.3-4.capture",
            "slow-20261123-031244.123-.capture",
            "x.capture",
            "slow-20261123.031244-123-4711.capture",
        ] {
            assert!(
                !is_slow_name(other) && slow_time(other).is_none(),
                "{other}"
            );
        }
    }

    #[test]
    fn captures_of_a_folder_are_named_the_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, seconds: u64| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(META), "{}").unwrap();
            let top = folder.path().join(Path::new(name).iter().next().unwrap());
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::open(top)
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        let choices = || choices("dptrace report", folder.path());
        std::fs::create_dir(folder.path().join("other")).unwrap();
        assert_eq!(choices(), None);
        make("a b.capture", 1_000);
        let one = "the newest here: dptrace report 'a b.capture'";
        assert_eq!(choices().as_deref(), Some(one));
        make(&format!("w.watch/{}", at(1)), 2_000);
        make(&format!("w.watch/{}", at(0)), 2_000);
        let slow = [at(0), at(1)].map(|name| folder.path().join("w.watch").join(name));
        assert_eq!(slow_in(&folder.path().join("w.watch")), slow);
        let two = "the newest here: dptrace report w.watch (older: 'a b.capture')";
        assert_eq!(choices().as_deref(), Some(two));
        (0..5).for_each(|nth| make(&format!("{nth}"), nth));
        let many =
            "the newest here: dptrace report w.watch (older: 'a b.capture', 4, 3, 2) and 2 more";
        assert_eq!(choices().as_deref(), Some(many));
    }
}
