//! Followed processes: each has a thread that reads its trace, and programs in the kernel that
//! account for its threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use host::{Pid, Watch, proc, user_file};
use objects::ObjectSpec;
use observer::Observer;
use sys::clock::boot_nanos;
use text::printable;
use trace_source::cpus;

use super::audit::Auditor;
use super::find::{Candidate, Identity};
use super::follow::{FollowTask, follow};
use super::kernel::{Kernel, Meter};
use super::store::Shared;

/// Time after which a trace that could not be read is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Time limit for a follower to end.
const FOLLOWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Options of following.
pub(crate) struct Setting {
    pub(crate) specs: Vec<ObjectSpec>,
    pub(crate) probes: bool,
    pub(crate) kernel: bool,
}

/// One followed process.
pub(crate) struct Target {
    pub(crate) identity: Identity,
    /// User of the process, unless it was named.
    user: Option<u32>,
    /// Name of the program.
    pub(crate) name: String,
    /// Name under which it is counted.
    process: String,
    watch: Watch,
    meter: Mutex<Option<Meter>>,
    trace: Mutex<TraceState>,
    /// True while a thread follows its trace, or begins to.
    follows: AtomicBool,
    /// True while records come.
    reads: AtomicBool,
    stop: Arc<AtomicBool>,
}

/// Trace of a process.
#[derive(Default)]
struct TraceState {
    path: Option<(PathBuf, u64)>,
    /// Time of the last attempt to follow it.
    tried: Option<Instant>,
    /// Reason why it is not followed.
    failed: Option<String>,
}

/// All followed processes.
pub(crate) struct Targets {
    setting: Setting,
    shared: Arc<Shared>,
    kernel: Kernel,
    auditor: Arc<Auditor>,
    all: Mutex<Vec<Arc<Target>>>,
    /// Start of this program, in nanoseconds since boot: earlier activity of processes does not
    /// count.
    begun: u64,
    is_full: AtomicBool,
}

