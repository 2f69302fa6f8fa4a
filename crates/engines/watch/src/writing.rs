//! Writer thread: writes captures, judges them and prints the lines, with a lower priority, since
//! the trace is followed meanwhile.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use capture::{CaptureSummary, EventsWriter, Meta, RingSlice, RingsWriter};
use capture_recorder::Folder;
use objects::ObjectSpec;
use observer::Observer;
use scene::{BootNanos, Experience};
use text::printable::{self, path as printable};
use text::utc;
use timeline::judge::{CaptureFindings, judge, learn};
use trace_source::FileSource;
use trace_source::captures::{self, KERNEL, OBJECTS, RINGS, slow_name};
use whole_file::sync_folder;

use super::kernel::{EventCounts, EventSlice};
use super::line::Line;
use super::sample::Sample;
use super::shelf::CaptureStore;
use super::window::{Incident, MissedRequests, Window};

/// Capture to write.
pub(crate) struct Job {
    pub(crate) window: Window,
    pub(crate) missed: MissedRequests,
    pub(crate) rings: RingSlice,
    pub(crate) events: Option<EventSlice>,
    pub(crate) objects: String,
    /// Metadata as far as it is known before.
    pub(crate) meta: Meta,
    /// Kind of the request, if its capture does not show it.
    pub(crate) kind: String,
    /// Time up to which the kernel's events have come.
    pub(crate) known_until: BootNanos,
    /// Requested length of the time before the request, in nanoseconds.
    pub(crate) before: u64,
}

/// Task of the thread.
enum Task {
    /// Write a capture.
    Write(Box<Job>),
    /// Learn from a sample.
    Learn(Box<Sample>),
}

/// Result of a job.
pub(crate) struct JobResult {
    /// True if there is a capture.
    pub(crate) is_written: bool,
    pub(crate) failed: Option<anyhow::Error>,
    /// Error of printing the line: nobody reads them.
    pub(crate) unheard: Option<anyhow::Error>,
}

/// Handle of the thread.
pub(crate) struct Writer {
    tasks: Option<Sender<Task>>,
    done: Receiver<JobResult>,
    waiting: usize,
    is_learning: Arc<AtomicBool>,
}

/// Destination of lines; its error means that nobody reads them.
pub(crate) type Print = Box<dyn FnMut(&str) -> std::io::Result<()> + Send>;

/// Data with which the thread works.
pub(crate) struct WriterContext {
    pub(crate) shelf: CaptureStore,
    pub(crate) source: FileSource,
    pub(crate) specs: Vec<ObjectSpec>,
    pub(crate) pid: u32,
    pub(crate) json: bool,
    /// Destination of the lines.
    pub(crate) print: Print,
    pub(crate) observer: Observer,
    /// Usual lengths of stages.
    pub(crate) experience: Experience,
}

