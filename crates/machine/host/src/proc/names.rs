//! Names and command lines of processes.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ::text::printable;

use super::{folder_of, program, task};
use crate::process::{Pid, without_mark};

/// Characters of a command line that are shown.
const MAX_SHOWN_CHARS: usize = 100;

/// Returns the name of a process: that of its main thread, unless it differs from the name of the
/// started program. SPDK calls its main thread `reactor_0`, which says nothing about the program.
pub fn program_name(pid: Pid) -> Option<Vec<u8>> {
    let comm = name(&task(pid, pid))?;
    // The kernel keeps 15 bytes. A script is called after itself, which is the word behind its interpreter.
    let is_comm = |word: &Vec<u8>| {
        let base = word.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        base[..base.len().min(15)] == comm
    };
    if command_line(pid).iter().take(2).any(is_comm) {
        return Some(comm);
    }
    let Ok(program) = program(pid) else {
        return Some(comm);
    };
    let name = without_mark(&program)
        .0
        .file_name()
        .map(|name| name.as_bytes().to_vec());
    name.or(Some(comm))
}

/// Returns the words that a process was started with, without the zeros behind them
/// (proc_pid_cmdline(5)). An empty word follows the last one; it is the only one if we may not
/// look.
pub fn command_line(pid: Pid) -> Vec<Vec<u8>> {
    let bytes = fs::read(folder_of(pid).join("cmdline")).unwrap_or_default();
    bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Returns the command line of a process (proc_pid_cmdline(5)), which the process may have changed,
/// as text for people; its name if that is empty. A long text is cut.
pub fn shown_command_line(pid: u32) -> String {
    let mut words = command_line(Pid(pid));
    words.retain(|word| !word.is_empty());
    let text = printable::text(&words.join(&b' ')).into_owned();
    if text.trim().is_empty() {
        let name = name(&task(Pid(pid), Pid(pid)));
        return name
            .map(|name| printable::text(&name).into_owned())
            .unwrap_or_default();
    }
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns the title that a process has given itself after its name, for people: `walwriter` of
/// `postgres: walwriter`. Servers whose processes have one name write it in place of their command
/// line, as setproctitle(3) does. None without one.
pub fn title(pid: u32) -> Option<String> {
    let name = name(&task(Pid(pid), Pid(pid)))?;
    let words = command_line(Pid(pid));
    let title = words.first()?.strip_prefix(&*name)?.strip_prefix(b": ")?;
    let title = printable::text(title.trim_ascii());
    let is_short = title.chars().count() <= MAX_SHOWN_CHARS;
    is_short.then(|| title.into_owned())
}

/// Returns the name of a thread (proc_pid_comm(5)), by its folder.
pub fn name(folder: &Path) -> Option<Vec<u8>> {
    let mut name = fs::read(folder.join("comm")).ok()?;
    name.pop_if(|last| *last == b'\n');
    Some(name)
}
