//! Files that the user names: an endless file is an error at once, and so is one that is too long.

use std::fs;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::hostile_files::{run, text};

/// Commands with a placeholder, `FILE`, for a file.
const COMMANDS: [&[&str]; 12] = [
    &["list", "FILE"],
    &["list", "--functions", "FILE"],
    &["trace", "FILE"],
    &["trace", "-i", "FILE"],
    &["trace", "--info", "FILE"],
    &["latency", "FILE"],
    &["trace", "-b", "FILE", "TRACE"],
    &["trace", "-b", "RECORDING", "--objects", "FILE", "TRACE"],
    &["record", "-p", "1", "--objects", "FILE"],
    &["run", "FILE"],
    &["run", "--check", "-e", "uprobe:FILE:main { exit(); }"],
    &["run", "--check", "-e", "usdt:FILE:a:b { exit(); }"],
];

#[test]
fn endless_files_are_refused() {
    let small = crate::common::small::Small::new();
    let [trace, recording, pipe, hole] =
        ["t.trace", "t.recording", "pipe", "hole"].map(|name| small.path(name));
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    fs::File::create(&hole).unwrap().set_len(1 << 40).unwrap();
    let folder = small.dir.path().to_str().unwrap();
    for file in [
        "/dev/zero",
        "/dev/urandom",
        folder,
        hole.to_str().unwrap(),
        pipe.to_str().unwrap(),
    ] {
        for command in COMMANDS {
            // Commands that accept a pipe wait for it, as other programs do.
            let takes_pipes = !command
                .iter()
                .any(|word| *word == "list" || word.contains("probe") || word.contains("usdt"));
            if file.ends_with("pipe") && takes_pipes {
                continue;
            }
            let words: Vec<String> = command
                .iter()
                .map(|word| {
                    let word = word
                        .replace("FILE", file)
                        .replace("TRACE", trace.to_str().unwrap());
                    word.replace("RECORDING", recording.to_str().unwrap())
                })
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = run(&words);
            assert!(!output.status.success(), "{words:?}: {output:?}");
            assert!(text(&output).contains("error"), "{words:?}: {output:?}");
        }
    }
}
