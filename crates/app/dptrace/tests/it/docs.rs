//! The documents are true: the output they show is what the program prints, and the names they
//! mention exist.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use testkit::sources;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn documents() -> Vec<(PathBuf, String)> {
    let folders =
        ["docs", "docs/dev"].map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let docs = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(is_page);
    let top = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ]
    .map(|name| root().join(name));
    docs.chain(top)
        .map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

fn dptrace() -> Command {
    Command::from_std(testkit::command(env!("CARGO_BIN_EXE_dptrace")))
}

/// Asserts that a command prints the output shown for it, in that order; `...` stands for omitted
/// lines. README and the tutorial show the output on a terminal of 80 columns.
fn check_output(command: &str, shown: &[&str], dir: &Path, on_terminal: bool) {
    let words = shell_words(command);
    let out = if on_terminal {
        let (out, succeeded) =
            crate::common::pty::on_terminal_in(dir, 80, &[("NO_COLOR", "1")], &words);
        assert!(succeeded, "`dptrace {command}` fails");
        out
    } else {
        let done = dptrace().args(words).current_dir(dir).assert().success();
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    };
    let mut printed = out.lines();
    let mut skip = false;
    for line in shown {
        if line.trim() == "..." {
            skip = true;
            continue;
        }
        let found = if skip {
            printed.find(|p| p == line)
        } else {
            printed.next()
        };
        assert_eq!(
            found,
            Some(*line),
            "`dptrace {command}` does not print this"
        );
        skip = false;
    }
    assert!(
        skip || printed.next().is_none(),
        "`dptrace {command}` prints more than is shown"
    );
}

/// Splits words as a shell does, with single quotes.
pub(crate) fn shell_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (i, part) in command.split('\'').enumerate() {
        for (j, piece) in part.split(' ').enumerate() {
            match (i % 2 == 0, j > 0) {
                (true, true) => words.push(String::new()),
                (false, true) => words.last_mut().unwrap().push(' '),
                (_, false) => {}
            }
            words.last_mut().unwrap().push_str(piece);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn shown_output_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    dptrace()
        .args(["demo", "--write"])
        .arg(dir.path())
        .assert()
        .success();
    let mut checked = 0;
    for (path, text) in documents() {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(command) = line.strip_prefix("    $ dptrace ") else {
                continue;
            };
            let mut shown = Vec::new();
            while let Some(next) =
                lines.next_if(|l| l.is_empty() || l.starts_with("    ") && !l.starts_with("    $"))
            {
                shown.push(next.strip_prefix("    ").unwrap_or(next));
            }
            while shown.last().is_some_and(|l| l.is_empty()) {
                shown.pop();
            }
            eprintln!("{}: {command}", path.display());
            let on_terminal = path.ends_with("README.md") || path.ends_with("docs/tutorial.md");
            check_output(command, &shown, dir.path(), on_terminal);
            checked += 1;
        }
    }
    assert!(
        checked >= 5,
        "only {checked} commands found in the documents"
    );
}

/// Beginnings of addresses of this repository's files. The book has no other way to link what is
/// outside of `docs`.
const REPOSITORY: [&str; 2] = [
    "https://github.com/dptrace/dptrace/blob/main/",
    "https://github.com/dptrace/dptrace/tree/main/",
];

/// Returns the file that a link names.
fn linked(link: &str, folder: &Path) -> PathBuf {
    let file = link.split([' ', '#']).next().unwrap();
    let ours = REPOSITORY
        .iter()
        .find_map(|beginning| file.strip_prefix(beginning));
    ours.map_or_else(|| folder.join(file), |path| root().join(path))
}

#[test]
fn named_paths_are_there() {
    for (path, text) in documents() {
        let folder = path.parent().unwrap();
        let inline = text
            .match_indices("](")
            .filter_map(|(at, _)| text[at + 2..].split(')').next());
        let by_name = text
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
            .map(|(_, link)| link);
        let code = text.split('`').skip(1).step_by(2);
        let code = code
            .filter(|code| {
                ["crates/", "benches/", "packaging/"]
                    .iter()
                    .any(|start| code.starts_with(start))
            })
            .map(|code| linked(code, &root()));
        let is_file = |link: &&str| {
            !link.starts_with("http") || REPOSITORY.iter().any(|ours| link.starts_with(ours))
        };
        for file in inline
            .chain(by_name)
            .filter(is_file)
            .map(|link| linked(link, folder))
            .chain(code)
        {
            assert!(
                file.exists(),
                "{}: {} is not there",
                path.display(),
                file.display()
            );
        }
    }
}

/// Each promise of `docs/security.md` has a test: the names in its tables are functions with
/// `#[test]`.
#[test]
fn promises_have_their_tests() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let promised = text
        .split("## What is promised")
        .nth(1)
        .unwrap()
        .split("## What is not promised")
        .next()
        .unwrap();
    let rows = promised
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| promise"));
    let mut tests = Vec::new();
    for row in rows {
        let named: Vec<&str> = row
            .rsplit(" | ")
            .next()
            .unwrap()
            .split('`')
            .skip(1)
            .step_by(2)
            .collect();
        assert!(!named.is_empty(), "no test: {row}");
        tests.extend(named);
    }
    let sources: Vec<String> = sources(&root().join("crates"))
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for test in tests {
        let function = format!("\nfn {test}() {{");
        let within = format!("    fn {test}() {{");
        let is_test = |text: &String| text.contains(&function) || text.contains(&within);
        assert!(sources.iter().any(is_test), "{test} is no test");
    }
}
