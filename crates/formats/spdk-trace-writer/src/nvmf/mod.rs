//! An NVMe-oF target: its tracepoints in each era, the stages of a request, and realistic names.

mod request;
mod stages;

pub use request::InFlight;
pub use stages::{Kind, OWNER_BDEV, OWNER_TCP, Stage, Stages, Transport};

use crate::rng::Rng;

/// First owner id that SPDK assigns (`trace_flags_init`, v24.05 on).
pub const FIRST_OWNER: usize = 256;
/// Bdevs of the namespaces; one name fills its 39 bytes, and one is longer.
pub const BDEVS: [&str; 4] = [
    "Malloc0",
    "Nvme0n1",
    "lvs_0/a-logical-volume-with-39-bytes-xx",
    "lvs_0/a-logical-volume-whose-name-is-cut-by-the-recorder",
];

/// Returns a realistic host NQN: a UUID with 68 characters in all, one with `,` and `=`, or a short
/// one.
pub fn host_nqn(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 => format!(
            "nqn.2014-08.com.example:rack={},slot={}",
            rng.below(40),
            rng.below(42)
        ),
        1..=3 => format!("nqn.2014-08.org.nvmexpress:host{}", rng.below(16)),
        _ => {
            let (high, low) = (rng.next_u64(), rng.next_u64());
            let (group, version) = ((high >> 16) & 0xffff, high & 0xfff);
            format!(
                "nqn.2014-08.org.nvmexpress:uuid:{:08x}-{group:04x}-4{version:03x}-{:04x}-{:012x}",
                high >> 32,
                0x8000 | (low >> 50),
                low & 0xffff_ffff_ffff
            )
        }
    }
}
