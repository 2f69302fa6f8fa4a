//! File systems whose files belong to the kernel: opening or reading one can have an effect, or block forever.

/// Numbers of these file systems in statfs(2)'s `f_type`, with their names
/// (`include/uapi/linux/magic.h`, Linux 6.18; those of `pstore`, `efivarfs`, `rdtgroup`, `mqueue`,
/// `fusectl` and `configfs` are in the kernel's sources of each).
const SYSTEMS: [(u64, &str); 25] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x7472_6163, "tracefs"),
    (0x6462_6720, "debugfs"),
    (0x7363_6673, "securityfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0xcafe_4a11, "bpf"),
    (0x6265_6570, "configfs"),
    (0x1cd1, "devpts"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x5a3c_69f0, "apparmorfs"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0x0765_5821, "resctrl"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x6573_5543, "fusectl"),
    (0x1980_0202, "mqueue"),
    (0x6e73_6673, "nsfs"),
    (0x5049_4446, "pidfs"),
    (0x6c6f_6f70, "binder"),
    (0xabba_1974, "xenfs"),
    (0x0904_1934, "anon_inodefs"),
    (0x444d_4142, "dma-buf"),
];

/// Returns the name of a file system, by its number, if its files belong to the kernel.
pub(super) fn without_files(kind: u64) -> Option<&'static str> {
    // The number is signed on some machines.
    let kind = kind & 0xffff_ffff;
    SYSTEMS
        .iter()
        .find(|(number, _)| *number == kind)
        .map(|(_, name)| *name)
}
