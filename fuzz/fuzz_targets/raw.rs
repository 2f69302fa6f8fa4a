//! Any bytes as a raw trace file, and then as one that turns into other bytes while it is read.
#![no_main]

use dptrace_fuzz::{Changing, Version, check_follower, check_raw};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    check_raw(&data.to_vec(), data.len());
    let Some((&changes_at, data)) = data.split_first() else {
        return;
    };
    let (first, later) = data.split_at(data.len() / 2);
    let source = Changing::new(
        Version::new(first),
        Version::new(later),
        u32::from(changes_at),
    );
    check_raw(&source, source.largest());
    let source = source.again();
    check_follower(&source, source.largest());
});
