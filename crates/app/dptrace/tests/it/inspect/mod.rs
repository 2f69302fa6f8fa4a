//! `dptrace inspect` on programs that GCC builds: its output, and its errors.

mod refusals;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use tempfile::TempDir;
use testkit::kernel::skip;

const PROGRAM: &str = env!("CARGO_BIN_EXE_dptrace");

const MAIN: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>
enum state { IDLE, CONNECTING, CONNECTED = 7 };
enum flags { F_A = 1, F_B = 2, F_C = 4 };
struct ops { int (*connect)(const char *peer); const char *name; };
struct conn {
    TAILQ_ENTRY(conn) link;
    uint16_t id; int16_t delta;
    unsigned active : 1; unsigned mode : 3; signed bias : 4;
    enum state state; enum flags flags;
    char peer[32];
    union { uint64_t raw; struct { uint32_t lo, hi; }; uint8_t bytes[8]; } key;
    const struct ops *ops;
    double rate;
    _Bool open;
    int histogram[64];
};
TAILQ_HEAD(conn_list, conn);
int tcp_connect(const char *peer) { return peer != 0; }
static const struct ops g_tcp = { tcp_connect, "tcp" };
static struct conn_list g_conns = TAILQ_HEAD_INITIALIZER(g_conns), g_circle = TAILQ_HEAD_INITIALIZER(g_circle);
struct conn g_all[4];
static int counter = 1;
struct conn *g_null, *g_wild = (struct conn *)0x123456789000;
const char *g_text = "plain \x1b[31mred";
int bump(void);
int main(void)
{
    for (int i = 0; i < 3; i++) {
        struct conn *c = &g_all[i];
        c->id = i + 1; c->delta = -i; c->active = i & 1; c->mode = 5; c->bias = -3;
        c->state = i ? CONNECTED : CONNECTING; c->flags = F_A | F_C;
        snprintf(c->peer, sizeof c->peer, "10.0.0.%d", i + 1);
        c->key.raw = 0x1122334455667788; c->ops = &g_tcp; c->rate = 1.25 * i; c->open = 1; c->histogram[3] = 9;
        TAILQ_INSERT_TAIL(&g_conns, c, link);
    }
    TAILQ_INSERT_TAIL(&g_circle, &g_all[3], link);
    g_all[3].link.tqe_next = &g_all[3];
    counter += bump() + (g_null == g_wild);
    puts("ready"); fflush(stdout);
    for (;;) pause();
}
"#;
const OTHER: &str = "static int counter = 40;\nint bump(void) { return ++counter; }\n";

/// A waiting program that is ended with the test.
struct Target {
    folder: TempDir,
    child: Child,
}

