//! Control groups by their id, the inode of their directory (cgroups(7)), and the counters of a process's CPU limits.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Limit on directories visited in a hierarchy.
const MAX_FOLDERS: usize = 100_000;

/// Returns the mounted hierarchies, the second version's first: names and roots.
pub fn hierarchies() -> Vec<(String, PathBuf)> {
    let mounts = crate::proc::text("/proc/self/mounts").unwrap_or_default();
    let (mut unified, mut others) = (Vec::new(), Vec::new());
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(root), Some(kind)) = (words.next().map(PathBuf::from), words.next()) else {
            continue;
        };
        match kind {
            "cgroup2" => unified.push(("unified".to_owned(), root)),
            "cgroup" => {
                let name = root
                    .file_name()
                    .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                others.push((name, root));
            }
            _ => {}
        }
    }
    others.sort();
    unified.extend(others);
    unified
}

/// Returns the path of a cgroup in the hierarchy with this root: `/` for the root itself.
pub fn path(root: &Path, id: u64) -> Option<String> {
    let mut waiting = vec![root.to_owned()];
    let mut looked_at = 0;
    while let Some(folder) = waiting.pop() {
        looked_at += 1;
        if fs::metadata(&folder).is_ok_and(|metadata| metadata.ino() == id) {
            return Some(format!("/{}", folder.strip_prefix(root).ok()?.display()));
        }
        if looked_at + waiting.len() < MAX_FOLDERS {
            let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
            waiting.extend(
                inner
                    .filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()))
                    .map(|it| it.path()),
            );
        }
    }
    None
}

/// Returns the id of the cgroup with this path.
pub fn id(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// File of a control group that lists its processes (Documentation/admin-guide/cgroup-v2.rst;
/// likewise in version 1).
const PROCESSES: &str = "cgroup.procs";

/// Returns the processes of a control group and of the groups below it. `path` is its folder, or
/// its path in `/proc/PID/cgroup`.
///
/// # Errors
/// Returns an error if there is no such group below the root of a hierarchy.
pub fn processes(path: &Path) -> io::Result<Vec<u32>> {
    let roots: Vec<PathBuf> = hierarchies().into_iter().map(|(_, root)| root).collect();
    let inner = path.strip_prefix("/").unwrap_or(path);
    let named = std::iter::once(path.to_owned()).chain(roots.iter().map(|root| root.join(inner)));
    // Links and `..` are followed, but not out of the file systems of cgroups.
    let is_group = |folder: &PathBuf| {
        roots.iter().any(|root| folder.starts_with(root)) && folder.join(PROCESSES).exists()
    };
    let group = named
        .filter_map(|folder| folder.canonicalize().ok())
        .find(is_group)
        .ok_or(io::ErrorKind::NotFound)?;
    let (mut found, mut waiting, mut read) = (Vec::new(), vec![group], 0);
    while let Some(folder) = waiting.pop() {
        let numbers = crate::proc::text(folder.join(PROCESSES)).unwrap_or_default();
        // 0 is a process outside of this PID namespace.
        found.extend(
            numbers
                .lines()
                .filter_map(|line| line.parse::<u32>().ok())
                .filter(|&pid| pid != 0),
        );
        read += 1;
        if read + waiting.len() < MAX_FOLDERS {
            let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
            waiting.extend(
                inner
                    .filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()))
                    .map(|it| it.path()),
            );
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Counters of a group's CPU limit since it was set (`cpu.stat`;
/// Documentation/scheduler/sched-bwc.rst).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuLimit {
    /// Folder of the group.
    pub folder: PathBuf,
    /// Path of the group in its hierarchy; bytes that are not UTF-8 become U+FFFD.
    pub group: String,
    /// Periods in which something could run.
    pub periods: u64,
    /// Periods in which the limit was used up.
    pub throttled: u64,
    /// Time that its threads could not run because of that, in nanoseconds: the sum over the CPUs
    /// that they waited for.
    pub throttled_nanos: u64,
    /// Name of the file that has the limit.
    pub setting: &'static str,
}

impl CpuLimit {
    /// Reads it from the folder of a group; `None` if it has no limit, or we may not see it.
    fn read(folder: &Path, group: &str) -> Option<Self> {
        let stat = fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default();
        let number = |name: &str| {
            let lines = stat.lines().filter_map(|line| line.split_once(' '));
            lines
                .filter(|(found, _)| *found == name)
                .find_map(|(_, number)| number.trim().parse::<u64>().ok())
        };
        let (periods, throttled) = (number("nr_periods")?, number("nr_throttled")?);
        // Version 2 has microseconds, version 1 nanoseconds.
        let (throttled_nanos, setting) = match number("throttled_usec") {
            Some(micros) => (micros.saturating_mul(1000), "cpu.max"),
            None => (number("throttled_time").unwrap_or(0), "cpu.cfs_quota_us"),
        };
        let (folder, group) = (folder.to_owned(), group.to_owned());
        (periods > 0).then_some(Self {
            folder,
            group,
            periods,
            throttled,
            throttled_nanos,
            setting,
        })
    }

    /// Reads it again, even if no process is left in the group; `None` if the group is gone.
    pub fn now(&self) -> Option<Self> {
        Self::read(&self.folder, &self.group)
    }
}

/// Returns the CPU limits of a process's group and of the groups above, the outermost first, as far
/// as we may see them. `None` if the process is gone.
pub fn cpu_limits(pid: u32) -> Option<Vec<CpuLimit>> {
    let hierarchies = hierarchies();
    let text = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    let mut limits = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        // A number, controllers, and the group's path, whose names can be any bytes (cgroups(7)).
        let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
        let (Some(Ok(controllers)), Some(group)) =
            (parts.next().map(std::str::from_utf8), parts.next())
        else {
            continue;
        };
        let matches = |(name, _): &&(String, PathBuf)| {
            if controllers.is_empty() {
                name == "unified"
            } else {
                has_cpu(name) && has_cpu(controllers)
            }
        };
        if let Some((_, root)) = hierarchies.iter().find(matches) {
            limits.extend(limits_of(root, group));
        }
    }
    Some(limits)
}

