//! C programs for dptrace to look at.

use std::path::Path;

/// Compiles C in that folder, with these options. Returns the path of the program or library.
#[track_caller]
pub(crate) fn compile(folder: &Path, name: &str, source: &str, options: &[&str]) -> String {
    let (from, to) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&from, source).expect("the folder is ours");
    let mut compiler = testkit::command("cc");
    let built = compiler
        .current_dir(folder)
        .arg("-o")
        .args([&to, &from])
        .args(options)
        .output()
        .expect("it runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    to.display().to_string()
}
