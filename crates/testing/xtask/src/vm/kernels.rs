//! Debian's cloud kernels, from the mirror that this machine's own apt uses.
//!
//! apt works in a separate folder here (apt.conf(5), `Dir`): the machine's lists and packages do not
//! change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::hardware::Hardware;

/// Tested releases: before attach cookies and links of perf events (5.15), before uprobe_multi
/// (6.6), after.
pub(super) const RELEASES: [&str; 3] = ["5.10", "6.1", "6.12"];
/// Suites that hold them (Debian 11, 12, 13).
const SUITES: [&str; 3] = ["bullseye", "bookworm", "trixie"];
/// Package that depends on each suite's newest cloud kernel, without the machine's name at its end.
const META_PACKAGE: &str = "linux-image-cloud-";
/// Keys that sign Debian's archives (package debian-archive-keyring).
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Module of Open vSwitch's datapath and its dependencies, in the order of loading, below the
/// folder `kernel` of a package's modules. Not every kernel has all of them.
const MODULES: [&str; 9] = [
    "lib/libcrc32c",
    "net/ipv4/netfilter/nf_defrag_ipv4",
    "net/ipv6/netfilter/nf_defrag_ipv6",
    "net/netfilter/nf_conntrack",
    "net/netfilter/nf_nat",
    "net/netfilter/nf_conncount",
    "net/nsh/nsh",
    "net/psample/psample",
    "net/openvswitch/openvswitch",
];
/// Folders of a package's modules (Debian 13 has them below `usr`).
const MODULE_FOLDERS: [&str; 2] = ["usr/lib/modules", "lib/modules"];
/// Suffixes of the names of modules.
const MODULE_ENDINGS: [&str; 2] = ["ko", "ko.xz"];

/// Kernel that can be booted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kernel {
    /// Hardware that it is for.
    pub(super) hardware: &'static Hardware,
    /// Requested release: `5.10`.
    pub(super) release: String,
    /// Name of the package.
    pub(super) package: String,
    /// Image to boot.
    pub(super) image: PathBuf,
    /// Modules that checks need, in the order of loading.
    pub(super) modules: Vec<PathBuf>,
}

/// Returns the kernels whose releases start with these. Kernels in the folder from an earlier run
/// are not fetched again.
pub(super) fn fetch(
    hardware: &'static Hardware,
    folder: &Path,
    releases: &[String],
) -> anyhow::Result<Vec<Kernel>> {
    let mut apt = None;
    let mut kernels = Vec::new();
    for release in releases {
        let place = folder.join(release);
        if let Some(known) = kernel_in(hardware, &place, release)? {
            kernels.push(known);
            continue;
        }
        let apt = match &apt {
            Some(apt) => apt,
            None => apt.insert(Apt::set_up(&folder.join("apt"), hardware)?),
        };
        let package = apt.kernel_package(release)?;
        println!("fetching {package}");
        fs::create_dir_all(&place).with_context(|| format!("creating {}", place.display()))?;
        apt.run("apt-get", &["download", "--quiet", &package], &place)?;
        let file = only_file(&place, ".deb")?
            .with_context(|| format!("apt-get made no file for {package}"))?;
        run(Command::new("dpkg")
            .arg("-x")
            .arg(&file)
            .arg(place.join("root")))?;
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
        fs::write(place.join("package"), &package)?;
        kernels.push(
            kernel_in(hardware, &place, release)?
                .with_context(|| format!("{package} has no boot/vmlinuz"))?,
        );
    }
    Ok(kernels)
}

/// Returns the kernel that was unpacked here, if any.
fn kernel_in(
    hardware: &'static Hardware,
    place: &Path,
    release: &str,
) -> anyhow::Result<Option<Kernel>> {
    let Ok(package) = fs::read_to_string(place.join("package")) else {
        return Ok(None);
    };
    let boot = place.join("root/boot");
    let image = entries(&boot)?
        .into_iter()
        .find(|(name, _)| name.starts_with("vmlinuz-"));
    let Some((name, image)) = image else {
        return Ok(None);
    };
    let version = name.trim_start_matches("vmlinuz-");
    let modules = modules_in(&place.join("root"), version);
    Ok(Some(Kernel {
        hardware,
        release: release.to_owned(),
        package,
        image,
        modules,
    }))
}

/// Returns the existing modules of [`MODULES`].
fn modules_in(root: &Path, version: &str) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = MODULE_FOLDERS
        .iter()
        .map(|folder| root.join(folder).join(version).join("kernel"))
        .collect();
    let file = |name: &&str| {
        let files = folders
            .iter()
            .flat_map(|folder| MODULE_ENDINGS.map(|end| folder.join(format!("{name}.{end}"))));
        files.into_iter().find(|file| file.exists())
    };
    MODULES.iter().filter_map(file).collect()
}

fn only_file(folder: &Path, ending: &str) -> anyhow::Result<Option<PathBuf>> {
    Ok(entries(folder)?
        .into_iter()
        .find(|(name, _)| name.ends_with(ending))
        .map(|(_, path)| path))
}

fn entries(folder: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let read = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    Ok(read
        .flatten()
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .collect())
}

/// apt with a separate configuration.
struct Apt {
    meta_package: String,
    configuration: PathBuf,
}

