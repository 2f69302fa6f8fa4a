//! Signals that are noted, to be looked at later.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signals that came, as bits.
static CAME: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(signal: libc::c_int) {
    CAME.fetch_or(1 << (signal & 63), Ordering::Relaxed);
}

/// From now on notes this signal instead of what it does by itself.
pub fn catch(signal: i32) -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: all zeros is a `sigaction` with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler only changes an atomic number; the action lives until the call is done.
    let done = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether this signal has come since it was last asked.
pub fn take(signal: i32) -> bool {
    let bit = 1 << (signal & 63);
    CAME.fetch_and(!bit, Ordering::Relaxed) & bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_noted_once() {
        catch(libc::SIGUSR2).unwrap();
        assert!(!take(libc::SIGUSR2));
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR2).unwrap();
        // It is our own, so it has come when the call returns; but maybe on another thread.
        let came = (0..1000).any(|_| {
            std::thread::yield_now();
            take(libc::SIGUSR2)
        });
        assert!(came);
        assert!(!take(libc::SIGUSR2));
    }
}
