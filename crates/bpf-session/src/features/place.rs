//! Places of our own program, for trials that attach to nobody else.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use elf::ProcAddr;

/// Our own program, as a path that the kernel follows for us.
pub(super) const PROGRAM: &str = host::proc::OWN_PROGRAM;

/// A semaphore as a USDT probe's. It is not 0 at first, or it would lie in memory that no file backs.
static SEMAPHORE: AtomicU16 = AtomicU16::new(1);
/// Trials change what the semaphore holds.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The function that is probed. It never runs.
#[inline(never)]
fn marker() {
    std::hint::black_box(());
}

/// Offsets in the file of our program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnPlaces {
    pub(super) function: u64,
    pub(super) semaphore: u64,
}

impl OwnPlaces {
    pub(super) fn find() -> io::Result<Self> {
        let maps = host::proc::maps(&host::proc::own_folder())?;
        let program = std::fs::read_link(Path::new(PROGRAM))?;
        let offset = |address: usize| {
            let mapping = maps.all().iter().find(|mapping| mapping.to_offset(ProcAddr(address as u64)).is_some())?;
            let is_ours = mapping.file().is_some_and(|file| program == file);
            mapping.to_offset(ProcAddr(address as u64)).filter(|_| is_ours).map(|offset| offset.0)
        };
        let missing = || io::Error::other("/proc/self/maps does not list the program");
        let function = offset(marker as *const () as usize).ok_or_else(missing)?;
        let semaphore = offset(std::ptr::from_ref(&SEMAPHORE).addr()).ok_or_else(missing)?;
        Ok(Self { function, semaphore })
    }
}

/// What the semaphore holds, while nobody else makes a trial with it.
pub(super) struct Semaphore {
    counter: &'static AtomicU16,
    _only_one: MutexGuard<'static, ()>,
}

impl Semaphore {
    pub(super) fn hold() -> Self {
        Self { counter: &SEMAPHORE, _only_one: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    pub(super) fn value(&self) -> u16 {
        self.counter.load(Ordering::SeqCst)
    }
}