impl Apt {
    fn set_up(folder: &Path, hardware: &Hardware) -> anyhow::Result<Self> {
        for below in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(below))
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        let mirror = mirror()?;
        let sources: Vec<_> = SUITES
            .iter()
            .map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))
            .collect();
        fs::write(folder.join("sources.list"), sources.concat())?;
        fs::write(folder.join("status"), "")?;
        let configuration = folder.join("apt.conf");
        fs::write(&configuration, configuration_text(folder, hardware.debian))?;
        let apt = Self {
            meta_package: format!("{META_PACKAGE}{}", hardware.debian),
            configuration,
        };
        apt.run("apt-get", &["update", "--quiet"], folder)?;
        Ok(apt)
    }

    /// Returns the package of the newest kernel of a release, on which the suites' metapackage of
    /// that version depends.
    fn kernel_package(&self, release: &str) -> anyhow::Result<String> {
        let here = Path::new(".");
        let meta = &self.meta_package;
        let versions = self.run("apt-cache", &["madison", meta], here)?;
        let version = version_of(&versions, release).with_context(|| {
            format!("no Debian suite of {SUITES:?} has Linux {release}; there is:\n{versions}")
        })?;
        let shown = self.run("apt-cache", &["show", &format!("{meta}={version}")], here)?;
        let package =
            dependency_of(&shown).with_context(|| format!("{meta} {version} names no kernel"))?;
        Ok(package.to_owned())
    }

    fn run(&self, program: &str, arguments: &[&str], folder: &Path) -> anyhow::Result<String> {
        run(Command::new(program)
            .args(arguments)
            .env("APT_CONFIG", &self.configuration)
            .current_dir(folder))
    }
}

/// Returns a configuration with which apt reads and writes in `folder` only, for that machine.
fn configuration_text(folder: &Path, machine: &str) -> String {
    let at = folder.display();
    format!(
        "Dir::State \"{at}\";\nDir::State::Lists \"{at}/lists\";\nDir::State::status \"{at}/status\";\n\
         Dir::Cache \"{at}/cache\";\nDir::Etc::SourceList \"{at}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
         Acquire::Languages \"none\";\nAcquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         APT::Sandbox::User \"root\";\nAPT::Architecture \"{machine}\";\nAPT::Architectures {{ \"{machine}\"; }};\n"
    )
}

/// Returns the mirror from which this machine's apt gets Debian (apt-get(8), `indextargets`).
pub(crate) fn mirror() -> anyhow::Result<String> {
    let asked = [
        "indextargets",
        "--format",
        "$(SITE) $(RELEASE)",
        "Created-By: Packages",
        "Origin: Debian",
    ];
    let targets = run(Command::new("apt-get").args(asked))?;
    let main = targets
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(_, suite)| SUITES.contains(suite));
    match main {
        Some((site, _)) => Ok(site.to_owned()),
        None => {
            bail!("apt on this machine has no Debian suite of {SUITES:?}; its targets: {targets:?}")
        }
    }
}

/// Returns the version of this release in `apt-cache madison`'s lines
/// (`package | version | source`).
fn version_of<'text>(lines: &'text str, release: &str) -> Option<&'text str> {
    let versions = lines
        .lines()
        .filter_map(|line| line.split('|').nth(1))
        .map(str::trim);
    let mut versions = versions.filter(|version| {
        version
            .strip_prefix(release)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    });
    versions.next()
}

/// Returns the first package of the line `Depends:`.
fn dependency_of(shown: &str) -> Option<&str> {
    shown
        .lines()
        .find_map(|line| line.strip_prefix("Depends: "))?
        .split([' ', ','])
        .next()
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let done = command
        .output()
        .with_context(|| format!("running {}", command.get_program().display()))?;
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "{:?} failed: {}",
        command,
        errors.trim()
    );
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_not_the_beginning_of_another_number() {
        let lines = "p | 6.12.107-1 | m trixie/main\n p |  6.1.176-1 | m bookworm/main\n p | 5.10.223-1 | m\n";
        assert_eq!(version_of(lines, "6.1"), Some("6.1.176-1"));
        assert_eq!(version_of(lines, "6.12"), Some("6.12.107-1"));
        assert_eq!(version_of(lines, "5.1"), None);
    }

    #[test]
    fn modules_are_found_compressed_or_not_in_the_order_of_loading() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("usr/lib/modules/6.12.1-x/kernel");
        for name in [
            "net/openvswitch/openvswitch.ko.xz",
            "net/nsh/nsh.ko",
            "net/nsh/other.ko",
        ] {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), "").unwrap();
        }
        let wanted =
            ["net/nsh/nsh.ko", "net/openvswitch/openvswitch.ko.xz"].map(|name| folder.join(name));
        assert_eq!(modules_in(root.path(), "6.12.1-x"), wanted);
        assert!(modules_in(root.path(), "6.12.1-y").is_empty());
    }

    #[test]
    fn the_kernel_is_the_first_dependency() {
        let shown = "Package: x\nDepends: linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)\n";
        assert_eq!(
            dependency_of(shown),
            Some("linux-image-6.1.0-50-cloud-amd64")
        );
    }
}
