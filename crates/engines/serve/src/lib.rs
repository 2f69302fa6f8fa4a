//! Continuous times of requests and threads of all targets for Prometheus, and tables of them by
//! the minute.
//!
//! [`serve`] runs until it is asked to stop. A thread for each target follows its trace, and the
//! kernel's programs account for its threads. All of it goes to one store with limits, from which
//! the pages of the web server are written.
#![forbid(unsafe_code)]

mod audit;
mod cells;
mod connections;
mod find;
mod follow;
mod groups;
mod http;
mod intrusions;
mod kernel;
mod limits;
mod minute;
mod naming;
mod page;
mod parquet;
mod stages;
mod store;
mod targets;
mod threads;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use observer::Observer;
use requests::CONNECTION;
use sys::clock::real_nanos;
use text::printable::path as printable;
use text::utc;

use find::Finder;
pub use find::ProcessFilter;
use http::Server;
pub use http::Token;
use limits::CLIENTS;
pub use limits::Limits;
pub use parquet::Place;
use parquet::Tables;
pub use stages::requests_of;
use store::Shared;
use targets::{Setting, Targets};

/// Kinds of losses, each with a counter of its own.
const LOST: [&str; 6] = [
    "slots",
    "requests",
    "threads",
    "preemptors",
    "interrupts",
    "programs",
];
/// Place of `slots` in [`LOST`].
const LOST_SLOTS: usize = 0;
/// Place of `requests` in [`LOST`].
const LOST_REQUESTS: usize = 1;

/// Percentiles that are shown.
const QUANTILES: [(&str, f64); 3] = [("50", 0.5), ("99", 0.99), ("99.9", 0.999)];

/// Time between two looks for processes.
const PROCESS_SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two readings of the time of threads, if nobody asks for it.
const ADVANCE: Duration = Duration::from_secs(5);
/// Time between two looks for a signal.
const STEP: Duration = Duration::from_millis(50);

/// Options of a server.
pub struct Options {
    /// Version and commit of the program.
    pub build: (&'static str, &'static str),
    /// Listener of the web server.
    pub listener: TcpListener,
    /// Token that clients must send, if one is asked for.
    pub token: Option<Token>,
    /// Limits on what is kept.
    pub limits: Limits,
    /// Processes that are followed.
    pub wanted: ProcessFilter,
    /// True if programs of the kernel account for threads and CPUs.
    pub has_kernel: bool,
    /// True if probes of processes are attached to.
    pub has_probes: bool,
    /// Place of the tables, if they are written.
    pub tables: Option<Place>,
}

fn note_limits(limits: &Limits, observer: &Observer) {
    observer.note(&format!(
        "limits: {} series, {}, {} of them with stages, {}, {}, {} {}, {CLIENTS} clients at a \
         time; series idle for {} s are forgotten",
        limits.series(),
        screen::counted(limits.connections as u64, "connection"),
        limits.with_stages,
        screen::counted(limits.threads as u64, "thread"),
        screen::counted(limits.cpus as u64, "CPU"),
        limits.targets,
        screen::plural(limits.targets as u64, "process", "processes"),
        limits.forget
    ));
}

/// Follows the processes, and ends each second, until the server is asked to stop.
fn run(
    shared: &Shared,
    targets: &Arc<Targets>,
    tables: Option<&Tables>,
    wanted: ProcessFilter,
    observer: &Observer,
) {
    let mut finder = Finder::new(wanted);
    // Seconds are those of UTC, and so minutes are, too.
    let since = Duration::from_nanos(real_nanos() % 1_000_000_000);
    let (mut looked, mut second) = (
        None::<Instant>,
        Instant::now()
            .checked_sub(since)
            .unwrap_or_else(Instant::now),
    );
    while !observer.is_stop_requested() {
        if looked.is_none_or(|looked| looked.elapsed() >= PROCESS_SCAN_INTERVAL) {
            looked = Some(Instant::now());
            targets.update(finder.look());
        }
        if second.elapsed() >= Duration::from_secs(1) {
            second += Duration::from_secs(1);
            let now = real_nanos();
            // The minute must contain the time of its threads.
            let is_due = tables.is_some() && shared.lock().ends_turn(now);
            targets.advance(if is_due { Duration::ZERO } else { ADVANCE });
            let minute = shared.lock().second(now);
            if let (Some(tables), Some(minute)) = (tables, minute) {
                tables.write(minute);
            }
            // After a standstill, for example of a machine that slept, seconds are not made up for.
            second = second.max(
                Instant::now()
                    .checked_sub(Duration::from_secs(2))
                    .unwrap_or(second),
            );
        }
        std::thread::sleep(STEP);
    }
}

/// Serves until it is asked to stop.
///
/// # Errors
/// If the folder of the tables cannot be used, or no thread can be started.
pub fn serve(options: Options, observer: &Observer) -> anyhow::Result<()> {
    let Options {
        build,
        listener,
        token,
        limits,
        wanted,
        has_kernel,
        has_probes,
        tables,
    } = options;
    sys::allocator::keep_little();
    let specs = objects::built_in()?
        .into_iter()
        .filter(|spec| spec.name == CONNECTION)
        .collect();
    let shared = Arc::new(Shared::new(
        limits,
        real_nanos(),
        tables.is_some(),
        build,
        observer.clone(),
    ));
    let tables = tables
        .map(|place| start_tables(&place, &shared))
        .transpose()?;
    let setting = Setting {
        specs,
        probes: has_probes,
        kernel: has_kernel,
    };
    let targets = Arc::new(Targets::new(setting, Arc::clone(&shared)));
    let address = listener
        .local_addr()
        .context("the address that was bound")?;
    if !address.ip().is_loopback() && token.is_none() {
        observer.note(&format!(
            "listening on {address} without a password: anyone who can reach this address can read \
             the names of hosts and subsystems; use --token-file to require a token, and a proxy \
             in front for TLS (docs/serve.md)"
        ));
    }
    observer.handle_stop_requests()?;
    Server::new(listener, token, Arc::clone(&shared), Arc::clone(&targets)).start()?;
    observer.note(&format!(
        "listening on http://{address}/metrics; Ctrl-C ends it"
    ));
    note_limits(&limits, observer);
    run(&shared, &targets, tables.as_ref(), wanted, observer);
    targets.stop();
    if let Some(tables) = tables {
        targets.advance(Duration::ZERO);
        let minute = shared.lock().last(real_nanos());
        tables.write(minute);
        tables.finish();
    }
    Ok(())
}

/// Starts to write tables.
fn start_tables(place: &Place, shared: &Arc<Shared>) -> anyhow::Result<Tables> {
    let run = format!(
        "serve-{}",
        utc::moment(real_nanos().into()).strftime("%Y%m%dT%H%M%S.%6fZ")
    );
    let tables = Tables::start(place, run, Arc::clone(shared)).context("--parquet")?;
    shared.observer.note(&format!(
        "writing tables of host {} every minute below {}; the oldest files are removed beyond {} \
         MiB (--keep-bytes)",
        text::printable::text(place.host.as_bytes()),
        printable(&place.dir),
        place.keep_bytes >> 20
    ));
    Ok(tables)
}
