//! The kernel's tracepoints, from tracefs (Documentation/trace/events.rst).

use std::fs::ReadDir;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel_text::tracefs::TracepointFormat;

use crate::capabilities::with_file_access;
use crate::error::HostError;

/// Mount points of tracefs: since Linux 4.1 at a place of its own, before that with debugfs.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracefs that can be read.
#[derive(Clone, Debug)]
pub struct Tracefs {
    events: PathBuf,
    /// Descriptor that keeps a detached mount alive.
    _mount: Option<Arc<OwnedFd>>,
}

/// Name of a tracepoint.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TracepointName {
    /// Part of the kernel that it belongs to.
    pub category: String,
    /// Name in that part.
    pub name: String,
}

impl Tracefs {
    /// Finds the tracefs of this machine.
    pub fn find() -> Result<Self, HostError> {
        for mounted in MOUNT_POINTS {
            match with_file_access(|| std::fs::metadata(Path::new(mounted).join("events"))) {
                Ok(_) => return Ok(Self::at(Path::new(mounted))),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(HostError::TracefsForbidden {
                        path: mounted.into(),
                    });
                }
                Err(_) => {}
            }
        }
        Err(HostError::NoTracefs {
            looked_at: MOUNT_POINTS.join(", "),
        })
    }

    /// Returns the tracefs mounted here.
    pub fn at(mounted: &Path) -> Self {
        Self {
            events: mounted.join("events"),
            _mount: None,
        }
    }

    /// Returns a tracefs that is mounted nowhere but at this descriptor (fsmount(2)), and ends with
    /// it.
    pub fn detached(mount: OwnedFd) -> Self {
        let events = Path::new("/proc/self/fd")
            .join(mount.as_raw_fd().to_string())
            .join("events");
        Self {
            events,
            _mount: Some(Arc::new(mount)),
        }
    }

    /// Returns the mount point.
    pub fn mounted(&self) -> &Path {
        self.events.parent().unwrap_or(&self.events)
    }

    /// Returns the names of all tracepoints, sorted.
    pub fn names(&self) -> Result<Vec<TracepointName>, HostError> {
        with_file_access(|| self.read_names())
    }

    fn read_names(&self) -> Result<Vec<TracepointName>, HostError> {
        let mut names = Vec::new();
        for category in entries(&self.events)? {
            let folder = self.events.join(&category);
            for name in entries(&folder)? {
                if folder.join(&name).join("format").exists() {
                    names.push(TracepointName {
                        category: category.clone(),
                        name,
                    });
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the list of functions that can be probed, as text; `None` if there is none, or this
    /// user may not read it.
    pub fn traceable_functions(&self) -> Option<String> {
        with_file_access(|| {
            std::fs::read_to_string(self.mounted().join("available_filter_functions"))
        })
        .ok()
    }

    /// Reads the format of a tracepoint's records.
    pub fn format(&self, of: &TracepointName) -> Result<TracepointFormat, HostError> {
        let path = self.events.join(&of.category).join(&of.name).join("format");
        let text = with_file_access(|| std::fs::read_to_string(&path))
            .map_err(|error| failed(&path, error))?;
        TracepointFormat::parse(&text).map_err(|source| HostError::Tracepoint { path, source })
    }
}

/// Returns the names of the folders in a folder; the kernel's names are ASCII.
fn entries(folder: &Path) -> Result<Vec<String>, HostError> {
    let read: ReadDir = std::fs::read_dir(folder).map_err(|error| failed(folder, error))?;
    let folders = read
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect())
}

fn failed(path: &Path, source: io::Error) -> HostError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::PermissionDenied => HostError::TracefsForbidden { path },
        _ => HostError::Read { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_are_the_folders_with_a_format() {
        let dir = tempfile::tempdir().unwrap();
        let event = dir.path().join("events/sched/sched_switch");
        std::fs::create_dir_all(&event).unwrap();
        std::fs::create_dir_all(dir.path().join("events/sched/empty")).unwrap();
        std::fs::write(dir.path().join("events/enable"), "0").unwrap();
        let text = "name: sched_switch\nID: 7\nformat:\n\tfield:int prev;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
        std::fs::write(event.join("format"), text).unwrap();

        let tracefs = Tracefs::at(dir.path());
        let names = tracefs.names().unwrap();
        assert_eq!(
            names,
            [TracepointName {
                category: "sched".into(),
                name: "sched_switch".into()
            }]
        );
        let format = tracefs.format(&names[0]).unwrap();
        assert_eq!((format.id, format.fields.len()), (7, 1));

        std::fs::write(event.join("format"), "nonsense").unwrap();
        assert!(matches!(
            tracefs.format(&names[0]),
            Err(HostError::Tracepoint { .. })
        ));
    }
}
