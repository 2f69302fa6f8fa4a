//! Tables by the minute, for SQL: those of `dptrace export` that can be filled from the store.
//!
//! A thread of its own writes them, so that a slow disk holds up nothing else. Rows that can't be
//! written are counted and reported once; the next minute is tried again.

mod rows;
mod shelf;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tables::{Row as _, Table};

use super::minute::Minute;
use super::store::Shared;
use shelf::TableStore;

/// Tables that are written.
pub(crate) const WRITTEN: [&Table; 4] = [
    &tables::rows::StageHistogram::TABLE,
    &tables::rows::ThreadBudget::TABLE,
    &tables::rows::Request::TABLE,
    &tables::rows::RequestStage::TABLE,
];
/// Limit on the minutes that wait for a slow disk.
const MAX_QUEUED_MINUTES: usize = 2;
/// Time limit for writing the last minute.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Rows of each of the tables [`WRITTEN`].
pub(crate) type Rows = [u64; WRITTEN.len()];

/// Numbers of rows that were written, and that could not be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCounts {
    pub(crate) rows: Rows,
    pub(crate) lost: Rows,
}

/// Place of the tables.
#[derive(Clone, Debug)]
pub struct Place {
    /// Folder of all tables.
    pub dir: PathBuf,
    /// Name of the host.
    pub host: String,
    /// Limit in bytes beyond which the oldest files are removed.
    pub keep_bytes: u64,
}

/// Handle of the writer of minutes.
pub(crate) struct Tables {
    sender: SyncSender<Minute>,
    thread: JoinHandle<()>,
    shared: Arc<Shared>,
}

/// Writer of minutes, on its thread.
struct Writer {
    shelf: TableStore,
    source: rows::Source,
    shared: Arc<Shared>,
    /// Reason why the last minute could not be written, if so.
    failed: Option<String>,
}

impl Tables {
    /// Starts the writer. `run` is the name of this run among all of this host.
    ///
    /// # Errors
    ///
    /// Fails if the folder can't be created or read, or if another `dptrace serve` writes to it.
    pub(crate) fn start(place: &Place, run: String, shared: Arc<Shared>) -> anyhow::Result<Self> {
        let shelf = TableStore::open(place)?;
        let source = rows::Source {
            host: place.host.clone(),
            run,
            requests: 0,
        };
        let mut writer = Writer {
            shelf,
            source,
            shared: Arc::clone(&shared),
            failed: None,
        };
        let (sender, minutes) = sync_channel::<Minute>(MAX_QUEUED_MINUTES);
        let thread = std::thread::Builder::new()
            .name("tables".into())
            .spawn(move || minutes.iter().for_each(|minute| writer.write(&minute)))
            .context("starting a thread")?;
        Ok(Self {
            sender,
            thread,
            shared,
        })
    }

    /// Hands a minute to the writer. If the disk is too slow, it is lost.
    pub(crate) fn write(&self, minute: Minute) {
        match self.sender.try_send(minute) {
            Ok(()) => {}
            Err(TrySendError::Full(minute) | TrySendError::Disconnected(minute)) => {
                self.shared
                    .observer
                    .note("tables: the disk is too slow: one minute is lost");
                if let Some(written) = &mut self.shared.lock().written {
                    let rows = rows::count(&minute);
                    written
                        .lost
                        .iter_mut()
                        .zip(rows)
                        .for_each(|(lost, rows)| *lost += rows);
                }
            }
        }
    }

    /// Waits until all is written, if that does not take long.
    pub(crate) fn finish(self) {
        let Self { sender, thread, .. } = self;
        drop(sender);
        let until = Instant::now() + SHUTDOWN_TIMEOUT;
        while !thread.is_finished() && Instant::now() < until {
            self.shared.observer.step();
            std::thread::sleep(Duration::from_millis(5));
        }
        if !thread.is_finished() {
            self.shared
                .observer
                .note("tables: the disk is too slow: the last minute is lost");
        }
    }
}

