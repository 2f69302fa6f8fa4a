//! Sources of a capture while it goes on, each with its stream.

use crate::clocks::Clocks;
use crate::ending::{ShutdownResult, sync};
use crate::folder::Folder;
use crate::kernel::KernelRecorder;
use crate::objects::ObjectRecorder;
use crate::recording::{
    BATCH_TIMEOUT, LIVENESS_INTERVAL, RESERVED_LAST, SIZE_LIMIT_REACHED, STARTUP_TIMEOUT,
};
use crate::rings::RingRecorder;
use crate::summary::{self, Result as Came};
use crate::{Limits, Parts, facts};
use host::Watch;
use observer::{Observer, Progress};
use scene::BootNanos;
use spdk_trace::Lcore;
use std::collections::BTreeSet;
use std::fs::File;
use std::time::{Duration, Instant};
use sys::clock::boot_nanos;
use trace_source::captures::{KERNEL, OBJECTS, RINGS};

/// Parts that are being written.
pub(super) struct ActiveParts {
    rings: Option<RingRecorder>,
    kernel: Option<KernelRecorder>,
    objects: Option<ObjectRecorder>,
    /// Clocks, read if there is a trace: its ticks are put on the kernel's clock.
    clocks: Option<Clocks>,
    observer: Observer,
    /// Progress display; `None` as soon as the parts end.
    progress: Option<Progress>,
    /// End of the capture, if limited.
    until: Option<BootNanos>,
    /// Files of all parts, to cut both streams if writing fails.
    streams: [Option<File>; 3],
}

impl ActiveParts {
    pub(super) fn begin(
        parts: Parts,
        folder: &Folder,
        has_room: bool,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let mut streams = [const { None }; 3];
        let mut open = |index: usize, name: &str| -> anyhow::Result<File> {
            let file = folder.file(name)?;
            streams[index] = Some(file.try_clone()?);
            Ok(file)
        };
        // The kernel's events start before the first record, so that no record lacks them.
        let kernel = parts
            .kernel
            .map(|kernel| kernel.follow(open(1, KERNEL)?))
            .transpose()?;
        let mut started_clocks = None;
        let rings = parts.rings.map(|rings| {
            let read_both = rings.clock();
            let mut rings = rings.follow(open(0, RINGS)?, has_room)?;
            let (started, first) = Clocks::start(read_both)?;
            rings.anchor(first)?;
            started_clocks = Some(started);
            anyhow::Ok(rings)
        });
        let rings = rings.transpose()?;
        let objects = parts
            .objects
            .map(|objects| anyhow::Ok(objects.follow(open(2, OBJECTS)?)));
        let objects = objects.transpose()?;
        folder.sync()?;
        Ok(Self {
            rings,
            kernel,
            objects,
            clocks: started_clocks,
            observer: observer.clone(),
            progress: Some(Progress::new(observer)),
            until: None,
            streams,
        })
    }

    /// Writes until every source has delivered, or is late: a capture killed after that has all
    /// parts. Returns the reason to stop, if there is one.
    pub(super) fn until_it_flows(&mut self, limits: Limits) -> anyhow::Result<Option<String>> {
        let (started, most) = (Instant::now(), limits.most());
        let flows = |this: &Self| {
            this.rings
                .as_ref()
                .is_none_or(|rings| rings.reached > BootNanos(0))
                && this.kernel.as_ref().is_none_or(KernelRecorder::flows)
        };
        while !flows(self)
            && started.elapsed() < STARTUP_TIMEOUT
            && !self.observer.is_stop_requested()
        {
            if let Some(why) = self.step(most)? {
                return Ok(Some(why));
            }
        }
        let nanos = |after: Duration| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        self.until = limits
            .after
            .map(|after| BootNanos(boot_nanos().saturating_add(nanos(after))));
        // This holds however late this thread gets to its end.
        if let Some((kernel, until)) = self.kernel.as_mut().zip(self.until) {
            kernel.end_at(until);
        }
        Ok(None)
    }

    /// Returns true if everything until the planned end has arrived.
    fn is_over(&self) -> bool {
        let Some(until) = self.until else {
            return false;
        };
        let has_records = |rings: &RingRecorder| rings.is_idle || rings.reached >= until;
        BootNanos(boot_nanos()) >= until && self.rings.as_ref().is_none_or(has_records)
    }

    /// Writes until there is a reason to stop, and returns it.
    pub(super) fn until_end(
        &mut self,
        watch: &Watch,
        limits: Limits,
        mut on_tick: impl FnMut(&BTreeSet<Lcore>),
    ) -> anyhow::Result<String> {
        let (mut asked, most) = (Instant::now(), limits.most());
        loop {
            if let Some(why) = self.step(most)? {
                return Ok(why);
            }
            if self.observer.is_stop_requested() {
                return Ok("stopped".to_owned());
            }
            if self.is_over() {
                return Ok("the time is up".to_owned());
            }
            if asked.elapsed() >= LIVENESS_INTERVAL {
                asked = Instant::now();
                if let Some(why) = watch.ended() {
                    return Ok(why);
                }
                self.rings.iter().for_each(|rings| on_tick(&rings.wrote));
            }
            self.show(limits);
        }
    }

