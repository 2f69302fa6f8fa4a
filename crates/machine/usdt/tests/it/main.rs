//! Tests of static probes' notes and arguments.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod args_arm64;
mod args_values;
mod args_x86;
#[path = "../../../elf/tests/common/mod.rs"]
mod elf_files;
mod fuzz_found;
mod instructions;
mod properties;
mod real_files;
mod usdt_notes;
