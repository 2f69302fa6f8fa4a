//! Ancestors and descendants of processes.

use crate::Pid;
use crate::proc::{self, Stat};

/// Returns the direct and indirect children of these processes, without this process.
pub fn descendants(of: &[u32]) -> Vec<u32> {
    let others = proc::processes()
        .into_iter()
        .filter(|&pid| pid != std::process::id());
    let parents: Vec<(u32, u32)> = others.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found: Vec<u32> = Vec::new();
    let mut left = of.to_vec();
    while let Some(parent) = left.pop() {
        for &(child, _) in parents.iter().filter(|(_, of)| *of == parent) {
            if !found.contains(&child) {
                found.push(child);
                left.push(child);
            }
        }
    }
    found
}

/// Returns this process, its parent, the parent of that, and so on.
pub fn ancestors() -> Vec<u32> {
    let mut found = vec![std::process::id()];
    while let Some(parent) = found
        .last()
        .and_then(|&pid| parent(pid))
        .filter(|parent| *parent != 0 && !found.contains(parent))
    {
        found.push(parent);
    }
    found
}

/// Returns the parent of a process (proc_pid_stat(5), field 4).
pub fn parent(pid: u32) -> Option<u32> {
    Stat::read(&proc::folder(Pid(pid)))
        .ok()?
        .number(4)?
        .try_into()
        .ok()
}
