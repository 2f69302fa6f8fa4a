//! Control groups by their number: the inode of their directory (cgroups(7)).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How many directories of a hierarchy are looked at.
const MAX_FOLDERS: usize = 100_000;

/// The hierarchies that are mounted, the second version's first: names and roots.
pub fn hierarchies() -> Vec<(String, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let (mut unified, mut others) = (Vec::new(), Vec::new());
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(root), Some(kind)) = (words.next().map(PathBuf::from), words.next()) else { continue };
        match kind {
            "cgroup2" => unified.push(("unified".to_owned(), root)),
            "cgroup" => {
                let name = root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                others.push((name, root));
            }
            _ => {}
        }
    }
    others.sort();
    unified.extend(others);
    unified
}

/// The path of a cgroup in the hierarchy with this root: `/` for the root itself.
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
            waiting.extend(inner.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|it| it.path()));
        }
    }
    None
}

/// The number of the cgroup with this path.
pub fn id(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

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
