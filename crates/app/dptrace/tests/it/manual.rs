//! Man pages: their contents, and that groff and mandoc accept them without complaint.

use std::path::{Path, PathBuf};

use crate::common::{dptrace, printed};
use tempfile::TempDir;

fn pages() -> (TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(printed(["man".as_ref(), dir.path().as_os_str()]), "");
    let mut pages: Vec<_> = std::fs::read_dir(dir.path())
        .expect("read")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    pages.sort();
    (dir, pages)
}

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).expect("a page")
}

#[test]
fn each_command_has_a_page_unless_it_is_hidden() {
    let (_dir, pages) = pages();
    let overview = printed(["help", "--all"]);
    let names: Vec<_> = pages
        .iter()
        .filter_map(|page| page.file_stem()?.to_str())
        .collect();
    assert!(names.contains(&"dptrace") && names.len() > 10, "{names:?}");
    for name in names
        .iter()
        .filter_map(|name| name.strip_prefix("dptrace-"))
    {
        assert!(overview.contains(&format!("\n  {name} ")), "{name}");
    }
    for line in overview
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
    {
        let is_command = line
            .0
            .chars()
            .all(|char| char.is_ascii_lowercase() || char == '-');
        assert!(
            !is_command
                || line.0.starts_with('-')
                || names.contains(&&*format!("dptrace-{}", line.0)),
            "{line:?}"
        );
    }
}

#[test]
fn every_page_has_its_sections_and_its_examples_line_by_line() {
    let (_dir, pages) = pages();
    for page in pages {
        let text = text(&page);
        let sections: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXAMPLES",
            "EXIT STATUS",
            "ENVIRONMENT",
            "SEE ALSO",
        ] {
            assert!(
                sections.contains(&&*format!("\"{section}\"")),
                "{}: {section} in {sections:?}",
                page.display()
            );
        }
        let examples = text
            .split(".SH \"EXAMPLES\"")
            .nth(1)
            .and_then(|rest| rest.split(".SH").next())
            .expect("examples");
        assert!(examples.matches("\n.nf\n").count() >= 2, "{examples}");
        assert!(
            !text.contains("demo\\-target") && !text.contains("file\\-activation"),
            "hidden: {}",
            page.display()
        );
        // Pages referred to exist, if they are ours.
        for name in text
            .split("\\fBdptrace\\-")
            .skip(1)
            .filter_map(|rest| rest.split_once("\\fR(1)"))
            .map(|it| it.0)
        {
            let name = name.replace("\\-", "-");
            assert!(
                page.with_file_name(format!("dptrace-{name}.1")).exists(),
                "{}: {name}",
                page.display()
            );
        }
    }
}

#[test]
fn an_example_can_be_pasted_and_its_purpose_is_above_it() {
    let (_dir, pages) = pages();
    let list = text(
        &pages
            .iter()
            .find(|page| page.ends_with("dptrace-list.1"))
            .expect("the page of list")
            .clone(),
    );
    let example = "USDT probes, with arguments:\n.PP\n.RS 4\n.nf\n\\fBdptrace list ";
    assert!(list.contains(example), "{list}");
    assert!(
        list.contains("\\(aqspdk:nvmf_*\\(aq"),
        "quotes as they are typed: {list}"
    );
}

#[test]
fn groff_and_mandoc_take_every_page() {
    let (_dir, pages) = pages();
    // At a width of 80 columns, groff warns about unknown macros and lines that it cannot fill.
    for (program, arguments) in [
        ("groff", &["-man", "-ww", "-Tutf8", "-rLL=80n", "-z"][..]),
        ("mandoc", &["-Tlint", "-Wwarning"]),
    ] {
        for page in &pages {
            match testkit::command(program).args(arguments).arg(page).output() {
                Ok(done) => {
                    let messages = String::from_utf8_lossy(&done.stderr).into_owned()
                        + &String::from_utf8_lossy(&done.stdout);
                    // Only a release knows the date of its commit.
                    let wrong: Vec<_> = messages
                        .lines()
                        .filter(|line| !line.contains("missing date"))
                        .collect();
                    assert!(wrong.is_empty(), "{program}: {wrong:?}\n{}", text(page));
                }
                Err(error) => {
                    testkit::kernel::skip_if_permitted(
                        "readers of man pages",
                        &format!("no {program} here: {error}"),
                    );
                }
            }
        }
    }
}

#[test]
fn man_pages_need_their_directory() {
    let done = dptrace()
        .args(["man", "/no/such/directory"])
        .assert()
        .code(1);
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(messages.contains("/no/such/directory"), "{messages}");
}