    /// Writes the next batch of each part; returns the reason to stop, if there is one.
    fn step(&mut self, most: u64) -> anyhow::Result<Option<String>> {
        let before = self.bytes();
        if let Some(rings) = &mut self.rings {
            let batch = rings.next(BATCH_TIMEOUT);
            rings.is_idle = batch.is_none();
            if let Some(batch) = batch {
                if let Some(error) = &batch.failed {
                    return Ok(Some(format!("the trace can no longer be read: {error}")));
                }
                if before + batch.copied.bytes() as u64 > most {
                    return Ok(Some(SIZE_LIMIT_REACHED.to_owned()));
                }
                rings.write(batch)?;
            }
            rings.refresh(false)?;
            for anchor in self.clocks.iter_mut().flat_map(Clocks::next) {
                rings.anchor(anchor)?;
            }
            rings.flush()?;
        }
        let room = most.saturating_sub(self.bytes());
        if let Some(kernel) = &mut self.kernel
            && !kernel.next(
                if self.rings.is_some() {
                    Duration::ZERO
                } else {
                    BATCH_TIMEOUT
                },
                room,
            )?
        {
            return Ok(Some(SIZE_LIMIT_REACHED.to_owned()));
        }
        if let Some(objects) = &mut self.objects {
            objects.next()?;
            if let Some(clocks) = &mut self.clocks {
                clocks.hits(objects.take_hits());
            }
        }
        Ok((self.bytes() > most).then(|| SIZE_LIMIT_REACHED.to_owned()))
    }

    /// Shows the elapsed time, and the amount captured.
    fn show(&mut self, limits: Limits) {
        let bytes = self.bytes();
        let Self {
            progress, rings, ..
        } = self;
        let Some(progress) = progress else { return };
        progress.show(|since| {
            let of = limits
                .after
                .map_or_else(String::new, |after| match after.subsec_nanos() {
                    0 => format!(" of {} s", after.as_secs()),
                    _ => format!(" of {:.1} s", after.as_secs_f64()),
                });
            let rings = rings.as_ref().map_or_else(String::new, |rings| {
                summary::records(rings.records, rings.lost) + ", "
            });
            format!(
                "capturing: {} s{of}, {rings}{}",
                since.as_secs(),
                screen::size(bytes)
            )
        });
    }

    fn bytes(&self) -> u64 {
        let rings = self.rings.as_ref().map_or(0, |rings| rings.writer.bytes());
        let kernel = self.kernel.as_ref().map_or(0, KernelRecorder::bytes);
        rings
            + kernel
            + self
                .objects
                .as_ref()
                .map_or(0, |objects| objects.written.bytes)
    }

    /// Ends all parts, the trace first: the kernel's events until its last record are needed.
    /// Writes the rest, if `works`.
    pub(super) fn finish(mut self, works: bool, limits: Limits) -> (Came, Option<anyhow::Error>) {
        drop(self.progress.take());
        let mut ending = ShutdownResult {
            works,
            ..ShutdownResult::default()
        };
        // Half of it is for the kernel's events, which come later than the records of the same
        // time.
        let room = limits
            .max_bytes
            .map(|most| most.saturating_sub(self.bytes()) / 2);
        if let Some(rings) = self.rings.take() {
            ending.end_trace(
                rings,
                self.streams[0].as_ref(),
                (self.clocks.as_mut(), room),
                self.until,
                &self.observer,
            );
        }
        ending.end.at = facts::now();
        if let Some(mut kernel) = self.kernel.take() {
            if let Some(until) = self.until {
                // All sources end at one time, however late this one is stopped.
                let until = BootNanos(until.max(ending.reached).0.min(ending.end.at.boot_nanos));
                kernel.end_at(until);
                ending.end.at = facts::at(until);
            }
            let most = limits
                .max_bytes
                .map_or(u64::MAX, |most| most - most / RESERVED_LAST);
            let room = most.saturating_sub(ending.end.bytes + kernel.bytes() + self.bytes());
            ending.end_kernel(kernel, self.streams[1].as_ref(), room);
        }
        if let Some(mut objects) = self.objects.take() {
            if let Some(clocks) = &mut self.clocks {
                clocks.hits(objects.take_hits());
            }
            ending.end_objects(objects);
        }
        if let Some(clocks) = self.clocks.take() {
            ending.end.state_clock(&clocks.finish());
        }
        if ending.works
            && let Err(error) = sync(self.streams.into_iter().flatten().collect(), &self.observer)
        {
            ending.failed = ending.failed.or(Some(error.into()));
        }
        (
            Came {
                end: ending.end,
                pressure: ending.pressure,
                marks: ending.marks,
            },
            ending.failed,
        )
    }
}
