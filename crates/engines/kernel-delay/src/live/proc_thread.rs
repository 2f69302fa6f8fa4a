//! What `/proc` says of processes and their threads.

use std::path::PathBuf;

use host::proc::{self, Stat};
use host::{FilePlace, Pid};
use text::printable;

use crate::layout::{NUMBERED_SLOTS, SLOT_COMPAT, SLOT_NONE, SLOT_OTHER};

/// A thread, as it was when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ProcThread {
    /// proc_pid_stat(5), field 3.
    pub(super) state: char,
    /// proc_pid_syscall(5): the call that it is blocked in, as a slot.
    pub(super) call: Option<u32>,
    /// Whether it is frozen with its control group; false until that was asked for ([`ProcThread::look_if_frozen`]).
    pub(super) is_frozen: bool,
    /// proc_pid_stat(5), field 14.
    pub(super) user_ticks: u64,
    /// proc_pid_stat(5), field 15.
    pub(super) system_ticks: u64,
    /// Documentation/scheduler/sched-stats.rst: nanoseconds on a CPU.
    pub(super) ran: u64,
    /// proc_pid_stat(5), field 39: the CPU that it runs on, or ran on last.
    pub(super) cpu: u32,
}

/// The functions in which a thread waits while its control group is frozen: two of `kernel/signal.c`, of which compilers make one (what
/// else waits there is stopped, which is another state), and one of `kernel/freezer.c` for version 1.
const FREEZER: [&str; 3] = ["do_freezer_trap", "get_signal", "__refrigerator"];

/// A thread's state where it has ended, and where it is not there (proc_pid_stat(5), field 3).
const ENDED: [char; 3] = ['Z', 'X', '?'];

impl ProcThread {
    /// Reads a thread; of one that is gone nothing is known. The calls of a 32-bit program have numbers of their own.
    pub(super) fn read(pid: u32, tid: u32, is_32_bit: bool) -> Self {
        let folder = task(pid, tid);
        let stat = Stat::read(&folder).ok();
        let number = |field| stat.as_ref().and_then(|stat| stat.number(field)).unwrap_or(0);
        let call = call(&proc::system_call(&folder));
        Self {
            state: stat.as_ref().and_then(Stat::state).unwrap_or('?'),
            call: call.map(|slot| if is_32_bit && slot != SLOT_NONE { SLOT_COMPAT } else { slot }),
            is_frozen: false,
            user_ticks: number(14),
            system_ticks: number(15),
            ran: proc::ran(&folder).unwrap_or(0),
            cpu: number(39) as u32,
        }
    }

    /// Returns whether its call's name does not say what it waits for: nothing else can wake it, or it is in no call.
    pub(super) fn waits_for_unnamed(&self) -> bool {
        self.state == 'D' || (self.state == 'S' && self.call == Some(SLOT_NONE))
    }

    /// Looks whether the thread is frozen with its control group: whether it waits in one of [`FREEZER`].
    pub(super) fn look_if_frozen(&mut self, pid: u32, tid: u32) {
        self.is_frozen =
            ['S', 'D'].contains(&self.state) && FREEZER.contains(&proc::waits_in(&task(pid, tid)).as_str());
    }

    /// Whether it is gone, or a first thread that has ended before the others, of which a number is left.
    pub(super) fn has_ended(&self) -> bool {
        ENDED.contains(&self.state)
    }
}

/// Whether a process runs a 32-bit program: the fifth byte of an ELF file (gABI chapter 4, `EI_CLASS`).
pub(super) fn is_32_bit(pid: u32) -> bool {
    let head = FilePlace::at(&proc::exe(Pid(pid))).first_bytes(5);
    head.is_ok_and(|head| head == b"\x7fELF\x01")
}

/// `running`, or a number and arguments, or -1 where it is blocked in no call.
fn call(text: &str) -> Option<u32> {
    let number: i64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(match u32::try_from(number) {
        Ok(number) if number < NUMBERED_SLOTS => number,
        Ok(_) => SLOT_OTHER,
        Err(_) => SLOT_NONE,
    })
}

/// Returns the kernel's functions that a thread waits in, the innermost first.
pub(super) fn kernel_stack(pid: u32, tid: u32) -> Vec<String> {
    proc::kernel_stack(&task(pid, tid)).iter().map(|name| printable::text(name.as_bytes()).into_owned()).collect()
}

/// The numbers of a process's threads.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    proc::threads(Pid(pid)).into_iter().map(|thread| thread.0).collect()
}

/// Whether a number is that of another process than the one which began at this time of the boot clock, in nanoseconds; 0 where
/// the time is not known (proc_pid_stat(5), field 22).
pub(super) fn is_anothers(pid: u32, begun: u64) -> bool {
    let is_other = |ticks| ticks != begun / proc::TICK_NANOS;
    begun > 0 && host::system::has_boot_time() && proc::start_of_living(Pid(pid)).is_some_and(is_other)
}

/// A thread's name.
pub(super) fn name(pid: u32, tid: u32) -> Option<String> {
    raw_name(pid, tid).map(|name| printable::text(&name).into_owned())
}

/// A thread's name as the kernel has it.
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
    fn a_call_is_a_number_or_none() {
        assert_eq!(call("202 0x7f 0x0 0x0\n"), Some(202));
        assert_eq!(call("-1 0x7ffe 0x7f\n"), Some(SLOT_NONE));
        assert_eq!(call("running\n"), None);
        assert_eq!(call(""), None);
    }
}
