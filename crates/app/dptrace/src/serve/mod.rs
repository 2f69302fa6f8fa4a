//! `dptrace serve`: continuous metrics of requests and threads, for Prometheus.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use console::terminal;
use errors::usage;
use host::user_file;
use serve::{Limits, Options, Place, ProcessFilter, Token};
use text::printable::path as printable;

/// `dptrace serve`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Follow only these processes, by PID
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,

    /// Follow only processes of this name, as they come and go (repeat the option for more names)
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,

    /// The address and port to listen on
    ///
    /// Without --token-file there is no password: on any address but loopback, anyone who can reach
    /// it can read the names of hosts and subsystems.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9470")]
    listen: String,

    /// Require the bearer token in this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Write tables for SQL here every minute, as dptrace export does
    ///
    /// Histograms of each connection's stages, the time of threads, and the 50 slowest requests of
    /// each minute with their stages. Each table has a folder, and in it one for each day, hour and
    /// host.
    #[arg(long, value_name = "DIR", help_heading = "Tables")]
    parquet: Option<PathBuf>,

    /// Limit the files to this total size, by removing the oldest: 500M, 2G
    #[arg(
        long, value_name = "BYTES", default_value = "1G", value_parser = crate::args::bytes, requires = "parquet",
        help_heading = "Tables"
    )]
    keep_bytes: u64,

    /// The name of this host in tables
    ///
    /// Default: this machine's name.
    #[arg(
        long,
        value_name = "NAME",
        requires = "parquet",
        help_heading = "Tables"
    )]
    host: Option<String>,

    /// Load no program into the kernel: no thread times, and no audit of CPUs
    #[arg(long)]
    no_kernel: bool,

    /// Do not attach probes to the processes; find connections only in their memory
    #[arg(long)]
    no_probes: bool,

    /// Maximum number of connections with own series; the rest share "other"
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = limit(10_000), help_heading = "Limits")]
    connections: u32,

    /// Maximum of connections with stage histograms: the busiest
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = limit(10_000), help_heading = "Limits")]
    with_stages: u32,

    /// Maximum number of threads with own series: the busiest
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = limit(10_000), help_heading = "Limits")]
    threads: u32,

    /// Maximum number of pollers' CPUs to audit, for time that others take; 0 audits none
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(..=1024), help_heading = "Limits")]
    cpus: u32,

    /// Maximum number of processes to follow at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = limit(64), help_heading = "Limits")]
    targets: u32,

    /// Forget series that are idle for this long, of connections and threads
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = ::text::duration::parse, help_heading = "Limits")]
    forget: Duration,
}

/// Parses a number from 1 to `most`.
fn limit(most: i64) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=most)
}

const EXAMPLES: &str = "\
Follows the SPDK traces of all processes that write one to /dev/shm, as they come and go, and \
accounts for the time of their threads, and for the time that others take on the CPUs where these \
threads poll. http://127.0.0.1:9470/metrics has the result for Prometheus, /connections has \
percentiles of each stage of each connection as JSON, and /healthz answers as long as it runs. It \
is made to run for months: memory and the number of series are limited, and the limits are printed \
at the start.

Examples:
  dptrace serve
  dptrace serve --name nvmf_tgt
  dptrace serve --listen 10.0.0.7:9470 --token-file /etc/dptrace/token
  dptrace serve -p PID --no-kernel
  dptrace serve --parquet DIR --keep-bytes 2G
  curl -s http://127.0.0.1:9470/metrics
  curl -s http://127.0.0.1:9470/connections";

/// Limit on the size of a token file, in bytes.
const MAX_TOKEN_BYTES: u64 = 4096;

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let limits = args.limits()?;
    let token = args.token_file.as_deref().map(token).transpose()?;
    let options = Options {
        build: (env!("CARGO_PKG_VERSION"), env!("DPTRACE_COMMIT")),
        listener: listen(&args.listen)?,
        token,
        limits,
        wanted: args.wanted(),
        has_kernel: !args.no_kernel,
        has_probes: !args.no_probes,
        tables: args.place(),
    };
    serve::serve(options, &terminal::observer())
}

impl ServeArgs {
    fn wanted(&self) -> ProcessFilter {
        if self.pid.is_empty() && self.name.is_empty() {
            ProcessFilter::All
        } else {
            ProcessFilter::These {
                pids: self.pid.clone(),
                names: self.name.clone(),
            }
        }
    }

    /// Returns where to write tables, if requested.
    fn place(&self) -> Option<Place> {
        let dir = self.parquet.clone()?;
        let host = self
            .host
            .clone()
            .or_else(host::machine::hostname)
            .unwrap_or_else(|| "unknown".to_owned());
        Some(Place {
            dir,
            host,
            keep_bytes: self.keep_bytes,
        })
    }

    fn limits(&self) -> anyhow::Result<Limits> {
        if self.with_stages > self.connections {
            let (with, all) = (self.with_stages, self.connections);
            return Err(usage(format!(
                "--with-stages {with} must not exceed --connections {all}"
            )));
        }
        if self.forget < Duration::from_secs(2) {
            return Err(usage(
                "--forget must be at least 2s, so that a series survives a few scrapes",
            ));
        }
        Ok(Limits {
            connections: self.connections as usize,
            with_stages: self.with_stages as usize,
            threads: self.threads as usize,
            cpus: if self.no_kernel {
                0
            } else {
                self.cpus as usize
            },
            targets: self.targets as usize,
            forget: u32::try_from(self.forget.as_secs()).unwrap_or(u32::MAX),
        })
    }
}

/// Binds the address.
fn listen(text: &str) -> anyhow::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = text
        .to_socket_addrs()
        .map_err(|error| {
            usage(format!(
                "--listen {text:?}: {error}; it is ADDRESS:PORT, such as 127.0.0.1:9470"
            ))
        })?
        .collect();
    TcpListener::bind(addresses.as_slice())
        .with_context(|| format!("listening on {text} (--listen names another address or port)"))
}

/// Reads the token of a file: its first line.
fn token(path: &std::path::Path) -> anyhow::Result<Token> {
    let reading = || format!("reading the token from {}", printable(path));
    let bytes = user_file::read(path, MAX_TOKEN_BYTES).with_context(reading)?;
    Token::parse(&bytes).ok_or_else(|| {
        usage(format!(
            "--token-file {}: its first line must be a token: visible ASCII characters",
            printable(path)
        ))
    })
}
