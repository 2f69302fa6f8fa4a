//! Placement of a process: its control groups and their limits, and the nodes of its memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};

use kernel_text::cpus::CpuSet;

use super::root::{Reading, Root, UnreadFile, UnreadReason};
use crate::capabilities::with_file_access;
use crate::proc;

/// Limit on a process's resident memory in kB, above which the nodes of its pages are not counted:
/// the kernel walks all of its page tables and holds a lock of its address space meanwhile. Huge
/// pages of hugetlbfs do not count.
const MAX_MEMORY_KB: u64 = 4 << 20;
/// Limit on the bytes that are read of `numa_maps`, which has a line for each mapping.
const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Placement of a process.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Process id.
    pub pid: u32,
    /// Name, of arbitrary bytes.
    pub name: Vec<u8>,
    /// CPU time limits of its control groups and of the groups above, the innermost first.
    pub groups: Vec<Group>,
    /// File that lists the CPUs of its cpuset, and these CPUs; `None` if it is in no cpuset.
    pub cpuset: Option<(String, CpuSet)>,
    /// True if that cpuset is an isolated partition, or one whose threads the scheduler does not
    /// balance (version 1).
    pub is_isolated: bool,
    /// Kilobytes of its memory, by NUMA node; empty if the machine has one node.
    pub memory: Reading<BTreeMap<u32, u64>>,
    /// True if transparent huge pages are possible in it (`THP_enabled` of proc_pid_status(5)).
    pub huge_pages: Option<bool>,
}

/// A limit of CPU time (Documentation/admin-guide/cgroup-v2.rst, `cpu.max`; Documentation/scheduler/sched-bwc.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Path of the file of the limit.
    pub file: String,
    /// Microseconds of CPU time in each period.
    pub quota: u64,
    /// The period in microseconds.
    pub period: u64,
    /// Number of periods in which the limit was reached.
    pub throttled: u64,
    /// True for version 2.
    pub is_v2: bool,
}

impl Placement {
    pub(super) fn read(root: &Root, pid: u32, nodes: usize) -> Self {
        let folder = root.path("/proc").join(pid.to_string());
        let status = |name: &str| proc::status(&folder, name).ok().flatten();
        let places = places(root, pid);
        let groups = places
            .iter()
            .filter(|place| place.has("cpu"))
            .flat_map(|place| place.limits(root))
            .collect();
        Self {
            pid,
            name: proc::name(&folder).unwrap_or_default(),
            groups,
            is_isolated: places
                .iter()
                .filter(|place| place.has("cpuset"))
                .any(|place| place.is_isolated(root)),
            cpuset: places
                .iter()
                .filter(|place| place.has("cpuset"))
                .find_map(|place| place.cpuset(root)),
            memory: if nodes > 1 {
                memory(root, pid)
            } else {
                Ok(BTreeMap::new())
            },
            huge_pages: status("THP_enabled").map(|value| value != "0"),
        }
    }
}

/// Place of a process in one hierarchy.
struct CgroupMembership {
    /// Controllers, separated by commas; `None` for version 2, which has all of them.
    controllers: Option<String>,
    /// Mount point of the hierarchy.
    mount: String,
    /// Path in the hierarchy, which begins with `/`.
    path: String,
}

/// Returns the process's place in each mounted hierarchy (cgroups(7)). Only mounts of a whole
/// hierarchy are of use.
fn places(root: &Root, pid: u32) -> Vec<CgroupMembership> {
    let mounts = root.text("/proc/self/mounts").unwrap_or_default();
    let mounts: Vec<(&str, &str, &str)> = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?, words.next()?))
        })
        .filter(|(_, kind, _)| kind.starts_with("cgroup"))
        .collect();
    let text = root
        .text(&format!("/proc/{pid}/cgroup"))
        .unwrap_or_default();
    let place = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        // A path that leads up shows a group outside of our view.
        if path.split('/').any(|name| name == "..") {
            return None;
        }
        let matches = |(_, kind, options): &&(&str, &str, &str)| match controllers {
            "" => *kind == "cgroup2",
            _ => {
                *kind == "cgroup"
                    && controllers
                        .split(',')
                        .all(|it| options.split(',').any(|option| option == it))
            }
        };
        let (mount, _, _) = mounts.iter().find(matches)?;
        let controllers = Some(controllers.to_owned()).filter(|it| !it.is_empty());
        Some(CgroupMembership {
            controllers,
            mount: (*mount).to_owned(),
            path: path.to_owned(),
        })
    };
    text.lines().filter_map(place).collect()
}