/// Returns true if one of these names, separated by commas, is the controller of CPU time.
fn has_cpu(names: &str) -> bool {
    names.split(',').any(|name| name == "cpu")
}

/// Returns the limits of a group and of the groups above.
fn limits_of(root: &Path, group: &[u8]) -> Vec<CpuLimit> {
    let mut limits = Vec::new();
    let (mut folder, mut path) = (root.to_owned(), String::new());
    for name in group
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
    {
        // A path that leads up shows a group outside of our view.
        if name == b".." {
            return Vec::new();
        }
        folder.push(OsStr::from_bytes(name));
        path = format!("{path}/{}", String::from_utf8_lossy(name));
        limits.extend(CpuLimit::read(&folder, &path));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_all_groups_above() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("pod/container");
        fs::create_dir_all(&inner).unwrap();
        fs::write(
            dir.path().join("pod/cpu.stat"),
            "usage_usec 7\nnr_periods 0\nnr_throttled 0\n",
        )
        .unwrap();
        fs::write(
            inner.join("cpu.stat"),
            "nr_periods 20\nnr_throttled 9\nthrottled_usec 800\n",
        )
        .unwrap();
        let limit = CpuLimit {
            folder: inner.clone(),
            group: "/pod/container".into(),
            periods: 20,
            throttled: 9,
            throttled_nanos: 800_000,
            setting: "cpu.max",
        };
        assert_eq!(
            limits_of(dir.path(), b"/pod/container"),
            std::slice::from_ref(&limit)
        );
        // The format of version 1.
        fs::write(
            inner.join("cpu.stat"),
            "nr_periods 21\nnr_throttled 10\nthrottled_time 900001\n",
        )
        .unwrap();
        let first = CpuLimit {
            periods: 21,
            throttled: 10,
            throttled_nanos: 900_001,
            setting: "cpu.cfs_quota_us",
            ..limit
        };
        assert_eq!(first.now(), Some(first.clone()));
        assert_eq!(limits_of(dir.path(), b"/"), []);
        assert_eq!(limits_of(dir.path(), b"/../pod/container"), []);
        assert!(has_cpu("cpuacct,cpu") && !has_cpu("cpuset") && !has_cpu("unified"));
    }

    #[test]
    fn folders_are_found_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(path(dir.path(), id(&inner).unwrap()), Some("/a/b".into()));
        assert_eq!(path(dir.path(), id(dir.path()).unwrap()), Some("/".into()));
        assert_eq!(path(dir.path(), u64::MAX), None);
    }
}
