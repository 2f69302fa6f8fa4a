//! The trace files that applications have in shared memory, and their owners.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use host::{Pid, Process, proc};
use ordering::Order as _;
use text::printable::path as printable;

use crate::application::{self, Application};

/// Folder of the trace files of applications.
pub const SHM: &str = "/dev/shm";
/// Part of the name of every trace file (`SPDK_TRACE_SHM_NAME_BASE`, include/spdk/trace.h).
pub const NAME_BASE: &str = "_trace.";

/// Lists the trace files in shared memory, oldest first.
pub fn traces() -> anyhow::Result<Vec<PathBuf>> {
    Ok(trace_files()?.into_iter().map(|(path, _)| path).collect())
}

/// Lists the trace files in shared memory with their metadata, oldest first.
pub fn trace_files() -> anyhow::Result<Vec<(PathBuf, fs::Metadata)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(SHM).with_context(|| format!("listing {SHM}"))? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().contains(NAME_BASE) {
            continue;
        }
        // A file that vanishes meanwhile is not the newest.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if let (true, Ok(modified)) = (metadata.is_file(), metadata.modified()) {
            found.push((modified, entry.path(), metadata));
        }
    }
    found
        .order_by(|(modified, path, _), (other, second, _)| (modified, path).cmp(&(other, second)));
    Ok(found
        .into_iter()
        .map(|(_, path, metadata)| (path, metadata))
        .collect())
}

/// Returns the trace file that a process writes; the newest if there are several.
pub fn trace_of(pid: u32) -> anyhow::Result<PathBuf> {
    Process::open(Pid(pid))?;
    let own = format!("{NAME_BASE}pid{pid}");
    let (paths, files): (Vec<_>, Vec<_>) = trace_files()?.into_iter().unzip();
    let written = proc::writes(Pid(pid), &files);
    // Anybody can give a file the number of any process: that counts only without access.
    let is_its = |(place, path): &(usize, PathBuf)| match &written {
        Some(written) => written[*place],
        None => path.to_string_lossy().ends_with(&own),
    };
    let newest = paths.into_iter().enumerate().rfind(is_its);
    newest.map(|(_, path)| path).with_context(|| {
        let there = describe_available().unwrap_or_default();
        if has_no_entries(&application::command_line(pid)) {
            return format!(
                "process {pid} has no trace file: it was started with --num-trace-entries 0, which \
                 switches the trace off; omit the option, or give another number; {there}"
            );
        }
        format!(
            "process {pid} has no trace file: SPDK creates one if it is started with -e or \
             --tpoint-group; {there}"
        )
    })
}

/// Returns true if a process writes a trace file.
pub fn writes_trace(pid: u32) -> bool {
    trace_of(pid).is_ok()
}

/// Returns true if SPDK was started to keep no trace entries: the last `--num-trace-entries` is 0.
/// SPDK reads it with `strtol(3)` in any base.
fn has_no_entries(words: &[String]) -> bool {
    let option = |(index, word): (usize, &String)| match word.strip_prefix("--num-trace-entries")? {
        "" => words.get(index + 1).cloned(),
        value => value.strip_prefix('=').map(str::to_owned),
    };
    let last = words.iter().enumerate().filter_map(option).next_back();
    last.is_some_and(|value| value == "0" || value == "0x0" || value == "00")
}

/// Describes the trace files in shared memory: names those of living processes, and counts the
/// others.
pub fn describe_available() -> anyhow::Result<String> {
    let mut paths = traces()?;
    paths.reverse();
    let gone = Application::find_each(paths.iter().map(PathBuf::as_path))
        .into_iter()
        .map(|writers| writers.is_gone());
    let (ended, living): (Vec<_>, Vec<_>) = paths.iter().zip(gone).partition(|(_, gone)| *gone);
    let [living, ended] = [living, ended].map(|some| {
        some.into_iter()
            .map(|(path, _)| printable(path))
            .collect::<Vec<_>>()
    });
    Ok(listing(&living, &ended))
}

/// Limit on the names in one message: a user with more applications knows which one to name.
const MAX_LISTED: usize = 8;

/// Lists files by name, newest first: those of living processes, then those of processes that have
/// ended.
fn listing(living: &[String], ended: &[String]) -> String {
    let mut parts: Vec<String> = living.iter().take(MAX_LISTED).cloned().collect();
    if living.len() > MAX_LISTED {
        parts.push(format!("{} more", living.len() - MAX_LISTED));
    }
    match ended {
        [] => {}
        [one] => parts.push(format!("{one} of a process that has ended")),
        [newest, ..] => parts.push(format!(
            "{} of processes that have ended, the newest {newest}",
            ended.len()
        )),
    }
    if parts.is_empty() {
        format!("{SHM} has no trace file")
    } else {
        format!("there is {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_of_traces_is_short() {
        let names = |count: usize| {
            (1..=count)
                .map(|n| format!("/dev/shm/a_trace.pid{n}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(listing(&[], &[]), "/dev/shm has no trace file");
        assert_eq!(
            listing(&[], &names(1)),
            "there is /dev/shm/a_trace.pid1 of a process that has ended"
        );
        let text = listing(&names(2), &names(33));
        let ended = "33 of processes that have ended, the newest /dev/shm/a_trace.pid1";
        assert_eq!(
            text,
            format!("there is /dev/shm/a_trace.pid1, /dev/shm/a_trace.pid2, {ended}")
        );
        assert!(listing(&names(10), &[]).ends_with("/dev/shm/a_trace.pid8, 2 more"));
    }
}
