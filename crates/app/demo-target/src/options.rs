//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use spdk_trace_writer::Era;

use crate::inject::Cause;
use crate::memory::{LAYOUTS, Layout, layout};

/// Work of the target, and its duration.
#[derive(Args, Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct Options {
    /// Seed of the random numbers: the same seed gives the same sequence
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Stop after at most this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub duration: Duration,

    /// Stop after this number of requests
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub requests: Option<u64>,

    /// Approximate number of requests per second
    #[arg(long, value_name = "N", default_value_t = 1000,
        value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000_000))]
    pub rate: u64,

    /// Send requests as fast as possible
    #[arg(long, conflicts_with = "rate")]
    pub flat_out: bool,

    /// Number of connections (qpairs) at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    pub connections: u32,

    /// Mean number of requests that a connection sends before it disconnects
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub life: u64,

    /// Stop after this number of connections; each is replaced by a new one at once
    #[arg(long, value_name = "N", conflicts_with = "requests", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub churn: Option<u64>,

    /// The SPDK version whose structs and trace file format to imitate
    #[arg(long, value_name = "VERSION", default_value = "v24.09", value_parser = version)]
    pub(crate) era: &'static Layout,

    /// The era of the trace file, if it should differ from that of the version: A to F (v21.07 to
    /// v26.05)
    #[arg(long, value_name = "ERA", value_parser = trace_era)]
    pub trace_era: Option<Era>,

    /// Hit no probes, like a target built without them (though their USDT notes are there)
    #[arg(long, alias = "no-usdt")]
    pub no_probes: bool,

    /// Write what really happened to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Write no trace file
    #[arg(long)]
    pub no_trace_file: bool,

    /// Do not remove the trace file at the end
    #[arg(long)]
    pub keep: bool,

    /// The application's name: the trace file is /dev/shm/NAME_trace.pidPID
    #[arg(long, value_name = "NAME", default_value = "demo", value_parser = app_name)]
    pub app: String,

    /// Number of slots in the ring of each reactor
    #[arg(long, value_name = "N", default_value_t = 32 * 1024, value_parser = slots)]
    pub slots: usize,

    /// Wait for a line, or the end of file, on standard input before beginning
    #[arg(long)]
    pub wait: bool,

    /// Wait for a line, or the end of file, on standard input before sending requests. When the
    /// first line of output appears, all hosts are connected and the truth file exists
    #[arg(long, conflicts_with_all = ["wait", "hits"])]
    pub wait_connected: bool,

    /// Disconnect no host at the end, like a target that is killed
    #[arg(long)]
    pub no_teardown: bool,

    /// Pass the TSC to every probe, as SPDK did before v23.05; since then only some probes have it
    #[arg(long)]
    pub all_ticks: bool,

    /// Delay the reactors by these known causes, in turn; `--truth` records when, why, and which
    /// requests were in flight
    ///
    /// The reactors then poll without a break, each pinned to a CPU.
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        value_delimiter = ',',
        conflicts_with = "hits"
    )]
    pub inject: Vec<Cause>,

    /// How long each reactor works between two of its delays
    #[arg(long, value_name = "DURATION", default_value = "50ms", value_parser = duration, requires = "inject")]
    pub inject_every: Duration,

    /// Length of a delay, at most 100ms
    #[arg(long, value_name = "DURATION", default_value = "2ms", value_parser = delay, requires = "inject")]
    pub inject_for: Duration,

    /// Reactors sleep until another thread wakes them, as SPDK's in interrupt mode
    #[arg(long, conflicts_with = "hits")]
    pub interrupt_mode: bool,

    /// Only hit the probe nvmf_ctrlr_add_qpair N times in a tight loop, and print the cost of a hit
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub hits: Option<u64>,
}

/// Limit on the duration of a run.
const MAX_RUN_TIME: Duration = Duration::from_hours(24);

/// Parses a duration as on all commands, up to the limit.
fn duration(text: &str) -> Result<Duration, &'static str> {
    match ::text::duration::parse(text)? {
        time if time > MAX_RUN_TIME => Err("the time must be at most 24h"),
        time => Ok(time),
    }
}

/// Limit on a delay: the kernel throttles a real-time thread that runs longer (sched(7),
/// `sched_rt_runtime_us`).
const MAX_DELAY: Duration = Duration::from_millis(100);

fn delay(text: &str) -> Result<Duration, &'static str> {
    match ::text::duration::parse(text)? {
        time if time > MAX_DELAY => Err("a delay must be at most 100ms"),
        time => Ok(time),
    }
}

impl Options {
    /// Returns the era of the trace file.
    pub(crate) fn trace_era(&self) -> Era {
        self.trace_era.unwrap_or(self.era.era)
    }

    /// Returns true if late events delay later ones, and the reactors poll. Otherwise the order of
    /// all events depends only on the seed.
    pub(crate) fn is_real_time(&self) -> bool {
        !self.inject.is_empty() || self.interrupt_mode
    }
}

/// Parses the application's name, which SPDK uses in a file name unchanged.
fn app_name(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.len() <= 64 && !text.contains(['/', '\0']);
    if fits {
        Ok(text.to_owned())
    } else {
        Err("1 to 64 bytes without a slash".to_owned())
    }
}

fn version(text: &str) -> Result<&'static Layout, String> {
    let known = || {
        LAYOUTS
            .iter()
            .map(|layout| layout.version)
            .collect::<Vec<_>>()
            .join(", ")
    };
    layout(text).ok_or_else(|| format!("one of {}", known()))
}

fn trace_era(text: &str) -> Result<Era, String> {
    let known = || Era::ALL.map(|era| format!("{era:?}")).join(", ");
    Era::from_name(text).ok_or_else(|| format!("one of {}", known()))
}

fn slots(text: &str) -> Result<usize, String> {
    let slots: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    let fits = (64..=1 << 22).contains(&slots) && slots.is_power_of_two();
    if fits {
        Ok(slots)
    } else {
        Err("a power of two from 64 to 4194304".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_bounds() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(MAX_RUN_TIME));
        for wrong in ["", "s", "0s", "2d", "-1s", "25h", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rings_are_powers_of_two() {
        assert_eq!(slots("64"), Ok(64));
        assert!(slots("65").is_err() && slots("32").is_err() && slots("").is_err());
        assert!(app_name("a/b").is_err() && app_name("").is_err() && app_name("spdk_tgt").is_ok());
    }
}
