//! Writes the trace file of a generated load, for benchmarks and demos.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use testkit::{Era, Workload};

/// Write the raw trace file that an NVMe-oF target under load would leave in /dev/shm.
#[derive(Debug, Parser)]
struct Args {
    /// The era of the file: A, B, C, D0, D, E or F.
    #[arg(long, default_value = "F", value_parser = era)]
    era: Era,
    /// Slots of all rings together; each lcore's share must be a power of two.
    #[arg(long, default_value_t = 65_536)]
    records: usize,
    /// Number of lcores that record.
    #[arg(long, default_value_t = 2)]
    lcores: u32,
    /// Number of simultaneous connections.
    #[arg(long, default_value_t = 8)]
    qpairs: u32,
    /// Total number of connections, one after another.
    #[arg(long)]
    connections: Option<u32>,
    /// Requests in flight on each connection.
    #[arg(long, default_value_t = 16)]
    queue_depth: u32,
    /// Records to write, in percent of the slots: more than 100 wraps the rings.
    #[arg(long, default_value_t = 125)]
    fill: u64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave out the bdev layer's records, which take several slots: then every record takes one.
    #[arg(long)]
    no_bdev: bool,
    /// Write the sample that dptrace contains, ignoring all other options. Store it packed:
    /// `gzip -9 -n`.
    #[arg(long)]
    sample: bool,
    /// Path of the trace file.
    #[arg(long)]
    out: PathBuf,
    /// Path of the recording of the qpair probes.
    #[arg(long)]
    recording: Option<PathBuf>,
}

fn era(name: &str) -> Result<Era, String> {
    Era::from_name(name).ok_or_else(|| format!("no era {name:?}: A, B, C, D0, D, E or F"))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let slots = args.records / args.lcores.max(1) as usize;
    if !slots.is_power_of_two() || slots < 4 || args.qpairs < args.lcores {
        eprintln!(
            "gen-trace: {} records on {} lcores with {} qpairs: ",
            args.records, args.lcores, args.qpairs
        );
        eprintln!("each lcore needs a power of two of at least 4 slots, and a qpair");
        return ExitCode::from(2);
    }
    match write(&args, slots) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gen-trace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(args: &Args, slots: usize) -> std::io::Result<()> {
    let workload = Workload {
        seed: args.seed,
        lcores: args.lcores,
        slots,
        qpairs: args.qpairs,
        connections: args.connections.unwrap_or(args.qpairs * 3 / 2),
        queue_depth: args.queue_depth.max(1),
        truth: false,
        bdev: !args.no_bdev,
        ..Workload::new(args.era)
    };
    let workload = if args.sample {
        Workload::sample()
    } else {
        workload.filling(args.fill)
    };
    let generated = workload.generate();
    generated.file.write_to(&args.out)?;
    if let Some(path) = &args.recording {
        std::fs::write(path, &generated.recording)?;
    }
    Ok(())
}
