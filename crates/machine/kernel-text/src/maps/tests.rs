//! Memory maps as the kernel writes them, and broken ones.

use super::*;

const TEXT: &[u8] = b"\
561bd0a00000-561bd0a4a000 r--p 00000000 fe:01 1048 /opt/my app/nvmf tgt
561bd0a4a000-561bd0b00000 r-xp 0004a000 fe:01 1048 /opt/my app/nvmf tgt
561bd1c00000-561bd1c21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r-xp 00001000 fe:01 77                         /lib/libold.so (deleted)
7f0000001000-7f0000002000 rw-p 00000000 00:00 0
7f0000002000-7f0000003000 rw-s 00000000 00:0e 12                         anon_inode:[perf_event]
7f0000003000-7f0000004000 r--p 0004b000 fe:01 1048                       /opt/my app/nvmf tgt
7f0000005000-7f0000006000 r--s 00000000 fe:01 9                          /tmp/a\\012b
";

fn maps() -> ProcMaps {
    ProcMaps::parse(TEXT).unwrap()
}

#[test]
fn reads_every_kind_of_mapping() {
    let maps = maps();
    let mapping = &maps.all()[1];
    assert_eq!(
        (mapping.start, mapping.end),
        (ProcAddr(0x561b_d0a4_a000), ProcAddr(0x561b_d0b0_0000))
    );
    assert_eq!(mapping.offset, FileOffset(0x4a000));
    assert_eq!(
        mapping.device,
        Device {
            major: 0xfe,
            minor: 1
        }
    );
    assert_eq!(mapping.inode, 1048);
    assert!(
        mapping.permissions.execute && !mapping.permissions.write && !mapping.permissions.shared
    );
    assert_eq!(mapping.file(), Some(Path::new("/opt/my app/nvmf tgt")));
    assert_eq!(maps.all()[2].backing, Backing::Special("[heap]".into()));
    let deleted = Backing::File {
        path: "/lib/libold.so".into(),
        deleted: true,
    };
    assert_eq!(maps.all()[3].backing, deleted);
    assert_eq!(maps.all()[4].backing, Backing::Anonymous);
    assert_eq!(
        maps.all()[5].backing,
        Backing::Special("anon_inode:[perf_event]".into())
    );
    assert!(maps.all()[5].permissions.shared);
    assert_eq!(maps.all()[7].file(), Some(Path::new("/tmp/a\nb")));
}

#[test]
fn translates_between_addresses_and_files() {
    let maps = maps();
    let (mapping, offset) = maps.to_file(ProcAddr(0x561b_d0a4_b010)).unwrap();
    assert_eq!((mapping.inode, offset), (1048, FileOffset(0x4b010)));
    let places: Vec<ProcAddr> = maps.addresses(mapping, offset).collect();
    assert_eq!(
        places,
        [ProcAddr(0x561b_d0a4_b010), ProcAddr(0x7f00_0000_3010)]
    );
    assert_eq!(
        maps.to_file(ProcAddr(0x561b_d1c0_0000)),
        None,
        "the heap is no file"
    );
    assert_eq!(maps.to_file(ProcAddr(0x7f00_0000_4000)), None, "a gap");
    assert_eq!(maps.to_file(ProcAddr(0)), None);
}

#[test]
fn lists_each_file_with_code_once() {
    let inodes: Vec<u64> = maps()
        .code_files()
        .iter()
        .map(|mapping| mapping.inode)
        .collect();
    assert_eq!(inodes, [1048, 77]);
}

#[test]
fn says_which_line_is_wrong_and_what_was_expected() {
    let check = |line: &str, expected| {
        let text = format!("561bd1c00000-561bd1c21000 rw-p 00000000 00:00 0 [heap]\n{line}\n");
        assert_eq!(
            ProcMaps::parse(text.as_bytes()),
            Err(TextError::MapsLine { line: 2, expected }),
            "{line}"
        );
    };
    check("nonsense", "an address range in hex");
    check(
        "2000-1000 r--p 0 0:0 0",
        "an address range that does not end before it starts",
    );
    check("1000-2000", "permissions such as r-xp");
    check("1000-2000 r-xq 0 0:0 0", "permissions such as r-xp");
    check("1000-2000 r-xp x 0:0 0", "a file offset in hex");
    check("1000-2000 r-xp +1 0:0 0", "a file offset in hex");
    check("1000-2000 r-xp 0 00 0", "a device such as fe:01");
    check("1000-2000 r-xp 0 00:00 x", "an inode number");
}

#[test]
fn reads_this_process() {
    let Ok(text) = std::fs::read("/proc/self/maps") else {
        testkit::kernel::skip_if_permitted("proc", "no /proc/self/maps");
        return;
    };
    let maps = ProcMaps::parse(&text).unwrap();
    let here = ProcAddr(reads_this_process as fn() as usize as u64);
    let (mapping, offset) = maps.to_file(here).unwrap();
    assert_eq!(mapping.file().unwrap(), std::env::current_exe().unwrap());
    assert!(
        maps.addresses(mapping, offset)
            .any(|address| address == here)
    );
}
