//! Work that devices bring to CPUs: interrupts, queues of network devices.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use kernel_text::cpus::CpuSet;
use kernel_text::interrupts::Counts;

use super::root::{Reading, Root};

/// A device's interrupt (Documentation/core-api/irq/irq-affinity.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Interrupt number.
    pub number: u32,
    /// Devices that asked for it, separated by commas.
    pub name: String,
    /// CPUs to which it may be delivered.
    pub affinity: CpuSet,
    /// CPUs to which it is delivered; all of them if the kernel does not say.
    pub effective: CpuSet,
    /// True if root can write its file. Since Linux 6.12 (`register_irq_proc` in kernel/irq/proc.c)
    /// the file of an interrupt that can't be moved is read-only; before, all can be written.
    pub has_writable_file: bool,
}

/// Reads all interrupts in `/proc/interrupts`.
pub(super) fn interrupts(root: &Root, counts: Option<&Counts>) -> Vec<Interrupt> {
    let numbers = crate::proc::numbers(&root.path("/proc/irq"));
    let read = |&number: &u32| {
        // Interrupts that nobody asked for have no line.
        let row = counts?.row(&number.to_string())?;
        let file = format!("/proc/irq/{number}/smp_affinity_list");
        let affinity = root.list(&file).ok()?;
        let effective = root.list(&format!("/proc/irq/{number}/effective_affinity_list"));
        let actions = root
            .text(&format!("/sys/kernel/irq/{number}/actions"))
            .unwrap_or_default();
        let name = if actions.trim().is_empty() {
            last_word(&row.what)
        } else {
            actions.trim().to_owned()
        };
        Some(Interrupt {
            number,
            name,
            effective: effective
                .ok()
                .filter(|cpus| !cpus.is_empty())
                .unwrap_or_else(|| affinity.clone()),
            affinity,
            has_writable_file: fs::metadata(root.path(&file))
                .is_ok_and(|file| file.permissions().mode() & 0o200 != 0),
        })
    };
    numbers.iter().filter_map(read).collect()
}

fn last_word(text: &str) -> String {
    text.split_whitespace()
        .next_back()
        .unwrap_or_default()
        .to_owned()
}

/// A queue of a network device (Documentation/networking/scaling.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The device.
    pub device: String,
    /// The queue: `rx-0`, `tx-0`.
    pub name: String,
    /// CPUs in its mask, of RPS or of XPS.
    pub cpus: CpuSet,
}

/// Reads the queues that have some CPU in their mask, of the devices of this network namespace.
pub(super) fn queues(root: &Root) -> Reading<Vec<Queue>> {
    const FOLDER: &str = "/sys/class/net";
    let mut queues = Vec::new();
    for device in root.names(FOLDER)? {
        for name in root
            .names(&format!("{FOLDER}/{device}/queues"))
            .unwrap_or_default()
        {
            let file = if name.starts_with("rx-") {
                "rps_cpus"
            } else {
                "xps_cpus"
            };
            // A device with one queue for sending has no mask: the kernel answers ENOENT.
            let Ok(cpus) = root.mask(&format!("{FOLDER}/{device}/queues/{name}/{file}")) else {
                continue;
            };
            if !cpus.is_empty() {
                queues.push(Queue {
                    device: device.clone(),
                    name,
                    cpus,
                });
            }
        }
    }
    Ok(queues)
}