impl Writer {
    pub(crate) fn start(mut desk: WriterContext) -> anyhow::Result<Self> {
        let (tasks, to_do) = channel::<Task>();
        let is_learning = Arc::new(AtomicBool::new(false));
        let learns = Arc::clone(&is_learning);
        let (sender, done) = channel();
        let work = move || {
            // Without permission for that, it competes for a CPU.
            let _ = sys::sched::lower_priority();
            for task in to_do {
                match task {
                    Task::Write(job) => {
                        if sender.send(desk.work(*job)).is_err() {
                            break;
                        }
                    }
                    Task::Learn(sample) => {
                        desk.learn(*sample);
                        learns.store(false, Ordering::Release);
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("captures".into())
            .spawn(work)?;
        Ok(Self {
            tasks: Some(tasks),
            done,
            waiting: 0,
            is_learning,
        })
    }

    /// Returns the number of captures that are not written yet.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn hand_over(&mut self, job: Job) {
        // The sender is there until `finish`.
        if let Some(tasks) = &self.tasks
            && tasks.send(Task::Write(Box::new(job))).is_ok()
        {
            self.waiting += 1;
        }
    }

    /// Returns true if it has a sample to learn from.
    pub(crate) fn is_learning(&self) -> bool {
        self.is_learning.load(Ordering::Acquire)
    }

    /// Hands a sample to learn from to the thread.
    pub(crate) fn learn(&mut self, sample: Sample) {
        self.is_learning.store(true, Ordering::Release);
        let _ = self
            .tasks
            .as_ref()
            .map(|tasks| tasks.send(Task::Learn(Box::new(sample))));
    }

    /// Returns the next result, if there is one.
    pub(crate) fn done(&mut self) -> Option<JobResult> {
        match self.done.try_recv() {
            Ok(done) => {
                self.waiting -= 1;
                Some(done)
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// Waits for the captures that are still being written. The thread may go on with a sample
    /// until the process ends: it learns for captures that will not come, and on a busy CPU that
    /// would take seconds.
    pub(crate) fn finish(mut self) -> Vec<JobResult> {
        drop(self.tasks.take());
        (0..self.waiting)
            .map_while(|_| self.done.recv().ok())
            .collect()
    }
}

impl WriterContext {
    /// Learns usual lengths. A sample that can't be read, which would be a mistake of ours, teaches
    /// nothing.
    fn learn(&mut self, sample: Sample) {
        self.observer.step();
        let _ = sample
            .read(&self.source)
            .and_then(|reader| learn(reader, &self.specs, &mut self.experience, &self.observer));
    }

    fn work(&mut self, job: Job) -> JobResult {
        self.observer.step();
        // Requests that end together are in one capture: no two have one name.
        let at = utc_of(job.window.subject.end);
        let name = slow_name(at, self.pid);
        let (case, more, missed) = (job.window.subject, job.window.more, job.missed);
        let short = job.short();
        let slots = job.rings.lost;
        let kind = job.kind.clone();
        let written = self.write(job, &name);
        let (folder, lost, failed) = match written {
            Ok(Some((written, folder))) => {
                let path = self.shelf.dir().join(&name);
                (Ok((path, folder)), (slots, written.lost), None)
            }
            Ok(None) => (
                Err("it would have more bytes than --max-bytes".to_owned()),
                (0, 0),
                None,
            ),
            Err(error) => (
                Err(printable::text(format!("{error:#}").as_bytes()).into_owned()),
                (0, 0),
                Some(error),
            ),
        };
        let CaptureFindings {
            request: judged,
            away,
        } = folder.as_ref().map_or_else(
            |_| CaptureFindings::default(),
            |(dir, _)| self.judge(dir, &case),
        );
        let is_written = folder.is_ok();
        let folder = folder.map(|(dir, folder)| {
            // Until now it was read here.
            note_if_kept(folder.hand_over(), &dir, &self.observer);
            printable(&dir)
        });
        let (length, is_open) = (case.length(), case.reason.is_open());
        let away_since = case.reason.slow().is_none().then_some(case.begin);
        let line = Line {
            at,
            away_since,
            away,
            judged,
            length,
            kind,
            is_open,
            more,
            missed,
            lost,
            short,
            folder,
        };
        let line = if self.json { line.json() } else { line.text() };
        JobResult {
            is_written,
            failed,
            unheard: (self.print)(&line).err().map(Into::into),
        }
    }

    /// Writes a capture under another name, and renames it when it is complete; `None` if there is
    /// no room for it.
    fn write(&self, job: Job, name: &str) -> anyhow::Result<Option<(EventCounts, Folder)>> {
        let bytes = job.rings.bytes()
            + job.events.as_ref().map_or(0, EventSlice::bytes)
            + job.objects.len() as u64;
        if !self.shelf.make_room(bytes)? {
            return Ok(None);
        }
        let (partial, whole) = self.shelf.places(name);
        let written = self.fill(job, &partial);
        let placed = written.and_then(|written| {
            fs::rename(&partial, &whole)?;
            // The capture is there, even if the disk keeps its name later.
            let _ = sync_folder(self.shelf.dir());
            Ok(written)
        });
        match placed {
            Ok(written) => Ok(Some(written)),
            Err(error) => {
                // A folder that can't be removed is removed later, when it is old.
                let _ = partial
                    .file_name()
                    .and_then(|name| name.to_str())
                    .map(|name| self.shelf.remove(name));
                Err(error)
            }
        }
    }

    fn fill(&self, job: Job, partial: &Path) -> anyhow::Result<(EventCounts, Folder)> {
        let Job {
            window,
            rings,
            events,
            objects,
            mut meta,
            known_until,
            ..
        } = job;
        let has_kernel = events.is_some();
        let until = window.until.max(rings.until);
        let what = if window.subject.reason.slow().is_some() {
            "a slow request"
        } else {
            captures::AWAY
        };
        let folder = Folder::create(Some(partial), self.pid)?;
        let mut stream = RingsWriter::begin(folder.file(RINGS)?)?;
        rings.write(&self.source, &mut stream)?;
        self.observer.step();
        let (mut written, mut bytes) = (EventCounts::default(), stream.bytes());
        stream.finish()?.sync_data()?;
        if let Some(events) = events {
            let mut stream = EventsWriter::begin(folder.file(KERNEL)?)?;
            written = events.write(window.from, &mut stream)?;
            bytes += stream.bytes();
            stream.finish()?.sync_data()?;
        }
        if !objects.is_empty() {
            let mut file = folder.file(OBJECTS)?;
            file.write_all(objects.as_bytes())?;
            file.sync_data()?;
            bytes += objects.len() as u64;
        }
        meta.end = Some(CaptureSummary {
            at: capture::Timestamp {
                utc: utc_text(until),
                boot_nanos: until.0,
            },
            why: format!("dptrace watch: {what}"),
            records: rings.records,
            slots_lost: rings.lost,
            events: written.events,
            events_lost: written.lost,
            events_until_boot_nanos: (has_kernel && until > known_until).then_some(known_until.0),
            object_lines: objects.lines().count() as u64,
            bytes,
            ..CaptureSummary::default()
        });
        folder.write_meta(&meta)?;
        Ok((written, folder))
    }

    /// Judges the request and the times away of a capture; empty if the capture can't be read,
    /// which would be a mistake of ours.
    fn judge(&mut self, dir: &Path, case: &Incident) -> CaptureFindings {
        let wanted = case.reason.slow().map(|slow| slow.wanted);
        judge(
            dir,
            &self.specs,
            wanted,
            &mut self.experience,
            &self.observer,
        )
        .unwrap_or_default()
    }
}

/// Notes that a folder could not be given to whoever ran sudo.
pub(crate) fn note_if_kept(given: io::Result<()>, dir: &Path, observer: &Observer) {
    if let Err(error) = given {
        observer.note(&format!("{} remains root's: {error}", printable(dir)));
    }
}

impl Job {
    /// Returns the time before the request that the capture has, in nanoseconds; `None` if it is as
    /// much as asked for.
    fn short(&self) -> Option<u64> {
        let begin = self.window.subject.begin;
        let since = self
            .rings
            .since
            .max(self.events.as_ref().map_or(BootNanos(0), EventSlice::since));
        let there = begin.0.saturating_sub(since.0);
        (there < self.before).then_some(there)
    }
}

/// Returns a time of the kernel's clock in nanoseconds since 1970.
fn utc_of(at: BootNanos) -> u64 {
    sys::clock::real_nanos()
        .saturating_sub(sys::clock::boot_nanos())
        .saturating_add(at.0)
}

pub(crate) fn utc_text(at: BootNanos) -> String {
    utc::text(utc_of(at).into())
}
