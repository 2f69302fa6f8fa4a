//! Writes the seeds of the raw targets: `cargo +nightly run --example seeds`, in this folder.
//!
//! Of `raw`, the small files (era F); of `raw_structured`, every base undamaged and with a slot overwritten.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for target in ["raw", "raw_structured"] {
        fs::create_dir_all(seeds.join(target))?;
    }
    for number in dptrace_fuzz::numbers() {
        let file = &dptrace_fuzz::base(number).file;
        if file.bytes.len() < 10_000 {
            fs::write(seeds.join(format!("raw/{number:03}")), &file.bytes)?;
        }
        let script = [number, 40, 3, 7, 1, 50, 0, 7];
        fs::write(
            seeds.join(format!("raw_structured/{number:03}-whole")),
            &script[..2],
        )?;
        fs::write(
            seeds.join(format!("raw_structured/{number:03}-slot")),
            script,
        )?;
    }
    Ok(())
}
