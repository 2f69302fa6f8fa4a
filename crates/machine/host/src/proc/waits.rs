//! Functions and system calls that a thread waits in.

use std::path::Path;

use super::text;
use crate::capabilities::with_file_access;

/// Returns the system call that a thread is blocked in, as text (proc_pid_syscall(5)), by its
/// folder; empty if we may not look.
pub fn system_call(folder: &Path) -> String {
    with_file_access(|| text(folder.join("syscall"))).unwrap_or_default()
}

/// Returns the kernel's function that a thread waits in (proc_pid_wchan(5)), by its folder; empty
/// if it does not wait, or we may not look.
pub fn waits_in(folder: &Path) -> String {
    let text = with_file_access(|| text(folder.join("wchan"))).unwrap_or_default();
    if text == "0" { String::new() } else { text }
}

/// Returns the kernel's functions that a thread waits in, the innermost first (proc_pid_stack(5)),
/// by its folder; empty if it does not wait, or we may not look (it takes CAP_SYS_ADMIN).
pub fn kernel_stack(folder: &Path) -> Vec<String> {
    let text = with_file_access(|| text(folder.join("stack"))).unwrap_or_default();
    text.lines()
        .filter_map(stack_function)
        .map(str::to_owned)
        .collect()
}

/// Returns the function in a line like `[<0>] do_nanosleep+0x65/0x180`.
fn stack_function(line: &str) -> Option<&str> {
    let name = line.split_once("] ")?.1.split(['+', ' ']).next()?;
    // Hidden symbols are numbers.
    (!name.is_empty() && !name.starts_with("0x")).then_some(name)
}