/// State of a followed process, for the page.
pub(crate) struct TargetStatus {
    pub(crate) identity: Identity,
    pub(crate) name: String,
    pub(crate) path: Option<PathBuf>,
    pub(crate) reads: bool,
    pub(crate) is_accounted: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Targets {
    pub(crate) fn new(setting: Setting, shared: Arc<Shared>) -> Self {
        Self {
            setting,
            auditor: Arc::new(Auditor::new(Arc::clone(&shared))),
            shared,
            kernel: Kernel::default(),
            all: Mutex::default(),
            begun: boot_nanos(),
            is_full: AtomicBool::new(false),
        }
    }

    /// Begins to follow new processes, and lets go of those that have ended.
    pub(crate) fn update(self: &Arc<Self>, found: Vec<Candidate>) {
        let ended: Vec<Arc<Target>> = lock(&self.all)
            .iter()
            .filter(|target| target.watch.ended().is_some())
            .cloned()
            .collect();
        for target in ended {
            self.end(&target);
        }
        let mut left_out = 0;
        for found in found {
            let known = lock(&self.all)
                .iter()
                .find(|target| target.identity == found.process)
                .cloned();
            let target = match known {
                Some(target) => target,
                None if !self.make_place(&found) => {
                    left_out += 1;
                    continue;
                }
                None => match self.begin(&found) {
                    Some(target) => target,
                    None => continue,
                },
            };
            if let Some(trace) = found.trace {
                self.follow(&target, trace);
            }
        }
        self.shared.lock().targets_left_out = left_out;
        let pids = lock(&self.all)
            .iter()
            .map(|target| target.identity.pid)
            .collect();
        self.auditor.update(pids);
    }

    /// Makes a place for one more process: lets one go if none is free ([`gives_way`]). Returns
    /// false if none gives way.
    fn make_place(&self, found: &Candidate) -> bool {
        let (limit, all) = (self.shared.lock().limits.targets, lock(&self.all).clone());
        if all.len() < limit {
            return true;
        }
        let users: Vec<Option<u32>> = all.iter().map(|target| target.user).collect();
        let pid = found.process.pid;
        let Some(place) = gives_way(&users, found.user) else {
            if !self.is_full.swap(true, Ordering::Relaxed) {
                self.shared.observer.note(&format!(
                    "process {pid} is not followed: the limit --targets is reached"
                ));
            }
            return false;
        };
        let target = &all[place];
        self.let_go(target);
        self.shared.observer.note(&format!(
            "process {} ({}) gives up its slot to process {pid}",
            target.identity.pid, target.name
        ));
        true
    }

    /// Begins to follow a process; `None` if it has ended.
    fn begin(self: &Arc<Self>, found: &Candidate) -> Option<Arc<Target>> {
        let (identity, user) = (found.process, found.user);
        // It may have ended by now.
        let watch = Watch::new(identity.pid, std::iter::empty()).ok()?;
        let name = proc::program_name(Pid(identity.pid))?;
        let name = printable::text(&name).into_owned();
        let process = self.shared.lock().process(&name);
        let target = Arc::new(Target {
            identity,
            user,
            name,
            process,
            watch,
            meter: Mutex::default(),
            trace: Mutex::default(),
            follows: AtomicBool::new(false),
            reads: AtomicBool::new(false),
            stop: Arc::default(),
        });
        self.shared.observer.note(&format!(
            "process {} ({}) is followed",
            identity.pid, target.name
        ));
        lock(&self.all).push(Arc::clone(&target));
        if self.setting.kernel {
            let (targets, target) = (Arc::clone(self), Arc::clone(&target));
            spawn("kernel", &self.shared.observer, move || {
                targets.attach(&target);
            });
        }
        Some(target)
    }

    /// Attaches the programs for its threads.
    fn attach(&self, target: &Target) {
        match self
            .kernel
            .attach(target.identity.pid, &self.shared.observer)
        {
            Ok(meter) => *lock(&target.meter) = Some(meter),
            Err(error) if target.watch.ended().is_none() => {
                let pid = target.identity.pid;
                self.shared.observer.note(&format!(
                    "process {pid}: the time of its threads is not accounted for: {}",
                    self.shared.observer.explain(&error)
                ));
            }
            Err(_) => {}
        }
    }

    /// Begins to follow its trace, unless it is being followed.
    fn follow(self: &Arc<Self>, target: &Arc<Target>, trace: (PathBuf, u64)) {
        let mut state = lock(&target.trace);
        if target.follows.load(Ordering::Acquire) {
            if state.path.as_ref().is_some_and(|known| *known != trace) {
                // Another file of that name: the next look begins with it.
                target.stop.store(true, Ordering::Relaxed);
            }
            return;
        }
        if state
            .tried
            .is_some_and(|tried| tried.elapsed() < RETRY_INTERVAL)
        {
            return;
        }
        let is_first = state.path.is_none();
        state.path = Some(trace.clone());
        state.tried = Some(Instant::now());
        target.follows.store(true, Ordering::Release);
        target.stop.store(false, Ordering::Relaxed);
        drop(state);
        // In clock ticks of a hundredth of a second, on the boot clock (proc_pid_stat(5), field
        // 22).
        let is_new = target.identity.start.saturating_mul(10_000_000) > self.begun;
        let (targets, target) = (Arc::clone(self), Arc::clone(target));
        spawn("follower", &self.shared.observer, move || {
            targets.read(&target, &trace.0, is_first && is_new);
        });
    }

    /// Follows its trace until that ends.
    fn read(&self, target: &Target, path: &std::path::Path, from_beginning: bool) {
        let pid = target.identity.pid;
        // This thread and the reader, which inherits it.
        let place = cpus::keep_off(std::iter::once(pid), &self.shared.observer);
        place.give_way();
        let what = FollowTask {
            pid,
            path,
            process: &target.process,
            from_beginning,
            probes: self.setting.probes,
            is_prompt: place.has_room(),
            reads: &target.reads,
        };
        let result = follow(&what, &self.setting.specs, &self.shared, &target.stop);
        target.reads.store(false, Ordering::Release);
        if let (Err(error), None) = (result, target.watch.ended()) {
            let why = self.shared.observer.explain(&error);
            let mut state = lock(&target.trace);
            if state.failed.as_ref() != Some(&why) {
                self.shared.observer.note(&format!(
                    "process {pid}: its trace is not followed: {why}; this is tried again"
                ));
            }
            state.failed = Some(why);
        }
        target.follows.store(false, Ordering::Release);
    }

    /// Accounts for all threads up to now, if the last time was at least `at_least` ago.
    pub(crate) fn advance(&self, at_least: Duration) {
        let all = lock(&self.all).clone();
        for target in all {
            self.advance_one(&target, at_least);
        }
        self.auditor.advance(at_least);
    }

    fn advance_one(&self, target: &Target, at_least: Duration) {
        let mut meter = lock(&target.meter);
        let Some(own) = meter.as_mut() else { return };
        match own.advance(at_least) {
            Ok(None) => {}
            Ok(Some((advances, lost))) => {
                drop(meter);
                let mut store = self.shared.lock();
                store.account(&target.process, &advances);
                let counts = store.counts(&target.process);
                counts
                    .lost
                    .iter_mut()
                    .zip(lost)
                    .for_each(|(sum, lost)| *sum += lost);
            }
            Err(error) => {
                let pid = target.identity.pid;
                self.shared.observer.note(&format!(
                    "process {pid}: the time of its threads is no longer accounted for: {error:#}"
                ));
                *meter = None;
            }
        }
    }

    /// Lets go of a process that has ended, and reports that.
    fn end(&self, target: &Arc<Target>) {
        self.let_go(target);
        self.shared.observer.note(&format!(
            "process {} ({}) has ended",
            target.identity.pid, target.name
        ));
    }

    /// Lets go of a process.
    fn let_go(&self, target: &Arc<Target>) {
        self.advance_one(target, Duration::ZERO);
        target.stop.store(true, Ordering::Relaxed);
        *lock(&target.meter) = None;
        lock(&self.all).retain(|it| !Arc::ptr_eq(it, target));
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// Stops following all processes.
    pub(crate) fn stop(&self) {
        let all = lock(&self.all).clone();
        for target in &all {
            target.stop.store(true, Ordering::Relaxed);
        }
        let until = Instant::now() + FOLLOWER_TIMEOUT;
        while all
            .iter()
            .any(|target| target.follows.load(Ordering::Acquire))
            && Instant::now() < until
        {
            self.shared.observer.step();
            std::thread::sleep(Duration::from_millis(5));
        }
        self.auditor.stop();
    }

    /// Returns the state of each followed process.
    pub(crate) fn standing(&self) -> Vec<TargetStatus> {
        let all = lock(&self.all).clone();
        let standing = |target: &Arc<Target>| TargetStatus {
            identity: target.identity,
            name: target.name.clone(),
            path: lock(&target.trace)
                .path
                .as_ref()
                .map(|(path, _)| path.clone()),
            reads: target.reads.load(Ordering::Acquire),
            is_accounted: lock(&target.meter).is_some(),
        };
        all.iter().map(standing).collect()
    }
}

/// Returns the place of the process that gives way to one of the user `newcomer`; `None` if none
/// does. The last process of the user with most gives way, unless that is root or whoever runs this
/// program. It gives way to these two in any case, and to another user only if its own user has at
/// least two more. Otherwise anybody could take all places. A process that was named (`None`) never
/// gives way.
fn gives_way(users: &[Option<u32>], newcomer: Option<u32>) -> Option<usize> {
    let is_trusted = |user: &Option<u32>| user.is_none_or(user_file::is_trusted);
    let count = |user: &Option<u32>| users.iter().filter(|it| *it == user).count();
    let most = users
        .iter()
        .filter(|user| !is_trusted(user))
        .max_by_key(|user| count(user))?;
    let gives = is_trusted(&newcomer) || count(&newcomer) + 1 < count(most);
    users
        .iter()
        .rposition(|user| user == most)
        .filter(|_| gives)
}

/// Starts a thread; reports a failure.
pub(crate) fn spawn(name: &str, observer: &Observer, run: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(run) {
        observer.note(&format!("no thread can be started: {error}"));
    }
}

#[cfg(test)]
mod tests;