impl Writer {
    fn write(&mut self, minute: &Minute) {
        let (mut rows, mut lost) = (Rows::default(), Rows::default());
        let mut failed = None;
        for (at, all) in rows::count(minute)
            .into_iter()
            .enumerate()
            .filter(|(_, all)| *all > 0)
        {
            let written = self.shelf.write(at, minute.begin.cast_signed(), |part| {
                self.source.write(at, minute, part)
            });
            match written {
                Ok(()) => rows[at] = all,
                Err(error) => {
                    lost[at] = all;
                    failed = Some(self.shared.observer.explain(&error));
                }
            }
        }
        self.source.requests += minute.slowest.len() as u64;
        // Sums without room have no row.
        lost[1] += minute.left_out;
        if let Some(problem) = self.shelf.tidy_up() {
            failed.get_or_insert(problem);
        }
        self.report(failed);
        if let Some(written) = &mut self.shared.lock().written {
            written
                .rows
                .iter_mut()
                .zip(rows)
                .for_each(|(sum, rows)| *sum += rows);
            written
                .lost
                .iter_mut()
                .zip(lost)
                .for_each(|(sum, lost)| *sum += lost);
        }
    }

    /// Reports a failure, or its end, if that is new.
    fn report(&mut self, failed: Option<String>) {
        match &failed {
            Some(why) if self.failed.is_none() => {
                self.shared.observer.note(&format!(
                    "tables: {why}; what can't be written is counted in \
                     dptrace_table_rows_lost_total, and the next minute is tried again"
                ));
            }
            None if self.failed.is_some() => self.shared.observer.note("tables are written again"),
            _ => {}
        }
        self.failed = failed;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kernel_delay::TimeState;

    use super::*;
    use crate::limits::Limits;
    use crate::minute::TimeKey;

    fn shared() -> Arc<Shared> {
        let limits = Limits {
            connections: 1,
            with_stages: 1,
            threads: 1,
            targets: 1,
            cpus: 1,
            forget: 3,
        };
        Arc::new(Shared::new(
            limits,
            0,
            true,
            ("", ""),
            observer::Observer::silent(),
        ))
    }

    fn writer(dir: &Path, shared: &Arc<Shared>) -> Writer {
        let place = Place {
            dir: dir.to_owned(),
            host: "h".into(),
            keep_bytes: u64::MAX,
        };
        let source = rows::Source {
            host: "h".into(),
            run: "serve".into(),
            requests: 0,
        };
        let shelf = TableStore::open(&place).unwrap();
        Writer {
            shelf,
            source,
            shared: Arc::clone(shared),
            failed: None,
        }
    }

    /// Returns a minute with one row, and one that was left out.
    fn minute() -> Minute {
        let doing = TimeKey {
            pid: 1,
            tid: 2,
            thread: "t".into(),
            place: TimeState::User,
            by: String::new(),
        };
        let (times, stages, slowest) = (Vec::new(), Vec::new(), Vec::new());
        let threads = vec![(doing, 3)];
        Minute {
            begin: 0,
            times,
            stages,
            slowest,
            threads,
            left_out: 1,
        }
    }

    /// Checks that a disk on which nothing can be written costs only the rows.
    #[test]
    fn failed_writes_are_counted() {
        let temp = tempfile::tempdir().unwrap();
        let shared = shared();
        let mut writer = writer(temp.path(), &shared);
        let minute = minute();
        let obstacle = temp.path().join("thread_budgets");
        std::fs::write(&obstacle, "").unwrap();
        writer.write(&minute);
        assert!(
            writer
                .failed
                .as_ref()
                .is_some_and(|why| why.contains("thread_budgets")),
            "{:?}",
            writer.failed
        );
        std::fs::remove_file(&obstacle).unwrap();
        writer.write(&minute);
        assert!(writer.failed.is_none());
        let written = shared.lock().written.unwrap();
        assert_eq!((written.rows, written.lost), ([0, 1, 0, 0], [0, 3, 0, 0]));
    }
}
