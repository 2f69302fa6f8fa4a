//! Tests of paths below the root of a process.

use super::*;

#[test]
fn a_process_s_root_is_one_wherever_it_is_named() {
    let split = |path: &str| through_root(Path::new(path));
    assert_eq!(
        split("/proc/7/root/lib/a"),
        Some(("/proc/7/root".into(), "/lib/a".into()))
    );
    assert_eq!(
        split("/proc/self/root/../a"),
        Some(("/proc/self/root".into(), "/../a".into()))
    );
    for other in [
        "/proc/7/root",
        "/proc/7/exe",
        "/proc/7/roots/a",
        "proc/7/root/a",
        "/a",
    ] {
        assert_eq!(split(other), None, "{other}");
    }
}