impl Target {
    /// Builds the program with debug information in the folder, and starts the file of this name
    /// once the commands of `change` have made it.
    fn start(name: &str, change: &[&[&str]]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("main.c"), MAIN).unwrap();
        fs::write(folder.path().join("other.c"), OTHER).unwrap();
        let made: &[&str] = &["gcc", "-g", "-O1", "-o", "whole", "main.c", "other.c"];
        for step in std::iter::once(&made).chain(change) {
            let Ok(done) = testkit::command(step[0])
                .args(&step[1..])
                .current_dir(folder.path())
                .output()
            else {
                skip(step[0], &format!("no {} here", step[0]));
                return None;
            };
            assert!(
                done.status.success(),
                "{step:?}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        }
        let mut command = testkit::command(folder.path().join(name));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        Some(Self { folder, child })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `dptrace inspect` on it; returns standard output, standard error and exit status.
    fn inspect(&self, words: &[&str]) -> (String, String, Option<i32>) {
        let pid = self.child.id().to_string();
        run(
            Path::new(PROGRAM),
            &[&["inspect", "-p", &pid], words].concat(),
        )
    }

    /// Returns the output for valid expressions.
    #[track_caller]
    fn output(&self, words: &[&str]) -> String {
        let (out, errors, status) = self.inspect(words);
        assert_eq!((errors.as_str(), status), ("", Some(0)), "{words:?}");
        out
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        testkit::end(&mut self.child);
    }
}

fn run(program: &Path, words: &[&str]) -> (String, String, Option<i32>) {
    let mut command = testkit::command(program);
    let Output {
        stdout,
        stderr,
        status,
    } = command.args(words).env("NO_COLOR", "1").output().unwrap();
    (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
        status.code(),
    )
}

#[test]
fn variables_structs_and_lists_are_printed() {
    let Some(target) = Target::start("whole", &[]) else {
        return;
    };
    let tree = target.output(&["g_all[1]"]);
    let without_addresses: Vec<&str> = tree.lines().filter(|line| !line.contains("0x")).collect();
    let expected = "\
g_all[1] = (struct conn) {
    id = 2
    delta = -1
    active = 1
    mode = 5
    bias = -3
    state = CONNECTED (7)
    flags = F_A | F_C (5)
    peer = \"10.0.0.2\"
    key = {
        raw = 1234605616436508552
        {lo = 1432778632, hi = 287454020}
        bytes = [88 77 66 55 44 33 22 11]
    }
    rate = 1.25
    open = true
    histogram = [0, 0, 0, 9, 0 (x60)]
}";
    assert_eq!(without_addresses.join("\n"), expected);
    assert!(
        tree.contains("<g_tcp>") && tree.contains("tqe_next = "),
        "{tree}"
    );

    let loop_text =
        r#"for ($c : list(g_conns, link)) { printf("%d %s %s\n", $c->id, $c->peer, $c->state) }"#;
    let lines = "1 10.0.0.1 CONNECTING (1)\n2 10.0.0.2 CONNECTED (7)\n3 10.0.0.3 CONNECTED (7)\n";
    assert_eq!(target.output(&[loop_text]), lines);
    assert_eq!(
        target.output(&[
            "len(list(g_conns, link))",
            "&g_all[1] == g_conns.tqh_first->link.tqe_next"
        ]),
        "len(list(g_conns, link)) = 3\n&g_all[1] == g_conns.tqh_first->link.tqe_next = true\n"
    );
    assert_eq!(
        target.output(&["str(g_text)"]),
        "str(g_text) = \"plain \\x1b[31mred\"\n"
    );
    assert!(
        target
            .output(&["g_all[0].ops->connect"])
            .ends_with("<tcp_connect>\n")
    );
    assert_eq!(
        target.output(&["((struct conn *)&g_all)->id", "sizeof(struct conn)"]),
        "((struct conn *)&g_all)->id = 1\nsizeof(struct conn) = 352\n"
    );
    assert_eq!(
        target.output(&["*uaddr(\"other.c:counter\")"]),
        "*uaddr(\"other.c:counter\") = 41\n"
    );
    // A variable of a shared library.
    assert!(target.output(&["stdout != NULL"]).ends_with("= true\n"));

    check_json(&target);
}

/// Checks values as JSON.
#[track_caller]
fn check_json(target: &Target) {
    let json = target.output(&[
        "--json",
        "g_all[0].peer",
        "g_all[0].key",
        "for ($i : 0..2) { $i }",
    ]);
    let key = r#"{"raw": 1234605616436508552, "lo": 1432778632, "hi": 287454020, "bytes": "8877665544332211"}"#;
    let value = |expr: &str, ty: &str, value: &str| {
        let envelope = r#"{"version":1,"type":"inspect.value""#;
        format!("{envelope},\"expr\":\"{expr}\",\"value_type\":\"{ty}\",\"value\":{value}}}\n")
    };
    let expected = [
        value("g_all[0].peer", "char [32]", "\"10.0.0.1\""),
        value("g_all[0].key", "union (anonymous)", key),
        value("$i", "int64", "0"),
        value("$i", "int64", "1"),
    ];
    assert_eq!(json, expected.concat());
}

#[test]
fn debug_information_may_be_in_a_file_of_its_own_or_in_c() {
    let strip: [&[&str]; 3] = [
        &["mkdir", "elsewhere"],
        &[
            "objcopy",
            "--only-keep-debug",
            "whole",
            "elsewhere/bare.debug",
        ],
        &["objcopy", "--strip-all", "whole", "bare"],
    ];
    let Some(target) = Target::start("bare", &strip) else {
        return;
    };
    let folder = target.path("elsewhere").to_str().unwrap().to_owned();
    let (_, errors, status) = target.inspect(&["g_all[1].id"]);
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("bare has no debug information") && errors.contains("--debuginfo DIR"),
        "{errors}"
    );
    assert_eq!(
        target.output(&["--debuginfo", &folder, "g_all[1].id"]),
        "g_all[1].id = 2\n"
    );

    // With only the names of functions and variables, types come from the user.
    let symbols: [&[&str]; 1] = [&["objcopy", "--strip-debug", "whole", "bare"]];
    let Some(target) = Target::start("bare", &symbols) else {
        return;
    };
    let types = target.path("conn.h");
    fs::write(&types, "struct conn { struct { struct conn *tqe_next; void *prev; } link; uint16_t id; };\nstruct head { struct conn *tqh_first; };\n").unwrap();
    let (_, errors, _) = target.inspect(&["g_conns"]);
    assert!(
        errors.contains("has no type") && errors.contains("cast its address"),
        "{errors}"
    );
    let list = "for ($c : list((struct head *)uaddr(\"g_conns\"), link)) { $c->id }";
    assert_eq!(
        target.output(&["--types", types.to_str().unwrap(), list]),
        "1\n2\n3\n"
    );
}

/// The program has no debug information, and a copy of the variable (`R_X86_64_COPY`): its address
/// is in the program, its type in the library.
#[test]
fn a_library_has_the_type_of_a_variable_that_the_program_has_a_copy_of() {
    let library = "echo 'struct point { int x, y; } shared = { 3, 4 };' >shared.c";
    let program = "printf '#include <stdio.h>\n#include <unistd.h>\nextern struct { int x, y; } shared;\n\
                   int main(void) { shared.y = 9; puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n' >copy.c";
    let steps: &[&[&str]] = &[
        &["sh", "-c", library],
        &["sh", "-c", program],
        &[
            "gcc",
            "-g",
            "-shared",
            "-fPIC",
            "-o",
            "libshared.so",
            "shared.c",
        ],
        &[
            "gcc",
            "-no-pie",
            "-fno-pie",
            "-o",
            "copy",
            "copy.c",
            "-L.",
            "-lshared",
            "-Wl,-rpath,$ORIGIN",
        ],
    ];
    let Some(target) = Target::start("copy", steps) else {
        return;
    };
    assert_eq!(
        target.output(&["shared"]),
        "shared = (struct point) {x = 3, y = 9}\n"
    );
}
