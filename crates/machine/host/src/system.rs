//! The machine's settings that decide what may be traced: `/proc/sys`, lockdown, limits, namespaces.

use std::fs;
use std::path::Path;

use crate::proc;

/// Inode number of the machine's first PID namespace (`PROC_PID_INIT_INO` of the kernel's
/// `include/linux/proc_ns.h`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
/// Inode number of the machine's first user namespace (`PROC_USER_INIT_INO` of the kernel's
/// `include/linux/proc_ns.h`).
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// Returns the kernel's release, as `uname -r` prints it.
pub fn kernel_release() -> Option<String> {
    Some(
        fs::read_to_string("/proc/sys/kernel/osrelease")
            .ok()?
            .trim()
            .to_owned(),
    )
}

/// Returns the numbers that the kernel's release begins with: `6.12` of `6.12.3-arch1`.
pub fn kernel_version() -> Option<(u32, u32)> {
    version(&kernel_release()?)
}

pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns true if the kernel has a module of this name, loaded or built in with parameters.
pub fn has_module(name: &str) -> bool {
    let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    is_name && Path::new("/sys/module").join(name).exists()
}

/// Returns a setting below `/proc/sys/kernel`, as a number; `None` if the kernel has no such
/// setting.
pub fn setting(name: &str) -> Option<i64> {
    fs::read_to_string(Path::new("/proc/sys/kernel").join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Returns the lockdown mode, which restricts root, too (kernel_lockdown(7)): `none`, `integrity`
/// or `confidentiality`. `None` if the kernel does not show it: securityfs is not mounted, or not
/// readable, or has no lockdown.
pub fn lockdown() -> Option<String> {
    chosen(&fs::read_to_string("/sys/kernel/security/lockdown").ok()?)
}

/// Returns the chosen word, which is in brackets: `none [integrity] confidentiality`.
pub(crate) fn chosen(line: &str) -> Option<String> {
    Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// Returns the bytes of memory that this process may lock; `None` if there is no limit
/// (getrlimit(2), `RLIMIT_MEMLOCK`).
pub fn lockable_memory() -> Option<u64> {
    soft_limit(
        &fs::read_to_string("/proc/self/limits").unwrap_or_default(),
        "Max locked memory",
    )
}

/// Returns the soft limit of a line of `/proc/PID/limits`; `None` for `unlimited`.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    limits
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Returns true if this process is in the machine's first PID namespace, not in a container's.
pub fn in_first_pid_namespace() -> Option<bool> {
    Some(namespace("pid")?.1 == FIRST_PID_NAMESPACE)
}

/// Returns the device and inode of our PID namespace, if it is a container's.
pub fn inner_pid_namespace() -> Option<(u64, u64)> {
    namespace("pid").filter(|namespace| namespace.1 != FIRST_PID_NAMESPACE)
}

/// Returns true if this process is in the machine's first user namespace: BPF ignores the
/// capabilities of another.
pub fn in_first_user_namespace() -> Option<bool> {
    Some(namespace("user")?.1 == FIRST_USER_NAMESPACE)
}

/// Returns the device and inode of one of our namespaces.
fn namespace(kind: &str) -> Option<(u64, u64)> {
    proc::namespace(&proc::own_folder(), kind)
}

/// Returns true if times of the boot clock are the machine's, not those of a time namespace with
/// another begin (time_namespaces(7)).
pub fn has_boot_time() -> bool {
    let offsets = fs::read_to_string("/proc/self/timens_offsets");
    // Without this file there are no such namespaces.
    offsets.map_or(true, |offsets| {
        offsets
            .lines()
            .filter(|line| line.starts_with("boottime"))
            .all(has_no_offset)
    })
}

/// Returns true if seconds and nanoseconds are 0: `boottime 0 0`.
fn has_no_offset(line: &str) -> bool {
    line.split_ascii_whitespace()
        .skip(1)
        .all(|number| number == "0")
}

/// Returns true if the kernel shows us its addresses (`kernel.kptr_restrict`): if it does not, all
/// are 0.
pub fn sees_kernel_addresses() -> Option<bool> {
    use std::io::{BufRead as _, BufReader};
    let symbols = BufReader::new(fs::File::open("/proc/kallsyms").ok()?);
    // Some may really be 0 (per-CPU variables), but not all of the first hundred.
    Some(
        symbols
            .lines()
            .map_while(Result::ok)
            .take(100)
            .any(|line| !line.starts_with("0000000000000000")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_is_in_brackets() {
        assert_eq!(
            chosen("none [integrity] confidentiality\n").as_deref(),
            Some("integrity")
        );
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn limits_are_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max locked memory         65536                65536                bytes     \n";
        assert_eq!(soft_limit(text, "Max locked memory"), Some(65536));
        let text =
            "Max locked memory         unlimited            unlimited            bytes     \n";
        assert_eq!(soft_limit(text, "Max locked memory"), None);
    }

    #[test]
    fn offsets_of_the_boot_clock_are_seen() {
        assert!(
            has_no_offset("boottime            0         0")
                && !has_no_offset("boottime   86400         0")
        );
        assert!(has_boot_time());
    }

    #[test]
    fn releases_begin_with_two_numbers() {
        assert_eq!(version("6.12.3-arch1"), Some((6, 12)));
        assert_eq!(version("5.10-rc1"), Some((5, 10)));
        assert_eq!((version("6"), version("next")), (None, None));
    }

    #[test]
    fn this_machine_has_settings() {
        assert!(kernel_version() >= Some((5, 8)));
        assert!(!has_module("") && !has_module("..") && !has_module("../kernel"));
        assert!(kernel_release().is_some_and(|release| release.contains('.')));
        assert!(in_first_pid_namespace().is_some() && in_first_user_namespace().is_some());
        assert_eq!(setting("no_such_setting"), None);
        assert!(setting("perf_event_paranoid").is_some());
    }
}
