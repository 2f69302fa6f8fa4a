//! The kernel's own library in every process (vdso(7)): a file that exists in memory only.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use kernel_text::maps::Backing;

/// Name of its mapping in `/proc/PID/maps`.
pub const VDSO: &str = "[vdso]";
/// Limit on its size, in bytes: real ones have one or two pages.
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// Returns its bytes, an ELF file: our own, which is that of all processes with our word size.
pub fn vdso() -> Option<Vec<u8>> {
    let own = crate::proc::own_folder();
    let maps = crate::proc::maps(&own).ok()?;
    let ours = |backing: &Backing| matches!(backing, Backing::Special(name) if name == VDSO);
    let mapping = maps.all().iter().find(|mapping| ours(&mapping.backing))?;
    let length = mapping
        .end
        .checked_above(mapping.start)
        .filter(|length| *length <= MAX_VDSO_BYTES)?;
    let mut bytes = vec![0; length as usize];
    // If the program has capabilities of its own, this file is root's (proc(5)).
    let memory = crate::capabilities::with_file_access(|| File::open(own.join("mem"))).ok()?;
    memory.read_exact_at(&mut bytes, mapping.start.0).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use elf::ElfImage;
    use elf::symbols::Functions;

    #[test]
    fn the_vdso_is_an_elf_file_with_functions() {
        let Some(bytes) = super::vdso() else {
            testkit::kernel::skip_if_permitted("vdso", "no vdso here");
            return;
        };
        let image = ElfImage::parse(&bytes).unwrap();
        let functions = Functions::read(&image, None);
        let clock = if cfg!(target_arch = "aarch64") {
            "__kernel_clock_gettime"
        } else {
            "__vdso_clock_gettime"
        };
        assert!(functions.named(clock).next().is_some(), "{functions:?}");
    }
}
