//! Members of folders that others made: dptrace does not wait for a pipe in place of a file, does
//! not take holes for content, and does not load a large file into memory.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use capture::Timestamp;
use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;

use super::limited;
use crate::common::scenes::{add_rings, write_absences};

/// Limit on the address space of dptrace here, in MiB: the program, its stacks and its buffers.
const ADDRESS_SPACE_MIB: u64 = 150;

/// Metadata of a DPDK trace (Common Trace Format 1.8) whose events have 4096 bytes.
const DESCRIPTION: &str = r#"/* CTF 1.8 */
typealias integer {size = 8; base = x;} := uint8_t;
typealias integer {size = 16; base = x;} := uint16_t;
typealias integer {size = 32; base = x;} := uint32_t;
typealias integer {size = 8; signed = false; encoding = ASCII; } := string_bounded_t;
trace { major = 1; minor = 8; uuid = "00112233-4455-6677-8899-aabbccddeeff"; byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; }; };
env { dpdk_version = "DPDK 9"; };
clock { name = "dpdk"; freq = 3000000000; offset_s = 100; offset = 1500000000; };
typealias integer { size = 48; align = 1; signed = false; map = clock.dpdk.value; } := uint48_clock_dpdk_t;
stream { packet.context := struct { uint32_t cpu_id; string_bounded_t name[32]; };
    event.header := struct { uint48_clock_dpdk_t timestamp; uint16_t id; } align(64); };
event { id = 0; name = "large"; fields := struct { uint8_t blob[4088]; }; };
"#;

/// Makes a folder with a capture of threads.
fn capture() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("x.capture");
    fs::create_dir(&folder).unwrap();
    let begin = Timestamp {
        utc: "2026-11-23T06:32:00Z".to_owned(),
        boot_nanos: 1_000_000,
    };
    write_absences(&folder, begin, b"other");
    (dir, folder)
}

/// Makes a folder with a DPDK trace; also returns its file of events, which is still empty.
fn ctf() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("metadata"), DESCRIPTION).unwrap();
    let channel = dir.path().join("channel0_0");
    let uuid = (0..16_u8).map(|nth| nth * 0x11);
    let mut head: Vec<u8> = 0xc1fc_1fc1_u32
        .to_le_bytes()
        .into_iter()
        .chain(uuid)
        .collect();
    head.resize(56, b'w');
    fs::write(&channel, head).unwrap();
    (dir, channel)
}

/// Runs a command; returns its output and whether it succeeded.
#[track_caller]
fn said(args: &[&str]) -> (String, bool) {
    let output = limited(ADDRESS_SPACE_MIB, args);
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (text, output.status.success())
}

fn to_fifo(path: &Path) {
    let _ = fs::remove_file(path);
    mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).unwrap();
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    for member in ["meta.json", "trace.rings", "kernel.events"] {
        let (_dir, folder) = capture();
        to_fifo(&folder.join(member));
        let folder = folder.to_str().unwrap();
        for args in [
            &["timeline", folder][..],
            &["trace", "-i", folder],
            &["trace", "--info", "-i", folder],
            &["latency", folder],
            &["report", folder],
            &["export", folder, "--parquet", "/nowhere"],
        ] {
            let (text, success) = said(args);
            assert!(
                !success && text.contains(member) && text.contains("not a regular file"),
                "{args:?}: {text}"
            );
        }
    }
    // Without objects, the rest is still printed.
    let (_dir, folder) = capture();
    to_fifo(&folder.join("objects.txt"));
    assert!(said(&["timeline", folder.to_str().unwrap()]).1);
    let (dir, channel) = ctf();
    to_fifo(&channel);
    let (text, success) = said(&["trace", "-i", dir.path().to_str().unwrap()]);
    assert!(!success && text.contains("no file of events"), "{text}");
}

#[test]
fn holes_are_no_content() {
    const CLAIMED: u64 = 3 << 30;
    let (_dir, folder) = capture();
    add_rings(&folder);
    let objects = fs::File::create(folder.join("objects.txt")).unwrap();
    (&objects)
        .write_all(b"spdk:nvmf_tcp_qpair tsc=0x1\n")
        .unwrap();
    objects.set_len(CLAIMED).unwrap();
    let folder = folder.to_str().unwrap();
    for args in [
        &["timeline", folder][..],
        &["report", folder],
        &["latency", folder],
        &["trace", "-i", folder],
        &["export", folder, "--parquet", "/nowhere"],
    ] {
        let (text, success) = said(args);
        assert!(
            !success && text.contains("the rest are holes"),
            "{args:?}: {text}"
        );
    }
    let (dir, channel) = ctf();
    fs::File::options()
        .append(true)
        .open(channel)
        .unwrap()
        .set_len(CLAIMED)
        .unwrap();
    let (text, success) = said(&["trace", "-i", dir.path().to_str().unwrap()]);
    assert!(
        !success && text.contains("channel0_0") && text.contains("the rest are holes"),
        "{text}"
    );
}

/// A file of events that is larger than the available memory.
#[test]
fn events_of_dpdk_are_read_as_they_come() {
    /// Size beyond the program's limit on address space, of which it needs some 50 MiB itself.
    const MIB: u64 = 100;
    let (dir, channel) = ctf();
    let mut file = fs::File::options().append(true).open(channel).unwrap();
    let piece = vec![0; 1 << 20];
    for _ in 0..MIB {
        file.write_all(&piece).unwrap();
    }
    let output = limited(
        MIB,
        &["trace", "--info", "-i", dir.path().to_str().unwrap()],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.contains(&format!(" {} ", (MIB << 20) / 4096)),
        "{text}"
    );
}
