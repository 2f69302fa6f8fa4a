//! Losses of a script are counted and reported, and strings are read even from memory that the
//! process has not touched.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::compile;
use crate::common::kernel::{PROGRAM, Process, kernel, needs};
use crate::common::run::run;
use tempfile::TempDir;

/// Source of a program that passes a function the addresses of texts in a mapped file, which it has
/// not touched itself. Each text begins 6 bytes before the end of a page; one address is invalid.
const SOURCE: &str = r#"
#include <fcntl.h>
#include <sys/mman.h>
__attribute__((noinline)) void report(const char *text, long number)
{
    __asm__ volatile("" ::"r"(text), "r"(number) : "memory");
}
int main(int count, char **words)
{
    char *map = mmap(0, 64 * 4096, PROT_READ, MAP_PRIVATE, open(words[1], O_RDONLY), 0);
    madvise(map, 64 * 4096, MADV_RANDOM);
    for (long page = 0; page < 32; page++)
        report(map + page * 2 * 4096 + 4090, page);
    report((const char *)16, -1);
    return count != 2;
}
"#;
const PAGE: usize = 4096;
const TEXTS: usize = 32;

/// The program, and the file that it maps.
struct Teller {
    folder: TempDir,
}

impl Teller {
    fn build() -> Option<Self> {
        if !needs("cc") {
            return None;
        }
        let teller = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let mut bytes = vec![0; 2 * TEXTS * PAGE];
        for number in 0..TEXTS {
            let text = format!("text number {number}");
            let start = number * 2 * PAGE + PAGE - 6;
            bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
        }
        std::fs::write(teller.path("texts"), bytes).unwrap();
        compile(teller.folder.path(), "teller", SOURCE, &["-O1"]);
        Some(teller)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a script attached to the function; returns its standard output and standard error.
    fn run(&self, options: &[&str], before: &str, body: &str) -> (String, String) {
        let program = self.path("teller").display().to_string();
        let command = format!("{program} {}", self.path("texts").display());
        let script = format!("{before} uprobe:{program}:report {{ {body} }}");
        run(&[options, &["-e", &script, "-c", &command]].concat())
    }
}

#[test]
fn strings_that_nobody_has_looked_at_are_read() {
    let Some(_alone) = kernel() else { return };
    let Some(teller) = Teller::build() else {
        return;
    };
    let mut expected = String::new();
    (0..TEXTS).for_each(|number| writeln!(expected, "{number} text number {number} text").unwrap());
    expected += "-1  \\x00\\x00\\x00\\x00\n";
    let (out, err) = teller.run(
        &[],
        "",
        r#"printf("%ld %s %r\n", arg1, str(arg0), buf(arg0, 4));"#,
    );
    assert_eq!(out.trim_end(), expected.trim_end(), "{err}");
    assert_eq!(
        err,
        "note: 1 string empty: nothing could be read at the address (-k reports where in the script)\n"
    );
    // A null pointer is no lost string.
    assert_eq!(teller.run(&[], "", "@[str(arg0 - arg0)] = count();").1, "");
    // As a map key, through scratch memory.
    let (out, err) = teller.run(&[], "", "@[str(arg0)] = count();");
    (0..TEXTS).for_each(|number| {
        assert!(
            out.contains(&format!("@[text number {number}]: 1\n")),
            "{out}{err}"
        );
    });
}

#[test]
fn strings_that_are_cut_are_counted_and_those_that_just_fit_are_not() {
    let Some(_alone) = kernel() else { return };
    let Some(teller) = Teller::build() else {
        return;
    };
    // "text number 9" has 14 bytes with its end, and 22 texts are longer.
    let (out, err) = teller.run(
        &[],
        "config = { max_strlen = 14 }",
        r#"if (arg1 >= 0) { printf("%s\n", str(arg0)); }"#,
    );
    assert!(
        out.contains("text number 9\n") && out.contains("text number 31..\n"),
        "{out}"
    );
    assert!(
        err.starts_with(
            "note: 22 strings cut: longer than max_strlen allows (config = { max_strlen = N }"
        ),
        "{err}"
    );
    // An explicit length counts as no loss, computed or not.
    for length in ["13", "$n"] {
        let body = format!("if (arg1 == 31) {{ $n = 13; print(str(arg0, {length})); }}");
        let (out, err) = teller.run(&[], "", &body);
        assert_eq!(
            (out.trim_end_matches('\n'), err.as_str()),
            ("text number ", "")
        );
    }
}

#[test]
fn failed_reads_are_reported_with_their_place_on_request() {
    let Some(_alone) = kernel() else { return };
    let Some(teller) = Teller::build() else {
        return;
    };
    let (_, err) = teller.run(
        &["-k"],
        "",
        "print(str(arg0)); @[1] = *(uint64 *)(arg0 - arg0); print(@[2]); @n[1] = sum(1); $n = @n[2];",
    );
    let expected = [
        "-e:1:N: WARNING: Bad address\nAdditional Info - helper: probe_read_user_str, retcode: -14\n",
        "-e:1:N: WARNING: Bad address\nAdditional Info - helper: probe_read_user, retcode: -14\n",
        "-e:1:N: WARNING: the map has no such key\n\
         Additional Info - helper: map_lookup_elem, retcode: 0\n",
        "-e:1:N: WARNING: the map has no such key\n\
         Additional Info - helper: map_lookup_percpu_elem, retcode: 0\n",
    ];
    let columns = regex_lite::Regex::new(r"-e:1:\d+-\d+: ").unwrap();
    let messages = columns.replace_all(&err, "-e:1:N: ").into_owned();
    for words in expected {
        assert_eq!(messages.matches(words).count(), 1, "{words}{err}");
    }
    assert!(
        messages.contains("note: -e:1:N: 33 calls of the helper failed\n"),
        "{err}"
    );
    assert!(
        messages.contains("note: -e:1:N: 33 lookups found no such key\n"),
        "{err}"
    );
    // Each warning has the line, with a mark under the place.
    let at = err.find("print(@[2])").unwrap() + "print(".len();
    let line = err[..at].rfind('\n').unwrap() + 1;
    assert!(
        err.contains(&format!("\n{}~~~~\n", " ".repeat(at - line))),
        "{err}"
    );
    // Without -k the script has to check for errors itself.
    let (_, err) = teller.run(&[], "", "@[1] = *(uint64 *)(arg0 - arg0); print(@[2]);");
    assert_eq!(err, "");
}

#[test]
fn permanent_failures_are_reported_with_place_and_count() {
    let Some(_alone) = kernel() else { return };
    let script = "config = { max_map_keys = 1 } begin { @n = 0; @m[1] = 1; for ($i : 0..5) { print(7 / (uint64)@n); \
                  @m[$i + 2] = 1; @c[$i] = count(); } print(7 % (uint64)@n); }";
    let (out, err) = run(&["-e", script]);
    assert!(out.starts_with("1\n1\n1\n1\n1\n1\n\n\n"), "{out}");
    let zero = "WARNING: division by 0: the result is taken to be 1";
    assert_eq!(err.matches(zero).count(), 2, "{err}");
    assert!(err.contains(": 5 divisions were by 0\n"), "{err}");
    let full = "WARNING: the map is full: it has no room for another key";
    assert_eq!(err.matches(full).count(), 2, "{err}");
    assert!(
        err.contains(": 5 values were not stored: the map was full\n"),
        "{err}"
    );
    assert!(
        err.contains(": 4 values were not stored: the map was full\n"),
        "{err}"
    );
    assert_eq!(run(&["--no-warnings", "-e", script]), (out, String::new()));
    let (out, err) = run(&[
        "-f",
        "json",
        "-e",
        "begin { @n = 0; print(7 / (uint64)@n); }",
    ]);
    let expected = "{\"type\": \"runtime_error\", \"msg\": \"division by 0:";
    assert!(
        out.contains(expected)
            && out.contains("\"filename\": \"stdin\", \"line\": 1, \"col\": 23}"),
        "{out}"
    );
    assert_eq!(err, "");
}

#[test]
fn events_that_do_not_fit_are_counted() {
    let Some(_alone) = kernel() else { return };
    let (out, err) = run(&[
        "-e",
        "config = { perf_rb_pages = 1 } begin { for ($i : 0..100000) { printf(\"%d\\n\", $i); } }",
    ]);
    let shown = out.lines().filter(|line| !line.is_empty()).count();
    assert!(shown < 100_000, "all fit");
    assert!(
        err.starts_with(&format!(
            "note: {} events lost: the ring buffer was full",
            100_000 - shown
        )),
        "{err}"
    );
}

#[test]
fn failures_are_reported_while_the_script_runs() {
    let Some(_alone) = kernel() else { return };
    let script = "begin { @zero = 0; } interval:ms:20 { @one = 5 / (uint64)@zero; }";
    let mut command = testkit::command(PROGRAM);
    command
        .args(["run", "-e", script])
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped());
    let mut process = Process::start(&mut command);
    process.wait_for("-e:1:46-63: WARNING: division by 0:");
    process.signal("INT");
    let (status, out, err) = process.end();
    assert!(
        status.success() && out.contains("@one: 1\n"),
        "{out}{err:?}"
    );
    assert_eq!(
        err.iter().filter(|line| line.contains("WARNING")).count(),
        1,
        "{err:?}"
    );
}
