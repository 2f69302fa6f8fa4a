//! A file that a page names: a trace for Perfetto, written in the same run.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use text::printable;

/// A trace for Perfetto.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfettoFile {
    /// Path as the user gave it.
    pub name: String,
    /// Address relative to the page; `None` if the file is not in the page's folder or below.
    pub address: Option<String>,
}

impl PerfettoFile {
    /// Describes a file for a page at that path; `None` for the page means standard output.
    pub fn from_paths(page: Option<&Path>, file: &Path) -> Self {
        let page = page.filter(|page| *page != Path::new("-"));
        let below = page
            .and_then(Path::parent)
            .and_then(|folder| file.strip_prefix(folder).ok());
        let is_plain = |path: &&Path| {
            path.components()
                .all(|it| matches!(it, Component::Normal(_)))
        };
        Self {
            name: printable::path(file),
            address: below.filter(is_plain).map(address),
        }
    }
}

/// Returns a relative address: bytes with a meaning in addresses are escaped (RFC 3986, 2.1).
fn address(path: &Path) -> String {
    // No name can be taken for a scheme after this.
    let mut address = "./".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                address.push(char::from(*byte));
            }
            // SANITY: writing to a string doesn't fail.
            _ => drop(write!(address, "%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_beside_the_page_have_an_address() {
        let address = |page: &str, file: &str| {
            PerfettoFile::from_paths(Some(Path::new(page)), Path::new(file)).address
        };
        assert_eq!(
            address("r.html", "slow.pftrace").as_deref(),
            Some("./slow.pftrace")
        );
        assert_eq!(
            address("/tmp/r.html", "/tmp/a/x y\".pftrace").as_deref(),
            Some("./a/x%20y%22.pftrace")
        );
        assert_eq!(
            address("r.html", "javascript:alert(1)").as_deref(),
            Some("./javascript%3Aalert%281%29")
        );
        for (page, file) in [
            ("r.html", "/tmp/x"),
            ("r.html", "../x"),
            ("a/r.html", "x"),
            ("-", "x"),
        ] {
            assert_eq!(address(page, file), None, "{page} {file}");
        }
    }
}
