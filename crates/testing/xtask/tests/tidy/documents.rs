//! Form of the documents: tables that can be read, an example at the beginning of each page, and a
//! book that has all pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// Limit on the words of a cell in a table. A command or a name in backticks counts as one word.
const MAX_CELL_WORDS: usize = 20;
/// Number of lines at the beginning of a page among which its first example begins.
const MAX_LINES_TO_EXAMPLE: usize = 25;

/// Returns the pages of `docs`, by name: all files in Markdown there, but for the book's contents.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for folder in ["docs", "docs/dev"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|it| it == "md")));
    }
    pages.retain(|path| !path.ends_with("docs/SUMMARY.md"));
    pages.sort();
    assert!(pages.len() > 30, "these are all pages of docs: {pages:?}");
    pages.into_iter().map(named).collect()
}

/// Returns a file's path below the root, and its text.
fn named(path: PathBuf) -> (String, String) {
    let name = path.strip_prefix(root()).unwrap().display().to_string();
    (name, fs::read_to_string(path).unwrap())
}

/// Returns the lines of a text outside of code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.starts_with("    ") {
            lines.push((number, line));
        }
    }
    lines
}

/// Returns the cells of a row of a table, with one word in place of each text in backticks.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    let pieces = row.split('`').enumerate();
    let plain: String = pieces
        .map(|(i, piece)| if i % 2 == 0 { piece } else { "code" })
        .collect();
    plain
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect()
}

#[test]
fn cells_of_tables_are_short() {
    assert_eq!(cells("| `a | b c` d | e f |"), ["code d", "e f"]);
    let others = ["benches/README.md", "fuzz/README.md"].map(|name| named(root().join(name)));
    let mut found = Vec::new();
    for (name, text) in pages().into_iter().chain(others) {
        for (number, line) in prose(&text) {
            let cells = cells(line);
            let long = cells
                .iter()
                .map(|cell| cell.split_whitespace().count())
                .filter(|words| line.starts_with('|') && *words > MAX_CELL_WORDS);
            found.extend(long.map(|words| format!("{name}:{number}: {words} words")));
        }
    }
    assert!(
        found.is_empty(),
        "these cells of tables have more than {MAX_CELL_WORDS} words: shorten them, and put the \
         rest below the table: {found:#?}"
    );
}

/// Returns whether a page shows an example in its first lines: a heading, the question that it
/// answers, and a code block.
fn has_early_example(text: &str) -> bool {
    let mut beginning = text.lines().take(MAX_LINES_TO_EXAMPLE);
    let has_heading = beginning.next().is_some_and(|line| line.starts_with("# "));
    let is_code = |line: &str| line.starts_with("    ") || line.starts_with("```");
    has_heading && beginning.any(|line| is_code(line) && !line.trim().is_empty())
}

#[test]
fn pages_begin_with_an_example() {
    assert!(has_early_example("# A\n\nWhy?\n\n    dptrace list\n"));
    assert!(!has_early_example("# A\n\n| option | |\n"));
    let found: Vec<String> = pages()
        .into_iter()
        .filter(|(_, text)| !has_early_example(text))
        .map(|(name, _)| name)
        .collect();
    assert!(
        found.is_empty(),
        "these pages have no example (a block indented by 4 spaces) in their first \
         {MAX_LINES_TO_EXAMPLE} lines, below the question that they answer: {found:#?}"
    );
}

/// Returns the targets of all links in a text, without the places within pages.
fn links(text: &str) -> BTreeSet<&str> {
    let targets = text
        .match_indices("](")
        .filter_map(|(at, _)| text[at + 2..].split(')').next());
    targets
        .map(|target| target.split('#').next().unwrap())
        .filter(|target| !target.is_empty())
        .collect()
}

#[test]
fn the_book_has_all_pages() {
    let docs = root().join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed = links(&contents);
    let pages = pages();
    let there: BTreeSet<&str> = pages
        .iter()
        .map(|(name, _)| name.strip_prefix("docs/").unwrap())
        .collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/SUMMARY.md: add {missing:?}; remove {gone:?}, which are no pages"
    );
}

/// The book has only what is in `docs`. A link that leaves that folder works on both sides only as
/// an address of the repository.
#[test]
fn links_of_pages_stay_in_the_book() {
    let mut found = Vec::new();
    for (name, text) in pages() {
        let folder = Path::new(&name).parent().unwrap();
        let is_outside = |target: &&str| {
            let ups = target.matches("../").count();
            !target.contains("://") && ups >= folder.components().count()
        };
        let targets = links(&text);
        let outside = targets.into_iter().filter(is_outside);
        found.extend(outside.map(|target| format!("{name}: {target}")));
    }
    assert!(
        found.is_empty(),
        "these links leave docs/: use https://github.com/dptrace/dptrace/blob/main/...: {found:#?}"
    );
}
