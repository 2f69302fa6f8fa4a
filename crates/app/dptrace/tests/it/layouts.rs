//! Objects and structs of programs whose debug information is of no help: built-in layouts take its
//! place, for `objects -p` and for `inspect`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use tempfile::TempDir;
use testkit::kernel::skip;

const PROGRAM: &str = env!("CARGO_BIN_EXE_dptrace");

/// Source of three connections of one host, as SPDK v24.09 has them in memory; prints the address
/// of the last one.
const DATA: &str = r#"
#include "layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct { struct spdk_nvmf_tgt *tqh_first, **tqh_last; } g_nvmf_tgts;
struct { struct spdk_thread *tqh_first, **tqh_last; } g_threads;
void start(void)
{
    struct spdk_thread *thread = calloc(1, sizeof *thread);
    struct spdk_nvmf_tgt *tgt = calloc(1, sizeof *tgt);
    struct spdk_nvmf_poll_group *group = calloc(1, sizeof *group);
    struct spdk_nvmf_subsystem *subsystem = calloc(1, sizeof *subsystem);
    struct spdk_nvmf_ctrlr *ctrlr = calloc(1, sizeof *ctrlr);
    struct spdk_nvmf_transport *transport = calloc(1, sizeof *transport);
    struct spdk_nvmf_qpair *qpair = 0, **last = (void *)&group->qpairs.tqh_first;
    thread->id = 3;
    strcpy(thread->name, "poll_000");
    thread->tailq.tqe_prev = &g_threads.tqh_first;
    g_threads.tqh_first = thread;
    g_nvmf_tgts.tqh_first = tgt;
    tgt->poll_groups.tqh_first = group;
    group->thread = thread;
    *(char **)&transport->ops = strcpy(calloc(1, 4096), "TCP");
    strcpy((char *)subsystem->subnqn, "nqn.2016-06.io.spdk:cnode1");
    strcpy((char *)ctrlr->hostnqn, "nqn.2014-08.org:host");
    ctrlr->subsys = subsystem;
    for (int qid = 0; qid < 3; qid++) {
        qpair = calloc(1, sizeof *qpair);
        if (!qid) ctrlr->admin_qpair = qpair;
        qpair->qid = qid;
        qpair->state = SPDK_NVMF_QPAIR_ENABLED;
        qpair->ctrlr = ctrlr;
        qpair->group = group;
        qpair->transport = transport;
        *last = qpair;
        last = &qpair->link.tqe_next;
    }
    printf("%p\n", (void *)qpair);
    fflush(stdout);
}
"#;

/// Main program, whose debug information has none of the structs.
const MAIN: &str = r#"
#include <unistd.h>
void start(void);
const char *volatile version = "SPDK v24.09 git sha1 0123456";
int main(void) { start(); for (;;) pause(); }
"#;
/// Source whose debug information has other structs of the same names.
const OTHERS: &str = "
struct spdk_nvmf_tgt { int nothing; } tgt;
struct spdk_nvmf_qpair { int of; struct spdk_nvmf_tgt *that; } qpair;
";
/// Source whose debug information has all that describes a connection.
const CONNECTION: &str = r#"
#include "layout.h"
struct spdk_nvmf_tgt tgt;
struct spdk_nvmf_poll_group group;
struct spdk_nvmf_qpair qpair;
struct spdk_nvmf_ctrlr ctrlr;
struct spdk_nvmf_subsystem subsystem;
struct spdk_nvmf_transport transport;
struct spdk_nvmf_transport_ops ops;
struct spdk_thread thread;
enum spdk_nvmf_qpair_state state;
"#;
/// Source whose debug information has one real struct.
const THREAD: &str = r#"
#include "layout.h"
struct spdk_thread one_thread;
"#;

struct Target {
    folder: TempDir,
    child: Child,
    last: String,
}

impl Target {
    /// Compiles these files with debug information, and DATA without, with extra linker options.
    fn start(described: &[&str], options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let layout = objects::layouts::layout_text("v24.09".parse().unwrap());
        let layout = format!("#include <stdbool.h>\n#include <stdint.h>\n{layout}");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("layout.h", &layout);
        write("data.c", DATA);
        let mut files = vec!["data.o".to_owned()];
        for (number, text) in described.iter().enumerate() {
            write(&format!("{number}.c"), text);
            files.push(format!("{number}.c"));
        }
        let gcc = |words: &[&str]| {
            testkit::command("gcc")
                .current_dir(folder.path())
                .arg("-w")
                .args(words)
                .output()
        };
        let Ok(made) = gcc(&["-c", "data.c"]) else {
            skip("gcc", "no gcc here");
            return None;
        };
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let made = gcc(&[&["-g", "-o", "target"], options, &files[..]].concat()).unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut command = testkit::command(folder.path().join("target"));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        Some(Self {
            folder,
            child,
            last: line.trim().to_owned(),
        })
    }

