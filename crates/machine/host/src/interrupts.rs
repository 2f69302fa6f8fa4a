//! Names of the machine's hard interrupts (Documentation/ABI/testing/sysfs-kernel-irq).

use std::collections::HashMap;
use std::path::Path;

use crate::proc;

/// Folder with a folder for each interrupt, by number.
const INTERRUPTS: &str = "/sys/kernel/irq";

/// Returns the names of the interrupts that a driver asked for, as the kernel has them: those of
/// several drivers are separated by commas.
pub fn interrupt_names() -> HashMap<u32, String> {
    let folder = Path::new(INTERRUPTS);
    let actions = |number: &u32| {
        proc::text(folder.join(number.to_string()).join("actions")).unwrap_or_default()
    };
    let named = proc::numbers(folder)
        .into_iter()
        .map(|number| (number, actions(&number).trim().to_owned()));
    named.filter(|(_, name)| !name.is_empty()).collect()
}
