//! The libraries of real programs, found without running them.

use std::path::Path;

use host::FilePlace;

#[test]
fn a_program_s_libraries_are_those_that_it_has_mapped() {
    let own = std::env::current_exe().unwrap();
    let found = host::needed_by(&own, None);
    let inodes =
        |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped: Vec<u64> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(4)?.parse().ok())
        .collect();
    assert!(
        found
            .iter()
            .any(|place| place.path().ends_with("libc.so.6")),
        "{found:?}"
    );
    for place in &found {
        assert!(
            mapped.contains(&inodes(place.path())),
            "{place:?} is not what the loader took"
        );
    }
}

#[test]
fn a_file_that_is_no_program_needs_nothing() {
    assert_eq!(host::needed_by(Path::new("/etc/passwd"), None), []);
    assert_eq!(host::needed_by(Path::new("/no/such/file"), None), []);
    let file = FilePlace::at(&std::env::current_exe().unwrap())
        .load()
        .unwrap();
    let dynamic = file.image().unwrap().dynamic();
    assert!(
        dynamic.needed.contains(&b"libc.so.6".to_vec()) && dynamic.rpath.is_empty(),
        "{dynamic:?}"
    );
}
