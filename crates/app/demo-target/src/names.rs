//! The names of subsystems, hosts and so on. Probes pass them as C strings.

use std::ffi::{CStr, CString};
use std::fmt::Write as _;

use spdk_trace_writer::Rng;
use spdk_trace_writer::nvmf::host_nqn;

/// Limit of NVMe on an NQN, in bytes (NVM Express Base Specification 2.0, 4.5).
const NQN_MAX: usize = 223;
/// Name of the target, which `nvmf_tgt_add_transport` passes.
pub(crate) const TARGET: &CStr = c"nvmf_tgt";
/// Names of the NVMe controllers behind the bdevs.
pub(crate) const BDEV_CTRLRS: [&CStr; 2] = [c"Nvme0", c"Nvme1"];
/// Address on which all subsystems listen.
pub(crate) const ADDRESS: &CStr = c"127.0.0.1";
/// Port on which all subsystems listen.
pub(crate) const SERVICE: &CStr = c"4420";

/// Qualified names (NQNs) of subsystems and hosts.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) subsystems: Vec<CString>,
    pub(crate) hosts: Vec<CString>,
}

impl Names {
    /// Creates the names. The last subsystem's NQN is long. One host's has a blank and commas, one
    /// host's the maximum length.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x6e61_6d65);
        let mut subsystems: Vec<String> = (1..=3)
            .map(|n| format!("nqn.2016-06.io.spdk:cnode{n}"))
            .collect();
        subsystems.push(filled("nqn.2016-06.io.spdk:cnode4-with-a-long-name", 130));
        let odd = format!(
            "nqn.2014-08.com.example:rack {}, slot={},unit=b",
            rng.below(40),
            rng.below(42)
        );
        let longest = filled(
            "nqn.2014-08.com.example:host-with-the-longest-name",
            NQN_MAX,
        );
        let hosts = [odd, longest]
            .into_iter()
            .chain((0..10).map(|_| host_nqn(&mut rng)));
        let c_string = |text: String| CString::new(text).unwrap_or_default();
        Self {
            subsystems: subsystems.into_iter().map(c_string).collect(),
            hosts: hosts.map(c_string).collect(),
        }
    }
}

/// Returns a text padded with numbers, which shows where it was cut.
fn filled(start: &str, size: usize) -> String {
    let mut text = start.to_owned();
    let mut number = 0;
    while text.len() < size {
        // SANITY: writing to a String does not fail, so the result says nothing.
        let _ = write!(text, "-{number:03}");
        number += 1;
    }
    text.truncate(size);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_every_kind() {
        let names = Names::new(7);
        let hosts: Vec<_> = names
            .hosts
            .iter()
            .map(|host| host.to_str().unwrap())
            .collect();
        assert!(hosts.iter().any(|host| host.len() == NQN_MAX));
        assert!(
            hosts
                .iter()
                .any(|host| host.contains(' ') && host.contains(','))
        );
        assert!(
            hosts
                .iter()
                .chain(&[names.subsystems[3].to_str().unwrap()])
                .all(|nqn| nqn.starts_with("nqn.20"))
        );
        assert_eq!(names.hosts, Names::new(7).hosts);
        assert_ne!(names.hosts, Names::new(8).hosts);
    }
}
