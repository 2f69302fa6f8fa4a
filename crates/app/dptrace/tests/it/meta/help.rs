//! Help and examples of every command.

use super::COMMANDS;
use crate::common::{dptrace, printed};

#[test]
fn every_command_helps_with_examples() {
    for command in COMMANDS {
        let help = printed([command, "--help"]);
        let examples = &help[help.find("Examples:").expect("examples")..];
        assert!(
            examples.lines().all(|line| line.len() <= 80),
            "a small terminal would break them: {examples}"
        );
        assert_eq!(printed(["help", command]), help, "{command}");
    }
    let text = printed(["help", "--all"]);
    assert!(
        COMMANDS
            .iter()
            .all(|command| text.contains(&format!("\n  {command} "))),
        "{text}"
    );
    let done = dptrace()
        .arg("--help")
        .env("COLUMNS", "80")
        .assert()
        .success();
    let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert!(
        text.lines().all(|line| line.len() <= 80),
        "a small terminal would break a line: {text}"
    );
    assert!(
        text.contains("Exit status: 0 done, 1 failed, 2 wrong usage, 3 not permitted"),
        "{text}"
    );
}

/// Returns what `-h` of a command prints at 80 columns.
fn short_help(command: &str) -> String {
    let done = dptrace()
        .args([command, "-h"])
        .env("COLUMNS", "80")
        .assert()
        .success();
    String::from_utf8_lossy(&done.get_output().stdout).into_owned()
}

/// The end of a sentence is often what an option is about.
#[test]
fn no_line_of_short_help_is_cut() {
    let all = printed(["help", "--all"]);
    let commands: Vec<&str> = all
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
        .map(|(name, _)| name)
        .filter(|name| {
            name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !name.starts_with('-')
        })
        .collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let text = short_help(command);
        assert!(!text.contains('\u{2026}'), "{command}:\n{text}");
    }
}

/// `-h` is a screen of its own: one line per option, with text that ends where a thought ends.
#[test]
fn short_help_has_a_line_for_each_option() {
    for command in COMMANDS.iter().chain(&["run", "kernel-delay", "scripts"]) {
        let text = short_help(command);
        assert!(
            text.lines().count() <= 50 && text.lines().all(|line| line.chars().count() <= 80),
            "{command}:\n{text}"
        );
        // The options that begin a line, such as `-i, --input <FILE>`, without `--help`; each once.
        let option = |line: &str| {
            let mut words = line.split_whitespace();
            let name = words.next().and_then(|first| {
                if first.ends_with(',') {
                    words.next()
                } else {
                    Some(first)
                }
            });
            name.and_then(|name| name.strip_prefix("--"))
                .filter(|&name| name != "help" && !name.ends_with('.'))
                .map(str::to_owned)
        };
        let options = |text: &str| {
            text.split("Examples:")
                .next()
                .into_iter()
                .flat_map(str::lines)
                .filter_map(option)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            options(&text),
            options(&printed([command, "--help"])),
            "{command}"
        );
        let more = format!("dptrace {command} --help explains more");
        assert!(text.contains("Examples:") || text.contains(&more), "{text}");
    }
}

/// Prose extends to the terminal's width, but at most to column 100; examples are never broken.
#[test]
fn help_is_wrapped_once() {
    for (columns, widest) in [("60", 60), ("80", 80), ("200", 100)] {
        let done = dptrace()
            .args(["kernel-delay", "--help"])
            .env("COLUMNS", columns)
            .assert()
            .success();
        let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        let (prose, examples) = text.split_once("Examples:").expect("examples");
        // Usage lines keep their form.
        let is_usage = |line: &str| line.contains("dptrace kernel-delay ");
        assert!(
            prose
                .lines()
                .all(|line| line.len() <= widest || is_usage(line)),
            "{text}"
        );
        assert!(
            examples
                .lines()
                .all(|line| line.is_empty() || line.starts_with("  dptrace ")),
            "{text}"
        );
        // A single word on a line after a full one would show that lines were broken twice.
        let budget = prose
            .split("\n\n")
            .find(|part| part.starts_with("Each thread's time budget"))
            .expect("prose");
        let full = budget
            .lines()
            .rev()
            .skip(1)
            .all(|line| line.len() + 20 > widest);
        assert!(full, "{budget}");
    }
}

/// All help of all commands, hidden ones included, fits a terminal of 80 columns.
#[test]
fn all_help_fits_80_columns() {
    let overview = printed(["help", "--all"]);
    let commands = overview
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let is_command = |word: &&str| {
        word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
    };
    let mut commands: Vec<_> = commands.filter(is_command).collect();
    commands.retain(|command| overview.contains(&format!("\n  {command:12}  ")));
    assert!(
        COMMANDS.iter().all(|command| commands.contains(command)),
        "{commands:?}"
    );
    commands.push("demo-target");
    let of_commands = commands
        .iter()
        .flat_map(|command| [vec![*command, "-h"], vec![*command, "--help"]]);
    for args in of_commands.chain([vec!["-h"], vec!["--help"], vec!["help", "--all"]]) {
        let done = dptrace()
            .args(&args)
            .env("COLUMNS", "80")
            .assert()
            .success();
        let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        let long: Vec<_> = text
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect();
        assert!(long.is_empty(), "{args:?}: {long:#?}");
    }
}

/// Every option that an example shows exists.
#[test]
fn examples_use_options_that_exist() {
    for command in ["trace", "latency"] {
        let help = printed([command, "--help"]);
        let (options, examples) = help.split_once("Examples:").expect("examples");
        for line in examples
            .lines()
            .filter(|line| line.contains(&format!("dptrace {command}")))
        {
            for option in line
                .split_whitespace()
                .filter(|word| word.starts_with("--"))
            {
                assert!(options.contains(option), "{command}: {option}: {line}");
            }
        }
    }
}
