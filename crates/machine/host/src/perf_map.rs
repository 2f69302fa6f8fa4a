//! The names that a process gives to code that it makes at run time: `/tmp/perf-PID.map` (the
//! kernel's `tools/perf/Documentation/jit-interface.txt`).

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use crate::capabilities::with_file_access;
use crate::foreign;
use crate::proc;
use crate::process::Process;

/// Limit on the size of the file, in bytes: those of large Java and Node programs have some
/// megabytes.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// A file of names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PerfMap {
    /// Path as the process sees it.
    pub path: PathBuf,
    /// Bytes of the file: the process can write anything.
    pub text: Vec<u8>,
}

impl Process {
    /// Returns the path of the process's file of names, below its own root: its number there is
    /// that of its own PID namespace.
    pub fn perf_map_path(&self) -> PathBuf {
        let status = proc::text(self.folder().join("status")).unwrap_or_default();
        let pid = last_number(&status, "NSpid:").unwrap_or(self.pid().0);
        PathBuf::from(format!("/tmp/perf-{pid}.map"))
    }

    /// Returns the process's file of names; `None` if it still has `known` bytes, as when it was
    /// last read.
    ///
    /// Everybody may make files in `/tmp`, so it must be a regular file of that name, and belong to
    /// root or the process's user.
    pub fn perf_map(&self, known: Option<u64>) -> io::Result<Option<PerfMap>> {
        let path = self.perf_map_path();
        with_file_access(|| {
            let file = foreign::below(&self.root(), &path)?;
            if file.real.file_name() != path.file_name() {
                return Err(io::Error::new(
                    ErrorKind::InvalidInput,
                    "it is a symbolic link",
                ));
            }
            if file.owner != 0 && proc::effective_user(self.folder())? != file.owner {
                return Err(io::Error::new(
                    ErrorKind::PermissionDenied,
                    "it belongs to another user",
                ));
            }
            if known == Some(file.length) {
                return Ok(None);
            }
            Ok(Some(PerfMap {
                text: file.text(MAX_FILE_BYTES)?,
                path: path.clone(),
            }))
        })
    }
}

/// Returns the value of a line of `/proc/PID/status` (proc_pid_status(5)). A thread's name has no
/// line ends there.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn last_number(status: &str, name: &str) -> Option<u32> {
    field(status, name)?
        .split_ascii_whitespace()
        .next_back()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;
    use crate::process::Pid;

    #[test]
    fn numbers_of_the_status() {
        let status = "Name:\tUid: 7\nUid:\t1\t2\t3\t4\nNSpid:\t123\t7\n";
        assert_eq!(last_number(status, "NSpid:"), Some(7));
    }

    /// A file that is removed with the test.
    struct Removed(PathBuf);

    impl Drop for Removed {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_perf_map_must_belong_to_the_user() {
        let process = Process::open(Pid(std::process::id())).unwrap();
        let path = Removed(process.perf_map_path());
        let kind = || process.perf_map(None).map_err(|error| error.kind());
        assert_eq!(kind(), Err(ErrorKind::NotFound));
        std::fs::write(&path.0, "1000 10 name\n").unwrap();
        let found = PerfMap {
            path: path.0.clone(),
            text: b"1000 10 name\n".to_vec(),
        };
        assert_eq!(kind(), Ok(Some(found)));
        assert_eq!(process.perf_map(Some(13)).unwrap(), None);
        // Only root can give it to somebody else.
        if chown(&path.0, Some(12345), None).is_ok() {
            assert_eq!(kind(), Err(ErrorKind::PermissionDenied));
        }
        std::fs::remove_file(&path.0).unwrap();
        symlink("/etc/passwd", &path.0).unwrap();
        assert_eq!(kind(), Err(ErrorKind::InvalidInput));
        std::fs::remove_file(&path.0).unwrap();
        std::fs::File::create(&path.0)
            .unwrap()
            .set_len(MAX_FILE_BYTES + 1)
            .unwrap();
        assert_eq!(kind(), Err(ErrorKind::FileTooLarge));
    }
}
