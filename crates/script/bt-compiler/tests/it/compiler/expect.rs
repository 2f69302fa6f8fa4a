//! Expected results in files, which the tests write with `UPDATE_EXPECT=1`.

use std::path::Path;

/// Name of the environment variable.
const UPDATE: &str = "UPDATE_EXPECT";

/// Compares a text with a file.
#[track_caller]
pub(crate) fn file(path: &Path, now: &str) {
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        std::fs::write(path, now).unwrap();
        return;
    }
    let before = std::fs::read_to_string(path).unwrap_or_default();
    if before == now {
        return;
    }
    let most = before.lines().count().max(now.lines().count());
    let differ = (0..most)
        .find(|line| before.lines().nth(*line) != now.lines().nth(*line))
        .unwrap_or(most);
    let around = |text: &str| {
        text.lines()
            .skip(differ.saturating_sub(3))
            .take(10)
            .collect::<Vec<_>>()
            .join("\n")
    };
    panic!(
        "{} is not what is made now, from line {} on. It has\n{}\nand now there is\n{}\nIf that is right: {UPDATE}=1 cargo test",
        path.display(),
        differ + 1,
        around(&before),
        around(now)
    );
}
