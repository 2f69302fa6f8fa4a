//! A valid trace file of any era, damaged as the input says: see `script.rs`.
#![no_main]

use dptrace_fuzz::{Changing, apply, base, check_follower, check_raw};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[number, changes_at], script)) = data.split_first_chunk() else {
        return;
    };
    let (first, later) = apply(base(number), script);
    let source = Changing::new(first, later, u32::from(changes_at));
    check_raw(&source, source.largest());
    let source = source.again();
    check_follower(&source, source.largest());
});
