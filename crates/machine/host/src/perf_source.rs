//! The kernel's kinds of perf events that have no fixed number.

use std::path::Path;

/// A source of perf events, as `/sys/bus/event_source/devices/NAME` describes it
/// (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerfSource {
    /// Number for `perf_event_attr.type`.
    pub kind: u32,
    /// Bit of `config` that asks for a function's return, if the source has one.
    pub return_bit: Option<u8>,
}

impl PerfSource {
    /// Finds the source of this name, `uprobe` or `kprobe` (since Linux 4.17); `None` if the kernel
    /// was built without it.
    pub fn find(name: &str) -> Option<Self> {
        let folder = Path::new("/sys/bus/event_source/devices").join(name);
        let kind = std::fs::read_to_string(folder.join("type"))
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let format = std::fs::read_to_string(folder.join("format/retprobe")).unwrap_or_default();
        Some(Self {
            kind,
            return_bit: format
                .trim()
                .strip_prefix("config:")
                .and_then(|bit| bit.parse().ok()),
        })
    }
}
