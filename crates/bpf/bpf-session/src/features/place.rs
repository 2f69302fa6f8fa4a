//! Places in our own program, so that trials attach to no other process.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use elf::ProcAddr;

/// Path of our own program, which the kernel follows for us.
pub(super) const PROGRAM: &str = host::proc::OWN_PROGRAM;

/// Semaphore like a USDT probe's. It is initially not 0: otherwise it would be in `.bss`, which the
/// file does not contain.
static SEMAPHORE: AtomicU16 = AtomicU16::new(1);
/// Lock held while a trial uses the semaphore.
static TRIAL_LOCK: Mutex<()> = Mutex::new(());

/// Serves as the probed function. It never runs.
#[inline(never)]
fn marker() {
    std::hint::black_box(());
}

/// Serves as the function probed with the semaphore: at one place the kernel takes probes with a
/// semaphore or without, not both at once, even for different processes. It never runs, and differs
/// from the other function, so that they are not merged.
#[inline(never)]
fn guarded() {
    std::hint::black_box(SEMAPHORE.load(Ordering::Relaxed));
}

/// Offsets in the file of our program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnPlaces {
    /// Place without a semaphore.
    pub(super) function: u64,
    /// Place with a semaphore.
    pub(super) guarded: u64,
    /// Semaphore.
    pub(super) semaphore: u64,
}

impl OwnPlaces {
    pub(super) fn find() -> io::Result<Self> {
        let maps = host::proc::maps(&host::proc::own_folder())?;
        let program = std::fs::read_link(Path::new(PROGRAM))?;
        let offset = |address: usize| {
            let mapping = maps
                .all()
                .iter()
                .find(|mapping| mapping.to_offset(ProcAddr(address as u64)).is_some())?;
            let is_ours = mapping.file().is_some_and(|file| program == file);
            mapping
                .to_offset(ProcAddr(address as u64))
                .filter(|_| is_ours)
                .map(|offset| offset.0)
        };
        let missing = || io::Error::other("/proc/self/maps does not list the program");
        let function = offset(marker as *const () as usize).ok_or_else(missing)?;
        let guarded = offset(guarded as *const () as usize).ok_or_else(missing)?;
        let semaphore = offset(std::ptr::from_ref(&SEMAPHORE).addr()).ok_or_else(missing)?;
        Ok(Self {
            function,
            guarded,
            semaphore,
        })
    }
}

/// Exclusive access to the semaphore.
pub(super) struct Semaphore {
    counter: &'static AtomicU16,
    _only_one: MutexGuard<'static, ()>,
}

impl Semaphore {
    pub(super) fn hold() -> Self {
        Self {
            counter: &SEMAPHORE,
            _only_one: TRIAL_LOCK.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    pub(super) fn value(&self) -> u16 {
        self.counter.load(Ordering::SeqCst)
    }
}
