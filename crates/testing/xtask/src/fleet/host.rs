//! Tables of one host.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use metrics::bounds;
use tables::{TABLES, Table, TableWriter, hour_of, partition, rows};

use super::Planted;

/// 2026-11-23T06:00:00Z, in nanoseconds since 1970.
/// Nanoseconds in a minute.
const BEGIN: i64 = 1_795_413_600_000_000_000;
const MINUTE: i64 = 60_000_000_000;
/// Nanoseconds in a day.
const DAY: i64 = 24 * 60 * MINUTE;
/// Stages of a request with their medians in nanoseconds.
const STAGES: [(&str, u64); 8] = [
    ("TCP_REQ_NEW > TCP_REQ_NEED_BUFFER", 400),
    ("TCP_REQ_NEED_BUFFER > TCP_REQ_HAVE_BUFFER", 600),
    ("TCP_REQ_HAVE_BUFFER > TCP_REQ_RDY_TO_EXECUTE", 300),
    ("TCP_REQ_RDY_TO_EXECUTE > TCP_REQ_EXECUTING", 500),
    (DEVICE, 80_000),
    ("TCP_REQ_EXECUTED > TCP_REQ_RDY_TO_COMPL", 700),
    ("TCP_REQ_RDY_TO_COMPL > TCP_REQ_TRANSFER_H2C", 5_000),
    ("TCP_REQ_TRANSFER_H2C > TCP_REQ_COMPLETED", 9_000),
];
/// Stage that waits for the device.
const DEVICE: &str = "TCP_REQ_EXECUTING > TCP_REQ_EXECUTED";
/// Median of all stages together, in nanoseconds.
const WHOLE: u64 = 100_000;
/// Distribution of 100,000 requests around the median: their number per bucket, starting
/// [`SHORTER`] buckets below it.
const SHAPE: [u32; 14] = [
    900, 4_000, 12_000, 22_000, 24_000, 18_000, 10_000, 5_000, 2_500, 1_000, 400, 150, 40, 10,
];
/// Number of buckets below the median.
const SHORTER: usize = 4;
/// Process that takes the CPU on the noisy host.
pub(super) const BACKUP: &str = "backup-agent";
/// Number of slow requests that are kept of each minute.
const MAX_KEPT_REQUESTS: i64 = 5;

/// Returns the name of a host.
pub(super) fn name(number: u32) -> String {
    format!("node{number:04}")
}

