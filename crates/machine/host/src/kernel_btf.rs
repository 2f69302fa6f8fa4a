//! The kernel's description of its own types (Documentation/bpf/btf.rst, section 4), as bytes: `typeinfo` reads them.

use std::io;

/// Path of the kernel's BTF. Since Linux 5.4, with `CONFIG_DEBUG_INFO_BTF`.
pub const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Reads the kernel's BTF: about 5 MB.
pub fn kernel_btf() -> io::Result<Vec<u8>> {
    std::fs::read(KERNEL_BTF)
}
