//! Reads the sizes of reads on the whole machine as a histogram of numbers: `histogram [SECONDS]`.

use std::io::Write;

use bt_engine::{Cell, Script};

const SCRIPT: &str =
    "tracepoint:syscalls:sys_exit_read /args.ret >= 0/ { @bytes = hist(args.ret); }
    interval:s:$1 { exit(); }";

/// Measures for a number of seconds, and writes each bucket to `out`.
pub(crate) fn measure(
    seconds: &str,
    mut out: impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    // `$1` in the script is the first parameter.
    let session = Script::builder(SCRIPT)
        .params([seconds])
        .compile()?
        .load()?;
    let result = session.run(|event| eprintln!("{event:?}"))?;

    let bytes = result.map("@bytes").ok_or("the script has no such map")?;
    for (_, cell) in &bytes.rows {
        let Cell::Histogram(histogram) = cell else {
            continue;
        };
        let values: u64 = histogram.buckets.iter().map(|bucket| bucket.count).sum();
        writeln!(out, "{values} reads")?;
        for bucket in &histogram.buckets {
            // Bounds are numbers; `label` writes them as bpftrace does.
            let below = bucket.to.as_ref().map_or(i128::MAX, |bound| bound.number);
            writeln!(out, "< {below} bytes {}: {}", bucket.label(), bucket.count)?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).unwrap_or("5".into());
    measure(&seconds, std::io::stdout())
}
