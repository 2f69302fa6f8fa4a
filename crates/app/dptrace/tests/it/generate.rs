//! `dptrace generate`: the script, and whether bpftrace accepts it.

use std::path::Path;

use crate::common::{dptrace, printed};

/// Output of SPDK's `scripts/bpf/trace.py -g` for each of these probes, in the order of our spec.
const QPAIR: &str = r#"usdt:__EXE__:nvmf_poll_group_add_qpair {printf("nvmf_poll_group_add_qpair: tsc=0x%lx, qpair=0x%lx, thread=0x%lx\n", arg0, arg1, arg2);}
usdt:__EXE__:nvmf_ctrlr_add_qpair {printf("nvmf_ctrlr_add_qpair: tsc=0x%lx, qpair=0x%lx, qid=0x%lx, subnqn='%s', hostnqn='%s'\n", arg0, arg1, arg2, str(arg3), str(arg4));}
usdt:__EXE__:nvmf_poll_group_remove_qpair {printf("nvmf_poll_group_remove_qpair: tsc=0x%lx, qpair=0x%lx, thread=0x%lx\n", arg0, arg1, arg2);}
"#;

const OWN: &str = r#"
[[object]]
name = "qpair"
provider = "mine"
key = "p"

[[object.probe]]
name = "made"
role = "begin"
args = ["tsc", "p: string"]
"#;

#[test]
fn connections_are_the_default() {
    assert_eq!(printed(["generate"]), QPAIR);
    assert_eq!(printed(["generate", "--objects", "qpair"]), QPAIR);
}

#[test]
fn each_probe_is_there_once_and_all_have_a_line() {
    let script = printed(["generate", "--objects", "all"]);
    assert!(script.starts_with(QPAIR));
    let mut probes: Vec<_> = script.lines().map(|line| line.split(' ').next()).collect();
    probes.sort_unstable();
    assert!(probes.is_sorted_by(|a, b| a < b), "{script}");
    assert!(script.contains(
        r#"{printf("nvmf_subsystem_create: tsc=0x%lx, subnqn='%s'\n", arg0, str(arg1));}"#
    ));
    let done = dptrace()
        .args(["generate", "--objects", "subsystem,thread"])
        .assert()
        .success();
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        messages.contains("no time to nvmf_subsystem_create, nvmf_subsystem_destroy (tsc=0x0)"),
        "{messages}"
    );
    let done = dptrace().arg("generate").assert().success();
    assert!(
        done.get_output().stderr.is_empty(),
        "the probes of queue pairs have ticks"
    );
}

#[test]
fn own_specs_take_the_place_of_built_in_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    let own = dir.path().join("own.toml");
    std::fs::write(&own, OWN).expect("written");
    let own = own.to_str().expect("UTF-8");
    let line =
        "usdt:__EXE__:mine:made {printf(\"made: tsc=0x%lx, p='%s'\\n\", arg0, str(arg1));}\n";
    assert_eq!(printed(["generate", "--objects", own]), line);
    assert_eq!(
        printed(["generate", "--objects", &format!("qpair,{own}")]),
        line
    );
    assert!(printed(["generate", "--objects", &format!("all,{own}")]).ends_with(line));
}

#[test]
fn mistakes_are_usage_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let clash = dir.path().join("clash.toml");
    std::fs::write(
        &clash,
        OWN.replace("qpair", "x")
            .replace("mine", "spdk")
            .replace("made", "nvmf_ctrlr_create"),
    )
    .expect("written");
    let clash = format!("ctrlr,{}", clash.display());
    for (words, messages) in [
        ("qpiar", " or a file (.toml); did you mean qpair?"),
        (
            clash.as_str(),
            "another spec has the argument \"ctrlr\" in this place",
        ),
    ] {
        let done = dptrace()
            .args(["generate", "--objects", words])
            .assert()
            .code(2);
        let error = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(error.contains(messages), "{error}");
        assert!(done.get_output().stdout.is_empty());
    }
    dptrace()
        .args(["generate", "--objects", "no/such.toml"])
        .assert()
        .code(1);
}

/// Returns the source of a program with every probe of the script, as `<sys/sdt.h>` would define
/// them in SPDK's sources.
fn program(script: &str) -> String {
    let probe = |line: &str| {
        let name = line.split([':', ' ']).nth(2).expect("a name").to_owned();
        let args = line
            .rsplit("\\n\", ")
            .next()
            .expect("arguments")
            .trim_end_matches(");}")
            .to_owned();
        let arg = |arg: &str| {
            if arg.starts_with("str(") {
                "(char *)text"
            } else {
                "(unsigned long)number"
            }
        };
        let args: Vec<_> = args.split(", ").map(arg).collect();
        format!(
            "DTRACE_PROBE{}(spdk, {name}, {});\n",
            args.len(),
            args.join(", ")
        )
    };
    let probes: Vec<_> = script.lines().map(probe).collect();
    let head =
        "#include <sys/sdt.h>\nint main(int number, char **v) {\nchar *volatile text = v[0];\n";
    format!("{head}{}return 0; }}\n", probes.concat())
}

fn compiled(source: &str, dir: &Path) -> Option<String> {
    let (file, program) = (dir.join("probes.c"), dir.join("probes"));
    std::fs::write(&file, source).expect("written");
    let done = testkit::command("cc")
        .arg("-o")
        .args([&program, &file])
        .output();
    let works = done.is_ok_and(|done| done.status.success());
    works.then(|| program.to_str().expect("UTF-8").to_owned())
}

fn skip(reason: &str) {
    testkit::kernel::skip("bpftrace", reason);
}

/// bpftrace compiles the script for a program that has the probes; nothing is attached.
#[test]
fn bpftrace_takes_the_script() {
    let script = printed(["generate", "--objects", "all"]);
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(&program(&script), dir.path()) else {
        return skip("no C compiler or no <sys/sdt.h> here");
    };
    let file = dir.path().join("all.bt");
    std::fs::write(&file, script.replace("__EXE__", &program)).expect("written");
    // bpftrace itself asks for root, even for this.
    let done = match testkit::command("bpftrace").arg("-d").arg(&file).output() {
        Ok(done) => done,
        Err(error) => return skip(&format!("no bpftrace here: {error}")),
    };
    let messages = String::from_utf8_lossy(&done.stderr);
    if messages.contains("running as the root user") {
        return skip(&messages);
    }
    assert!(done.status.success(), "{messages}");
    let compiled = String::from_utf8_lossy(&done.stdout).into_owned() + &messages;
    for line in script.lines() {
        let name = line.split([':', ' ']).nth(2).expect("a name");
        let function = format!("define i64 @\"usdt:{program}:spdk:{name}\"");
        assert!(
            compiled.contains(&function),
            "bpftrace compiled no {name}: {compiled}"
        );
    }
}
