//! Any text as a script, compiled for a made-up kernel and process.
#![no_main]

use compiler_testkit::sample::chosen;
use dptrace_fuzz::compiled::check_compile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // Mostly the usual machine; which of the others is up to the text.
    let sum = text
        .bytes()
        .fold(0usize, |sum, byte| sum.wrapping_mul(31) + usize::from(byte));
    check_compile(text, &chosen(if sum % 4 == 0 { sum / 4 % 16 } else { 0 }));
});
