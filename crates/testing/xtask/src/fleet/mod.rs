//! `cargo xtask fleet`: made-up tables of many hosts, with culprits planted among them,
//! which the queries of `queries/` must find. A host's data depends on its number and a seed: the
//! same numbers give the same files.

mod host;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;

use crate::target_dir;
use host::Host;

/// `cargo xtask fleet`, as typed.
#[derive(Args, Debug)]
pub(crate) struct FleetArgs {
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 1000)]
    hosts: u32,

    /// Number of minutes, from 06:00 on
    #[arg(long, value_name = "M", default_value_t = 60)]
    minutes: u32,

    /// Connections of each host
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: u32,

    /// Seed that chooses the culprits
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Folder for the tables; default: target/fleet
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Run the queries on Spark as well, at this master: spark://127.0.0.1:7077
    #[arg(long, value_name = "URL")]
    spark: Option<String>,
}

/// Planted culprits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planted {
    /// Host with a connection whose device is slow now and then.
    slow: u32,
    /// Host whose threads lose their CPU to a backup.
    noisy: u32,
    /// Host that was faster yesterday.
    changed: u32,
    /// Host of the slowest request.
    target: u32,
    /// Host of that request's initiator.
    initiator: u32,
}

impl Planted {
    /// Chooses five different hosts.
    fn choose(seed: u64, hosts: u32) -> Self {
        let at = |place: u64| {
            let from = host::random(seed, 0) % u64::from(hosts);
            ((from + place * u64::from(hosts / 5)) % u64::from(hosts)) as u32
        };
        Self {
            slow: at(0),
            noisy: at(1),
            changed: at(2),
            target: at(3),
            initiator: at(4),
        }
    }
}

/// Writes the tables, runs the queries, and compares their results with the planted culprits.
pub(crate) fn run(args: &FleetArgs) -> anyhow::Result<()> {
    ensure!(
        args.hosts >= 5 && args.minutes > 0,
        "a fleet has at least 5 hosts, and a minute"
    );
    let dir = args
        .dir
        .clone()
        .map_or_else(|| target_dir().map(|target| target.join("fleet")), Ok)?;
    let planted = Planted::choose(args.seed, args.hosts);
    let begun = Instant::now();
    let mut rows = 0;
    for number in 0..args.hosts {
        let host = Host {
            number,
            planted,
            connections: args.connections,
            minutes: args.minutes,
            seed: args.seed,
        };
        rows += host
            .write(&dir)
            .with_context(|| format!("writing the tables of host {number}"))?;
    }
    println!(
        "{rows} rows of {} hosts in {:.1} s: {}",
        args.hosts,
        begun.elapsed().as_secs_f64(),
        dir.display()
    );
    let found = queries(&dir, args.spark.as_deref())?;
    check(&found, planted)?;
    println!("every query found what was planted: {planted:?}");
    Ok(())
}

/// Runs all queries on the available engines, which must agree; returns the rows of each.
fn queries(dir: &Path, spark: Option<&str>) -> anyhow::Result<BTreeMap<String, Vec<Value>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut command = Command::new("python3");
    command
        .arg(root.join("crates/app/dptrace/tests/it/export/queries.py"))
        .arg(dir)
        .arg(root.join("queries"))
        .args(spark);
    let others = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let paths = std::iter::once(root.join("target/python")).chain(std::env::split_paths(&others));
    let done = command
        .env("PYTHONPATH", std::env::join_paths(paths)?)
        .output()
        .context("running python3")?;
    eprint!("{}", String::from_utf8_lossy(&done.stderr));
    ensure!(
        done.status.success(),
        "the queries failed: pip install --target target/python duckdb chdb"
    );
    serde_json::from_slice(&done.stdout).context("reading the results of the queries")
}

/// Checks that the first row of each query shows a planted culprit.
fn check(found: &BTreeMap<String, Vec<Value>>, planted: Planted) -> anyhow::Result<()> {
    let expected = [
        ("slowest-connections", "hostname", host::name(planted.slow)),
        ("slowest-stages", "hostname", host::name(planted.slow)),
        ("since-yesterday", "hostname", host::name(planted.changed)),
        ("kernel-by-host", "of_host", host::name(planted.noisy)),
        ("kernel-by-host", "caused_by", host::BACKUP.to_owned()),
        ("busiest-threads", "hostname", host::name(planted.noisy)),
        ("noisy-neighbours", "caused_by", host::BACKUP.to_owned()),
        ("slowest-requests", "hostname", host::name(planted.target)),
        ("longest-absences", "hostname", host::name(planted.noisy)),
    ];
    for (query, column, wanted) in expected {
        let first = found
            .get(query)
            .and_then(|rows| rows.first())
            .with_context(|| format!("{query} found nothing"))?;
        ensure!(
            first[column] == wanted.as_str(),
            "{query}: {column} is not {wanted:?} in {first}"
        );
    }
    let overlapped = found
        .get("one-slow-request")
        .map(Vec::as_slice)
        .unwrap_or_default();
    let initiator = host::name(planted.initiator);
    ensure!(
        overlapped
            .iter()
            .any(|row| row["hostname"] == initiator.as_str()),
        "nothing of the initiator overlaps"
    );
    Ok(())
}
