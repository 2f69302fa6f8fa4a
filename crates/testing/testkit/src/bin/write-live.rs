//! Writes into live trace files at the rate of real reactors, for benchmarks and tests of
//! concurrent readers. The records are numbered, and a request's worth of them is written between
//! two reads of the clock.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use spdk_trace_writer::{Era, LiveTrace, Tpoint, TraceBuilder};

/// Write into a raw trace file at a given rate; print the number of records written on each lcore.
#[derive(Clone, Debug, Parser)]
struct Args {
    /// Requests per second on all lcores together; 0 is as many as possible.
    #[arg(long, default_value_t = 250_000)]
    rate: u64,
    /// Records per request.
    #[arg(long, default_value_t = 12)]
    records: usize,
    /// Lcores; each is a thread.
    #[arg(long, default_value_t = 1)]
    lcores: u32,
    /// Slots of each lcore's ring.
    #[arg(long, default_value_t = 32_768)]
    slots: usize,
    /// Duration of writing, in milliseconds.
    #[arg(long, default_value_t = 3_000)]
    millis: u64,
    /// Time that the file exists before anything is written, in milliseconds.
    #[arg(long, default_value_t = 500)]
    before: u64,
    /// Path of the file; it is removed at the end.
    #[arg(long)]
    out: PathBuf,
}

/// The tracepoint of all records, whose argument numbers them.
const TICK: u16 = 64;
/// Size of a slot, in bytes.
const SLOT: usize = 32;

/// The thread of one lcore.
struct Writer {
    file: File,
    args: Args,
    /// Offset of slot 0.
    ring: u64,
    /// Offset of the cursor.
    cursor: u64,
}

impl Writer {
    /// Writes until the time is up, and returns the number of records.
    fn run(&self, start: Instant) -> io::Result<u64> {
        let (records, slots) = (self.args.records as u64, self.args.slots as u64);
        let each = Duration::from_nanos(
            (u64::from(self.args.lcores) * 1_000_000_000)
                .checked_div(self.args.rate)
                .unwrap_or_default(),
        );
        let end = Duration::from_millis(self.args.millis);
        let (mut written, mut bytes) = (0_u64, vec![0; self.args.records * SLOT]);
        for request in 0_u32.. {
            let due = each * request;
            let mut now = start.elapsed();
            while now < due && now < end {
                std::hint::spin_loop();
                now = start.elapsed();
            }
            if now >= end {
                break;
            }
            for (number, slot) in (written..).zip(bytes.chunks_exact_mut(SLOT)) {
                // The clock starts at one second: a record can't have time 0.
                let tsc = 1_000_000_000 + now.as_nanos() as u64;
                slot[..8].copy_from_slice(&tsc.to_le_bytes());
                slot[8..10].copy_from_slice(&TICK.to_le_bytes());
                slot[24..32].copy_from_slice(&number.to_le_bytes());
            }
            let at = written % slots;
            let first = (slots - at).min(records) as usize * SLOT;
            self.file
                .write_all_at(&bytes[..first], self.ring + at * SLOT as u64)?;
            self.file.write_all_at(&bytes[first..], self.ring)?;
            written += records;
            self.file
                .write_all_at(&written.to_le_bytes(), self.cursor)?;
        }
        Ok(written)
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.records == 0 || args.records > args.slots || args.lcores == 0 {
        eprintln!(
            "write-live: a request has a record at least, and fits the ring; there is one lcore at least"
        );
        return ExitCode::from(2);
    }
    let done = write(&args);
    // The file may not exist.
    let _ = std::fs::remove_file(&args.out);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("write-live: {}: {error}", args.out.display());
            ExitCode::FAILURE
        }
    }
}

fn write(args: &Args) -> io::Result<()> {
    let mut trace = TraceBuilder::new(Era::E)
        .tsc_rate(1_000_000_000)
        .slots(args.slots);
    trace.tpoint(Tpoint::new(TICK, "TICK").int("n", 8));
    (0..args.lcores).for_each(|lcore| {
        trace.lcore(lcore);
    });
    let live = LiveTrace::create(&args.out, &trace)?;
    let layout = &live.snapshot().layout;
    let file = || OpenOptions::new().write(true).open(&args.out);
    let writers: Vec<Writer> = (0..args.lcores)
        .map(|lcore| {
            let (ring, cursor) = (
                layout.slot(lcore, 0) as u64,
                layout.next_entry(lcore) as u64,
            );
            Ok(Writer {
                file: file()?,
                args: args.clone(),
                ring,
                cursor,
            })
        })
        .collect::<io::Result<_>>()?;
    eprintln!(
        "write-live: pid {} writes {}",
        std::process::id(),
        args.out.display()
    );
    std::thread::sleep(Duration::from_millis(args.before));
    let start = Instant::now();
    let written: Vec<io::Result<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .iter()
            .map(|writer| scope.spawn(move || writer.run(start)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
            })
            .collect()
    });
    let took = start.elapsed().as_secs_f64();
    let mut all = 0;
    for (lcore, written) in written.into_iter().enumerate() {
        let written = written?;
        println!("lcore {lcore} wrote {written}");
        all += written;
    }
    println!("all wrote {all}, {:.0} a second", all as f64 / took);
    Ok(())
}