/// Returns a pseudo-random number from a seed and a place (splitmix64).
pub(super) fn random(seed: u64, place: u64) -> u64 {
    let mut z = seed
        .wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A host.
pub(super) struct Host {
    pub(super) number: u32,
    pub(super) planted: Planted,
    pub(super) connections: u32,
    pub(super) minutes: u32,
    pub(super) seed: u64,
}

/// Writer of a table's file.
type Writer = TableWriter<BufWriter<File>>;

impl Host {
    /// Writes all tables of the host; returns the number of rows.
    pub(super) fn write(&self, dir: &Path) -> anyhow::Result<u64> {
        let minutes: Vec<i64> = (0..i64::from(self.minutes))
            .map(|minute| BEGIN + minute * MINUTE)
            .collect();
        let mut rows = 0;
        // Every tenth minute of the day before is enough to compare with.
        let yesterday: Vec<i64> = minutes
            .iter()
            .step_by(10)
            .map(|minute| minute - DAY)
            .collect();
        for minutes in [minutes, yesterday] {
            for of_hour in minutes.chunk_by(|a, b| hour_of(*a) == hour_of(*b)) {
                rows += self.hour(dir, of_hour)?;
            }
        }
        Ok(rows)
    }

    fn hour(&self, dir: &Path, minutes: &[i64]) -> anyhow::Result<u64> {
        let Some(hour) = minutes.first().map(|minute| hour_of(*minute)) else {
            return Ok(0);
        };
        let mut rows = 0;
        for table in TABLES {
            let folder = dir.join(partition(table.name, hour, &name(self.number)));
            fs::create_dir_all(&folder)?;
            let mut writer = TableWriter::new(
                BufWriter::new(File::create(folder.join("fleet.parquet"))?),
                table,
            )?;
            for minute in minutes {
                self.minute(&mut writer, table, *minute)?;
            }
            rows += writer.rows();
            writer.finish()?;
        }
        Ok(rows)
    }

    fn minute(&self, writer: &mut Writer, table: &Table, minute: i64) -> anyhow::Result<()> {
        match table.name {
            "stage_histograms" => {
                (0..self.connections).try_for_each(|it| self.histograms(writer, minute, it))
            }
            "requests" => {
                (0..MAX_KEPT_REQUESTS).try_for_each(|it| self.request(writer, minute, it))
            }
            "request_stages" => {
                (0..MAX_KEPT_REQUESTS).try_for_each(|it| self.stage(writer, minute, it))
            }
            "thread_budgets" => self.budgets(writer, minute),
            "kernel_intervals" => self.interval(writer, minute),
            _ => Ok(()),
        }
    }

    fn subsystem(connection: u32) -> String {
        format!("nqn.2016-06.io.spdk:cnode{}", connection % 4)
    }

    /// Returns the factor by which all requests of that minute are longer.
    fn factor(&self, minute: i64, stage: &str, connection: u32) -> u64 {
        let is_slow = self.number == self.planted.slow
            && connection == 1
            && [DEVICE, "whole"].contains(&stage);
        let is_changed = self.number == self.planted.changed && minute >= BEGIN;
        if is_slow {
            40
        } else if is_changed {
            5
        } else {
            1
        }
    }

    fn histograms(&self, writer: &mut Writer, minute: i64, connection: u32) -> anyhow::Result<()> {
        let (hostname, subnqn) = (name(self.number), Self::subsystem(connection));
        let (hostnqn, peer) = (
            format!(
                "nqn.2014-08.org.nvmexpress:host{}-{connection}",
                self.number
            ),
            format!(
                "10.{}.{}.{connection}:4420",
                self.number / 256,
                self.number % 256
            ),
        );
        for (stage, median) in STAGES.into_iter().chain([("whole", WHOLE)]) {
            // Each host and stage has its own median, up to a quarter longer.
            let own = random(
                self.seed,
                u64::from(self.number) << 20 | u64::from(connection) << 10 | median,
            ) % 4;
            let middle =
                bounds::index(median * self.factor(minute, stage, connection)) + own as usize;
            for (at, share) in SHAPE.into_iter().enumerate() {
                let count = share + (random(minute as u64, u64::from(share)) % 7) as u32;
                let bucket = middle + at - SHORTER;
                let (above, up_to) = (
                    bounds::lower(bucket),
                    bounds::upper(bucket).unwrap_or(u64::MAX >> 1),
                );
                writer.row(&rows::StageHistogram {
                    hostname: &hostname,
                    capture: "serve",
                    minute_ns: minute,
                    pid: Some(1_000),
                    kind: "TCP_REQ",
                    subnqn: Some(&subnqn),
                    hostnqn: Some(&hostnqn),
                    peer: Some(&peer),
                    qid: Some(1),
                    stage,
                    above_ns: above.cast_signed(),
                    up_to_ns: up_to.cast_signed(),
                    count: count.into(),
                    sum_ns: (u64::midpoint(above, up_to) * u64::from(count)).cast_signed(),
                })?;
            }
        }
        Ok(())
    }

    /// Returns the start, duration and subsystem of the slow request at that place.
    fn slow(&self, minute: i64, place: i64) -> (i64, i64, u32) {
        let is_first = minute == BEGIN && place == 0;
        match self.number {
            it if is_first && it == self.planted.target => (BEGIN + MINUTE / 2, 900_000_000, 1_000),
            // The same request on its initiator, which waits a little longer, and is not whole in
            // its trace.
            it if is_first && it == self.planted.initiator => {
                (BEGIN + MINUTE / 2 - 50_000, 850_000_000, 1_000)
            }
            it => {
                let random = random(self.seed ^ minute as u64, u64::from(it) << 8 | place as u64);
                (
                    minute + place * 1_000_000_000,
                    (500_000 + random % 500_000).cast_signed(),
                    it % 4,
                )
            }
        }
    }

    fn request(&self, writer: &mut Writer, minute: i64, place: i64) -> anyhow::Result<()> {
        let (start_ns, whole_ns, of) = self.slow(minute, place);
        let number = (minute - BEGIN) / MINUTE * MAX_KEPT_REQUESTS + place;
        let (hostname, object) = (name(self.number), format!("r{}", number.unsigned_abs()));
        let subnqn = if of == 1_000 {
            "nqn.2016-06.io.spdk:both".to_owned()
        } else {
            Self::subsystem(of)
        };
        let row = rows::Request {
            hostname: &hostname,
            capture: "serve",
            request: number,
            object: &object,
            kind: "TCP_REQ",
            start_ns,
            whole_ns,
            finished: true,
            pid: Some(1_000),
            subnqn: Some(&subnqn),
            qid: Some(1),
            size: 4_096,
            queue_depth: Some(1 + place * 8),
            stages: 1,
            late_least_ns: Some(0),
            late_most_ns: Some(whole_ns / 4),
            unknown_ns: Some(0),
            ..rows::Request::default()
        };
        Ok(writer.row(&row)?)
    }

    fn stage(&self, writer: &mut Writer, minute: i64, place: i64) -> anyhow::Result<()> {
        let (start_ns, stage_ns, _) = self.slow(minute, place);
        let hostname = name(self.number);
        let row = rows::RequestStage {
            hostname: &hostname,
            capture: "serve",
            request: (minute - BEGIN) / MINUTE * MAX_KEPT_REQUESTS + place,
            from_point: "TCP_REQ_EXECUTING",
            to_point: "TCP_REQ_EXECUTED",
            start_ns,
            stage_ns,
            late_least_ns: Some(0),
            late_most_ns: Some(stage_ns / 4),
            unknown_ns: Some(0),
            ..rows::RequestStage::default()
        };
        Ok(writer.row(&row)?)
    }

    /// Writes the budgets of two reactors, each of which has a whole minute.
    fn budgets(&self, writer: &mut Writer, minute: i64) -> anyhow::Result<()> {
        let hostname = name(self.number);
        let backup = if self.number == self.planted.noisy {
            MINUTE / 5
        } else {
            0
        };
        let tick =
            5_000_000 + (random(self.seed, u64::from(self.number)) % 1_000_000).cast_signed();
        for lcore in 0..2 {
            let did = [
                ("runs", false, None, MINUTE - backup - tick, 1_000),
                ("interrupted", true, Some("timer tick"), tick, 15_000),
                ("preempted", true, Some(BACKUP), backup, 120),
            ];
            for (activity, taken, caused_by, total_ns, times) in
                did.into_iter().filter(|it| it.3 > 0)
            {
                let row = rows::ThreadBudget {
                    hostname: &hostname,
                    capture: "serve",
                    minute_ns: minute,
                    pid: Some(1_000),
                    tid: 1_001 + lcore,
                    thread: ["reactor_0", "reactor_1"][lcore as usize],
                    activity,
                    taken,
                    caused_by,
                    total_ns,
                    times: Some(times),
                    longest_ns: Some(total_ns / times * 2),
                };
                writer.row(&row)?;
            }
        }
        Ok(())
    }

    fn interval(&self, writer: &mut Writer, minute: i64) -> anyhow::Result<()> {
        let hostname = name(self.number);
        let is_noisy = self.number == self.planted.noisy;
        let own = (random(self.seed, u64::from(self.number)) % 10_000).cast_signed();
        let row = rows::KernelInterval {
            hostname: &hostname,
            capture: "serve",
            start_ns: minute + 7_000_000,
            interval_ns: if is_noisy { 100_000_000 } else { 4_000 + own },
            pid: Some(1_000),
            tid: 1_001,
            thread: "reactor_0",
            lcore: Some(0),
            activity: if is_noisy { "preempted" } else { "interrupted" },
            taken: true,
            caused_by: Some(if is_noisy { BACKUP } else { "timer tick" }),
            ..rows::KernelInterval::default()
        };
        Ok(writer.row(&row)?)
    }
}
