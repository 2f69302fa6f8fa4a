//! The guest's files as the kernel unpacks them into memory: a `newc` archive of cpio
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

/// `S_IFREG` of `linux/stat.h`.
const REGULAR: u32 = 0o100_000;
/// `S_IFDIR` of `linux/stat.h`.
const DIRECTORY: u32 = 0o040_000;
/// `S_IFCHR` of `linux/stat.h`.
const DEVICE: u32 = 0o020_000;
/// Device number of `/dev/console` (Documentation/admin-guide/devices.txt).
const CONSOLE: (u32, u32) = (5, 1);
/// Name that ends an archive.
const END: &str = "TRAILER!!!";

/// Archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory that all may read, and write if it is for temporary files.
    pub(super) fn folder(&mut self, name: &str) {
        let mode = if name == "tmp" { 0o1777 } else { 0o755 };
        self.entry(name, DIRECTORY | mode, (0, 0), &[]);
    }

    /// Adds a program.
    pub(super) fn program(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, REGULAR | 0o755, (0, 0), bytes);
    }

    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, REGULAR | 0o644, (0, 0), bytes);
    }

    /// Adds the console: the kernel opens it for its first process before anything is mounted.
    pub(super) fn console(&mut self) {
        self.entry("dev/console", DEVICE | 0o600, CONSOLE, &[]);
    }

    /// Ends the archive and returns its bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(END, 0, (0, 0), &[]);
        self.bytes
    }

    /// Appends a header of 13 numbers as 8 hexadecimal digits, the name with its end, and the
    /// bytes; each is padded to 4 bytes.
    fn entry(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), bytes: &[u8]) {
        self.entries += 1;
        let name_size = name.len() as u32 + 1;
        // inode, mode, user, group, links, time, size, device of the file system (2), device (2),
        // name's size, checksum
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            bytes.len() as u32,
            0,
            0,
            major,
            minor,
            name_size,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cpio itself reads the archive, if it is installed.
    #[test]
    fn cpio_reads_it() {
        use std::io::Write as _;
        use std::process::{Command, Stdio};
        let mut archive = Archive::default();
        archive.folder("tmp");
        archive.program("init", b"seven b");
        archive.file("commands", b"[]");
        let bytes = archive.finish();
        let started = Command::new("cpio")
            .args(["-tv", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut cpio) = started else {
            println!("SKIPPED: no cpio here");
            return;
        };
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listed = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<Vec<&str>> = listed
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let seen: Vec<_> = lines
            .iter()
            .map(|words| (words[0], words[4], words[words.len() - 1]))
            .collect();
        assert_eq!(
            seen,
            [
                ("drwxrwxrwt", "0", "tmp"),
                ("-rwxr-xr-x", "7", "init"),
                ("-rw-r--r--", "2", "commands")
            ],
            "{listed}"
        );
    }
}
