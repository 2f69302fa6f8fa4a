//! The recording beside a trace file: used if its name and its first line show that it belongs to
//! the trace.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use host::user_file;
use objects::Header;
use spdk_trace::{Ticks, Trace};

use crate::file::is_of_application;
use crate::trace_files::NAME_BASE;

/// Ending of a recording's name.
const RECORDING: &str = "recording";
/// Ending of a trace file's name, which a recording's may replace.
const TRACE: &str = "trace";

/// Finds the recording of `dptrace record` beside a trace file: `x.recording` beside `x.trace`, or
/// `NAME.recording` beside `NAME`. There is none in the folder of live traces. A file without a
/// header may be of anything, so the user must name it.
pub fn find(trace: &Path) -> Option<PathBuf> {
    if !trace.is_file() || is_of_application(trace) {
        return None;
    }
    let mut longer = trace.as_os_str().to_owned();
    longer.push(format!(".{RECORDING}"));
    let replaced = trace
        .extension()
        .filter(|it| *it == TRACE)
        .map(|_| trace.with_extension(RECORDING));
    let has_header = |path: &PathBuf| {
        user_file::start(path)
            .is_ok_and(|start| Header::find(&String::from_utf8_lossy(&start)).is_some())
    };
    [Some(longer.into()), replaced]
        .into_iter()
        .flatten()
        .find(has_header)
}

/// Returns the times of a trace's first and last record, if they are known before its records are
/// read.
pub fn span(trace: &Trace) -> Option<(Ticks, Ticks)> {
    let Trace::Raw(raw) = trace else { return None };
    let spans = || raw.rings().filter_map(|ring| ring.span);
    Some((
        spans().map(|(first, _)| first).min()?,
        spans().map(|(_, last)| last).max()?,
    ))
}

/// Returns true if the recording's owner is trusted: in a folder such as /tmp everybody can put one
/// beside a trace.
pub fn is_trusted(recording: &Path, trace: &Path) -> bool {
    let [recording, trace] =
        [recording, trace].map(|path| path.metadata().map(|metadata| metadata.uid()).ok());
    recording.is_some_and(|user| user_file::is_trusted(user) || Some(user) == trace)
}

/// Returns the reason why a recording with this text does not belong to the trace of that name and
/// those times, if so. The clock of the ticks starts again when the machine boots.
pub fn misfit(text: &str, trace: &Path, span: Option<(Ticks, Ticks)>) -> Option<String> {
    let Some(header) = Header::find(text) else {
        return Some("it does not name its process".to_owned());
    };
    let Some((first, last)) = span else {
        return Some("the times of this trace are known only when it has been read".to_owned());
    };
    let until = header
        .since
        .max(objects::last_time(text).unwrap_or_default());
    match pid_of(trace) {
        Some(pid) if pid != header.pid => Some(format!(
            "it comes from process {}, but the trace from process {pid}",
            header.pid
        )),
        _ if header.since > last => Some("it began after the trace's last record".to_owned()),
        _ if until < first => {
            Some("its last line is older than the trace's first record".to_owned())
        }
        _ => None,
    }
}

/// Returns the process id in the name of a trace file: `nvmf_trace.pid4711`, or a copy's name that
/// contains it.
fn pid_of(trace: &Path) -> Option<u32> {
    let name = trace.file_name()?.to_str()?;
    let (_, end) = name.rsplit_once(NAME_BASE)?;
    let digits = end.strip_prefix("pid")?;
    digits
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_a_process() {
        let pid = |name: &str| pid_of(Path::new(name));
        assert_eq!(pid("/dev/shm/nvmf_trace.pid4711"), Some(4711));
        assert_eq!(pid("copies/nvmf_trace.pid4711.trace"), Some(4711));
        assert_eq!(
            (pid("nvmf_trace.0"), pid("x.trace"), pid("nvmf_trace.pid")),
            (None, None, None)
        );
    }
}
