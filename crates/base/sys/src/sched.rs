//! The CPUs and the priority of the calling thread. Threads that it starts later inherit both.

use std::io;
use std::num::NonZeroU64;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

/// Returns the CPUs that the calling thread may run on; an error if the machine has more than
/// 1,024.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Restricts the calling thread to these CPUs.
pub fn run_on(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter()
        .filter(|&&cpu| cpu < CpuSet::MAX_CPU)
        .for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Nice value of the lowest priority.
const LOWEST: i32 = 19;

/// Gives the calling thread the lowest priority that still gets a share of a busy CPU (nice 19).
pub fn lowest_priority() -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None, LOWEST)?)
}

/// Gives the calling thread the usual priority (nice 0). Only the superuser may raise a lower one.
pub fn usual_priority() -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None, 0)?)
}

/// Gives a thread of this process the usual priority (nice 0) if it has the lowest one: see
/// [`usual_priority`].
pub fn raise_from_lowest(tid: u32) -> io::Result<()> {
    let tid = i32::try_from(tid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::NotFound)?;
    if rustix::process::getpriority_process(Some(tid))? == LOWEST {
        rustix::process::setpriority_process(Some(tid), 0)?;
    }
    Ok(())
}

/// Reduces the calling thread's share of a busy CPU to a third of that of usual threads (nice 5),
/// unless it has less already.
pub fn lower_priority() -> io::Result<()> {
    const NICE: i32 = 5;
    let nice = rustix::process::getpriority_process(None)?;
    if nice < NICE {
        Ok(rustix::process::setpriority_process(None, NICE)?)
    } else {
        Ok(())
    }
}

/// Makes the calling thread's sleeps end on time: the kernel otherwise extends them by up to 50
/// microseconds (`PR_SET_TIMERSLACK`, prctl(2)).
pub fn sleep_precisely() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

/// `struct sched_attr` (`include/uapi/linux/sched/types.h`), its first version of 48 bytes.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTR_SIZE: u32 = size_of::<SchedAttr>() as u32;

/// Makes the calling thread run as soon as it wakes, even if another one has just started: for a
/// thread that runs often and never for long. Requests slices of 0.1 ms (since Linux 6.12; ignored
/// before) and, if permitted, a higher priority (nice -10).
pub fn run_promptly() -> io::Result<()> {
    const SLICE_NANOS: u64 = 100_000;
    let nice = rustix::process::getpriority_process(None)?;
    set_slice(nice.min(-10), SLICE_NANOS).or_else(|_| set_slice(nice, SLICE_NANOS))
}

fn set_slice(nice: i32, runtime: u64) -> io::Result<()> {
    // `SCHED_OTHER` is 0.
    set(&SchedAttr {
        size: ATTR_SIZE,
        policy: 0,
        flags: 0,
        nice,
        priority: 0,
        runtime,
        deadline: 0,
        period: 0,
    })
}

/// Runs the calling thread with `SCHED_FIFO` at the lowest of its priorities: before all ordinary
/// threads, for as long as it wants. Tests use this to starve a CPU.
pub fn run_first() -> io::Result<()> {
    // `SCHED_FIFO` is 1.
    set(&SchedAttr {
        size: ATTR_SIZE,
        policy: 1,
        flags: 0,
        nice: 0,
        priority: 1,
        runtime: 0,
        deadline: 0,
        period: 0,
    })
}

fn set(attr: &SchedAttr) -> io::Result<()> {
    // SAFETY: the kernel reads `size` bytes of the struct, which lives until the call returns. 0 is
    // the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(attr), 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_put() {
        let ours = allowed_cpus().unwrap();
        assert!(!ours.is_empty());
        let thread = std::thread::spawn(move || {
            run_on(&ours[..1]).unwrap();
            sleep_precisely().unwrap();
            run_promptly().unwrap();
            lowest_priority().unwrap();
            (allowed_cpus().unwrap(), ours)
        });
        let (one, ours) = thread.join().unwrap();
        assert_eq!(one, ours[..1]);
        assert_eq!(
            allowed_cpus().unwrap(),
            ours,
            "other threads run where they did"
        );
    }
}