impl CgroupMembership {
    fn has(&self, controller: &str) -> bool {
        self.controllers
            .as_ref()
            .is_none_or(|all| all.split(',').any(|it| it == controller))
    }

    /// Returns the folders of the group and of the groups above, the innermost first.
    fn folders(&self) -> Vec<String> {
        let mut folders = Vec::new();
        let mut path = self.path.trim_end_matches('/');
        loop {
            folders.push(format!("{}{path}", self.mount));
            let Some((above, _)) = path.rsplit_once('/') else {
                break;
            };
            path = above;
        }
        folders
    }

    fn limits(&self, root: &Root) -> Vec<Group> {
        let limit = |folder: &String| {
            let is_v2 = self.controllers.is_none();
            let (file, quota, period) = if is_v2 {
                let file = format!("{folder}/cpu.max");
                let text = root.text(&file).ok()?;
                let (quota, period) = text.trim().split_once(' ')?;
                // `max` is no limit.
                (file, quota.parse().ok()?, period.parse().ok()?)
            } else {
                let file = format!("{folder}/cpu.cfs_quota_us");
                // -1 is no limit.
                let quota = u64::try_from(root.number(&file).ok()?).ok()?;
                (
                    file,
                    quota,
                    root.number(&format!("{folder}/cpu.cfs_period_us"))
                        .ok()?
                        .try_into()
                        .ok()?,
                )
            };
            let stat = root.text(&format!("{folder}/cpu.stat")).unwrap_or_default();
            let throttled = stat
                .lines()
                .find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok());
            Some(Group {
                file,
                quota,
                period,
                throttled: throttled.unwrap_or_default(),
                is_v2,
            })
        };
        self.folders().iter().filter_map(limit).collect()
    }

    fn cpuset(&self, root: &Root) -> Option<(String, CpuSet)> {
        let name = if self.controllers.is_none() {
            "cpuset.cpus.effective"
        } else {
            "cpuset.effective_cpus"
        };
        // A group without the controller has the cpuset of the group above.
        self.folders().into_iter().find_map(|folder| {
            let file = format!("{folder}/{name}");
            root.list(&file).ok().map(|cpus| (file, cpus))
        })
    }
}

impl CgroupMembership {
    /// Returns true if the scheduler leaves the threads of the group where they are:
    /// `cpuset.cpus.partition` of the group with the cpuset (since Linux 6.1), or
    /// `cpuset.sched_load_balance` of the group and of all above it (cpuset(7)).
    fn is_isolated(&self, root: &Root) -> bool {
        let folders = self.folders();
        if self.controllers.is_none() {
            let partition =
                |folder: &String| root.text(&format!("{folder}/cpuset.cpus.partition")).ok();
            // An invalid partition has the reason behind its kind.
            return folders
                .iter()
                .find_map(partition)
                .is_some_and(|kind| kind.trim() == "isolated");
        }
        folders
            .iter()
            .all(|folder| root.number(&format!("{folder}/cpuset.sched_load_balance")) == Ok(0))
    }
}

/// Reads the kilobytes of memory by node (`numa_maps`; numa(7)).
fn memory(root: &Root, pid: u32) -> Reading<BTreeMap<u32, u64>> {
    let path = format!("/proc/{pid}/numa_maps");
    let unread = |why| UnreadFile {
        path: path.clone(),
        why,
    };
    let status = root.text(&format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    });
    if resident.unwrap_or(0u64) > MAX_MEMORY_KB {
        return Err(unread(UnreadReason::TooLarge));
    }
    let file = with_file_access(|| fs::File::open(root.path(&path)));
    let file = file.map_err(|error| {
        let is_forbidden = error.kind() == std::io::ErrorKind::PermissionDenied;
        unread(if is_forbidden {
            UnreadReason::Forbidden
        } else {
            UnreadReason::Absent
        })
    })?;
    let mut nodes = BTreeMap::new();
    for line in BufReader::new(file.take(MAX_TEXT_BYTES)).split(b'\n') {
        let line = line.map_err(|_| unread(UnreadReason::Strange))?;
        let line = String::from_utf8_lossy(&line);
        let page = line
            .split(' ')
            .find_map(|word| word.strip_prefix("kernelpagesize_kB=")?.parse().ok())
            .unwrap_or(4u64);
        for (node, pages) in line
            .split(' ')
            .filter_map(|word| word.strip_prefix('N')?.split_once('='))
        {
            if let (Ok(node), Ok(pages)) = (node.parse::<u32>(), pages.parse::<u64>()) {
                let sum = nodes.entry(node).or_insert(0u64);
                *sum = sum.saturating_add(pages.saturating_mul(page));
            }
        }
    }
    Ok(nodes)
}
