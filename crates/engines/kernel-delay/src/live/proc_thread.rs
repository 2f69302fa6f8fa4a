//! Data from `/proc` about processes and their threads.

use std::path::PathBuf;

use host::proc::{self, Stat};
use host::{FilePlace, Pid};
use text::printable;

use crate::layout::{NUMBERED_SLOTS, SLOT_COMPAT, SLOT_NONE, SLOT_OTHER};

/// State of a thread when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ProcThread {
    /// Letter of the state: proc_pid_stat(5), field 3.
    pub(super) state: char,
    /// Call that it is blocked in, as a slot: proc_pid_syscall(5).
    pub(super) call: Option<u32>,
    /// True if it is frozen with its control group; false until [`ProcThread::look_if_frozen`]
    /// checks it.
    pub(super) is_frozen: bool,
    /// Ticks in user code: proc_pid_stat(5), field 14.
    pub(super) user_ticks: u64,
    /// Ticks in the kernel: proc_pid_stat(5), field 15.
    pub(super) system_ticks: u64,
    /// Nanoseconds on a CPU: Documentation/scheduler/sched-stats.rst.
    pub(super) ran: u64,
    /// CPU that it runs on, or ran on last: proc_pid_stat(5), field 39.
    pub(super) cpu: u32,
}

/// Functions in which a thread waits while its control group is frozen. Two are of
/// `kernel/signal.c`, which compilers merge into one (other threads that wait there are stopped,
/// which is another state), and one is of `kernel/freezer.c` for version 1.
const FREEZER: [&str; 3] = ["do_freezer_trap", "get_signal", "__refrigerator"];

/// States of a thread that has ended, or that does not exist (proc_pid_stat(5), field 3).
const ENDED: [char; 3] = ['Z', 'X', '?'];

impl ProcThread {
    /// Reads a thread; all values are empty if it has exited. The calls of a 32-bit program have
    /// numbers of their own.
    pub(super) fn read(pid: u32, tid: u32, is_32_bit: bool) -> Self {
        let folder = task(pid, tid);
        let stat = Stat::read(&folder).ok();
        let number = |field| {
            stat.as_ref()
                .and_then(|stat| stat.number(field))
                .unwrap_or(0)
        };
        let call = call(&proc::system_call(&folder));
        Self {
            state: stat.as_ref().and_then(Stat::state).unwrap_or('?'),
            call: call.map(|slot| {
                if is_32_bit && slot != SLOT_NONE {
                    SLOT_COMPAT
                } else {
                    slot
                }
            }),
            is_frozen: false,
            user_ticks: number(14),
            system_ticks: number(15),
            ran: proc::ran(&folder).unwrap_or(0),
            cpu: number(39) as u32,
        }
    }

    /// Returns whether its call's name does not show what it waits for: its wait is
    /// uninterruptible, or it is in no call.
    pub(super) fn waits_for_unnamed(&self) -> bool {
        self.state == 'D' || (self.state == 'S' && self.call == Some(SLOT_NONE))
    }

    /// Checks whether the thread is frozen with its control group, waiting in one of [`FREEZER`].
    pub(super) fn look_if_frozen(&mut self, pid: u32, tid: u32) {
        self.is_frozen = ['S', 'D'].contains(&self.state)
            && FREEZER.contains(&proc::waits_in(&task(pid, tid)).as_str());
    }

    /// Returns whether the thread has exited, or is a first thread that has ended before the others
    /// and remains a zombie.
    pub(super) fn has_ended(&self) -> bool {
        ENDED.contains(&self.state)
    }
}

/// Returns whether a process runs a 32-bit program: the fifth byte of an ELF file (gABI chapter 4,
/// `EI_CLASS`).
pub(super) fn is_32_bit(pid: u32) -> bool {
    let head = FilePlace::at(&proc::exe(Pid(pid))).first_bytes(5);
    head.is_ok_and(|head| head == b"\x7fELF\x01")
}

/// Parses `running`, or a number and arguments, or -1 for a thread blocked in no call.
fn call(text: &str) -> Option<u32> {
    let number: i64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(match u32::try_from(number) {
        Ok(number) if number < NUMBERED_SLOTS => number,
        Ok(_) => SLOT_OTHER,
        Err(_) => SLOT_NONE,
    })
}

/// Returns the kernel's functions that a thread waits in, innermost first.
pub(super) fn kernel_stack(pid: u32, tid: u32) -> Vec<String> {
    proc::kernel_stack(&task(pid, tid))
        .iter()
        .map(|name| printable::text(name.as_bytes()).into_owned())
        .collect()
}

/// Returns the numbers of a process's threads.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    proc::threads(Pid(pid))
        .into_iter()
        .map(|thread| thread.0)
        .collect()
}

/// Returns a thread's name, with unprintable bytes escaped.
pub(super) fn name(pid: u32, tid: u32) -> Option<String> {
    raw_name(pid, tid).map(|name| printable::text(&name).into_owned())
}

/// Returns the words with which the titles at the start and at the end of a window begin: what
/// follows (`idle`, `UPDATE waiting`) is only true for a moment. `None` if there are none.
pub(super) fn lasting_title(before: &str, after: &str) -> Option<String> {
    let words = before.split(' ').zip(after.split(' '));
    let lasting: Vec<&str> = words
        .take_while(|(before, after)| before == after)
        .map(|(word, _)| word)
        .collect();
    (!lasting.is_empty()).then(|| lasting.join(" "))
}

/// Returns a thread's name as the kernel has it.
pub(super) fn raw_name(pid: u32, tid: u32) -> Option<Vec<u8>> {
    proc::name(&task(pid, tid))
}

fn task(pid: u32, tid: u32) -> PathBuf {
    proc::task(Pid(pid), Pid(tid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_title_that_changes_is_left_out() {
        let of = |before, after| lasting_title(before, after);
        let idle = "app app [local] idle";
        assert_eq!(of(idle, idle).as_deref(), Some(idle));
        assert_eq!(
            of(idle, "app app [local] UPDATE waiting").as_deref(),
            Some("app app [local]")
        );
        assert_eq!(of("walwriter", "checkpointer"), None);
    }

    #[test]
    fn a_call_is_a_number_or_none() {
        assert_eq!(call("202 0x7f 0x0 0x0\n"), Some(202));
        assert_eq!(call("-1 0x7ffe 0x7f\n"), Some(SLOT_NONE));
        assert_eq!(call("running\n"), None);
        assert_eq!(call(""), None);
    }
}
