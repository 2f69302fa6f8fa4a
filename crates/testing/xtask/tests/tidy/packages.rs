//! The lists of files of the packages, in the manifest of dptrace.

use std::collections::BTreeSet;
use std::fs;

use super::root;

/// File of a package: its source, its folder on the machine, its mode.
type Asset = (String, String, String);

/// Returns the files of both packages: Debian's and RPM's.
fn assets() -> (BTreeSet<Asset>, BTreeSet<Asset>) {
    let text = fs::read_to_string(root().join("crates/app/dptrace/Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let metadata = &manifest["package"]["metadata"];
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let list = |name: &str| metadata[name]["assets"].as_array().unwrap().clone();
    let deb = list("deb")
        .iter()
        .map(|it| (text(&it[0]), text(&it[1]), text(&it[2])))
        .collect();
    let rpm = list("generate-rpm")
        .iter()
        .map(|it| {
            let folder = text(&it["dest"]).trim_start_matches('/').to_owned();
            (text(&it["source"]), folder, text(&it["mode"]))
        })
        .collect();
    (deb, rpm)
}

/// Distributions have folders of their own for zsh, and Debian's licences are in `copyright`.
#[test]
fn both_packages_have_the_same_files() {
    let (deb, rpm) = assets();
    let common = |assets: BTreeSet<Asset>| -> BTreeSet<Asset> {
        let mut assets = assets;
        assets.retain(|(source, ..)| !source.contains("/zsh/") && !source.ends_with("/LICENSE"));
        assets
    };
    assert!(deb.len() > 10, "{deb:?}");
    assert_eq!(common(deb), common(rpm));
}

#[test]
fn packages_start_nothing() {
    let text = fs::read_to_string(root().join("crates/app/dptrace/Cargo.toml")).unwrap();
    for word in ["maintainer-scripts", "systemd-units", "systemctl"] {
        assert!(!text.contains(word), "{word}");
    }
    // The only one removes folders.
    assert_eq!(text.matches("_script").count(), 1);
    assert!(text.contains("post_uninstall_script"));
    let (deb, _) = assets();
    let units: Vec<_> = deb.iter().filter(|it| it.0.contains("systemd")).collect();
    assert!(
        units.iter().all(|it| it.1 == "usr/lib/systemd/system/"),
        "{units:?}"
    );
}