    /// Runs dptrace; returns standard output, standard error and exit status.
    fn dptrace(&self, command: &str, words: &[&str]) -> (String, String, Option<i32>) {
        let pid = self.child.id().to_string();
        let mut dptrace = testkit::command(PROGRAM);
        let done = dptrace
            .args([command, "-p", &pid])
            .args(words)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(done.stdout), text(done.stderr), done.status.code())
    }

    /// Lists the objects of these kinds; returns the line on the source of the layout, or an empty
    /// text.
    #[track_caller]
    fn objects(&self, kinds: &str, lines: usize) -> String {
        let (out, notes, status) = self.dptrace("objects", &[kinds, "--json", "-v"]);
        assert_eq!(
            (status, out.lines().count()),
            (Some(0), lines),
            "{notes}\n{out}"
        );
        notes
            .lines()
            .find(|line| line.contains("layout: "))
            .unwrap_or_default()
            .to_owned()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        testkit::end(&mut self.child);
        let _ = self.folder.path();
    }
}

#[test]
fn debug_information_without_the_structs_gives_way_to_layouts() {
    let by_layout = "the layout of SPDK v24.09, by which";
    // Debug information of main() only, or with other structs of the same names, which lack all
    // members; and, for comparison, one that has all.
    for (described, is_whole) in [
        (&[MAIN][..], false),
        (&[MAIN, OTHERS], false),
        (&[MAIN, CONNECTION], true),
    ] {
        let Some(target) = Target::start(described, &[]) else {
            return;
        };
        let layout = target.objects("qpair", 3);
        assert_eq!(
            (
                layout.contains(by_layout),
                layout.contains("debug information")
            ),
            (!is_whole, is_whole),
            "{layout}"
        );
        let (out, _, _) = target.dptrace("objects", &["qpair", "--json"]);
        let last = out
            .lines()
            .find(|line| line.contains(&target.last))
            .unwrap();
        for part in [
            "\"transport\":\"TCP\",\"qid\":2,\"thread\":3",
            "\"hostnqn\":\"nqn.2014-08.org:host\"",
            "\"state\":\"SPDK_NVMF_QPAIR_ENABLED\"",
        ] {
            assert!(last.contains(part), "{last}");
        }
    }
    // Structs in the debug information are read by it, and the others by a layout.
    let Some(target) = Target::start(&[MAIN, THREAD], &[]) else {
        return;
    };
    let layout = target.objects("qpair,thread", 4);
    assert!(
        layout.contains("the debug information of ") && layout.contains(by_layout),
        "{layout}"
    );
    let layout = target.objects("thread", 1);
    assert!(
        layout.contains("the debug information of ") && !layout.contains(by_layout),
        "{layout}"
    );
}

#[test]
fn inspect_knows_the_structs_of_spdk() {
    // With symbols, the version is the one whose conditions most objects meet.
    let Some(target) = Target::start(&[MAIN], &[]) else {
        return;
    };
    let expr = format!("((struct spdk_nvmf_qpair *){})->qid", target.last);
    let value = format!("{expr} = 2\n");
    let (out, notes, status) = target.dptrace("inspect", &[&expr]);
    assert_eq!((out.as_str(), status), (value.as_str(), Some(0)), "{notes}");
    assert!(
        notes.contains("structs are read by the layout of SPDK v24.09, because most objects"),
        "{notes}"
    );
    let list =
        "for ($t : list((struct spdk_nvmf_tgt *)*(uint64_t *)uaddr(\"g_nvmf_tgts\"), link)) { 1 }";
    assert_eq!(target.dptrace("inspect", &[list]).0, "1\n");
    drop(target);

    // Without symbols, it is the version that the file states.
    let Some(target) = Target::start(&[MAIN], &["-s"]) else {
        return;
    };
    let expr = format!("((struct spdk_nvmf_qpair *){})->qid", target.last);
    let value = format!("{expr} = 2\n");
    let (out, notes, _) = target.dptrace("inspect", &[&expr]);
    assert_eq!(out, value, "{notes}");
    assert!(
        notes.contains("SPDK v24.09, because its file states it"),
        "{notes}"
    );
    // The user's choice takes precedence.
    let (out, notes, _) = target.dptrace("inspect", &["--layout", "24.09", &expr]);
    assert_eq!((out.as_str(), notes.as_str()), (value.as_str(), ""));
    let (out, _, _) = target.dptrace("inspect", &["--layout", "v22.09", &expr]);
    assert_ne!(out, value, "the qid is elsewhere there");

    let (_, errors, status) =
        target.dptrace("inspect", &["((struct spdk_nvmf_fish *)0x1000)->qid"]);
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("there is no struct spdk_nvmf_fish"),
        "{errors}"
    );
    assert!(
        errors.contains("layouts are built in for ") && errors.contains("spdk_nvmf_qpair"),
        "{errors}"
    );
    let (_, errors, _) = target.dptrace("inspect", &[&expr.replace("qid", "fins")]);
    assert!(
        errors.contains("has no member fins") && errors.contains("have only some members"),
        "{errors}"
    );
    let (_, errors, _) = target.dptrace("inspect", &["((struct conn *)0x1000)->qid"]);
    assert!(
        errors.contains("no struct conn") && !errors.contains("SPDK"),
        "{errors}"
    );
    let (_, errors, status) = target.dptrace("inspect", &["--layout", "new", "1"]);
    assert!(
        status == Some(2) && errors.contains("not a version of SPDK"),
        "{errors}"
    );
}
