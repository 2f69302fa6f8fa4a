//! Output that goes to a file or is for programs.

use crate::common::{dptrace, printed};

#[test]
fn lists_are_json_for_programs() {
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        printed(args)
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect()
    };
    let scripts = lines(&["scripts", "--json"]);
    assert!(scripts.iter().all(|it| {
        ["name", "topic", "about", "needs"]
            .iter()
            .all(|field| has(it, field))
    }));
    assert!(
        scripts.iter().any(|it| it["name"] == "syslat"),
        "{scripts:?}"
    );
    let specs = lines(&["objects", "--json"]);
    assert_eq!(specs.len(), printed(["objects", "--list"]).lines().count());
    assert!(
        specs.iter().all(|it| has(it, "name") && has(it, "about")),
        "{specs:?}"
    );
    assert_eq!(lines(&["objects", "--json", "qpair"])[0]["name"], "qpair");
}

/// Returns whether an object has a text in this field.
fn has(object: &serde_json::Value, field: &str) -> bool {
    object[field].as_str().is_some_and(|text| !text.is_empty())
}

#[test]
fn a_trace_and_its_facts_are_json_for_programs() {
    let dir = tempfile::tempdir().expect("a directory");
    printed(["demo".as_ref(), "--write".as_ref(), dir.path().as_os_str()]);
    let trace = |more: &[&str]| {
        let trace = dir.path().join("demo.trace");
        dptrace()
            .args(["trace", "-i"])
            .arg(trace)
            .args(more)
            .output()
            .expect("it runs")
    };
    let (short, long) = (trace(&["--json"]), trace(&["--format", "ndjson"]));
    assert!(!short.stdout.is_empty() && short.stdout == long.stdout);
    let json = |args: &[&str]| -> Vec<serde_json::Value> {
        let text = String::from_utf8(trace(args).stdout).expect("JSON is UTF-8");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect()
    };
    let info = json(&["--json", "--info"]);
    assert_eq!(info.len(), 1, "{info:?}");
    assert_eq!(
        (&info[0]["era"], &info[0]["records"]),
        (&"F".into(), &953.into()),
        "{info:?}"
    );
    assert_eq!(info[0]["lcores"][1]["thread"], "reactor_1");
    assert_eq!(info[0]["owners"][0]["description"], "bdev_Malloc0");
    let tpoints = json(&["--json", "--list-tpoints"]);
    assert_eq!(
        serde_json::Value::from(tpoints.len()),
        info[0]["tracepoints"]
    );
    assert!(
        tpoints
            .iter()
            .all(|it| has(it, "name") && it["arguments"].is_array()),
        "{tpoints:?}"
    );
    assert_eq!(trace(&["--json", "--format", "csv"]).status.code(), Some(2));
}

/// `-o` works alike on every command that prints.
#[test]
fn output_goes_to_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("o");
    let own = env!("CARGO_BIN_EXE_dptrace");
    for args in [
        &["scripts"][..],
        &["scripts", "--json"],
        &["scripts", "syslat"],
        &["objects", "qpair"],
        &["objects", "--list"],
        &["objects", "--json"],
        &["generate"],
        &["list", own],
        &["list", own, "--json"],
    ] {
        let expected = printed(args);
        let to_file = [
            args.iter().map(std::ffi::OsStr::new).collect(),
            vec!["-o".as_ref(), file.as_os_str()],
        ]
        .concat();
        assert_eq!(printed(&to_file), "", "{args:?}");
        assert_eq!(
            std::fs::read_to_string(&file).expect("written"),
            expected,
            "{args:?}"
        );
        let nowhere = [args, &["-o", "/no/such/directory/o"]].concat();
        let done = dptrace().args(nowhere).assert().code(1);
        let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(
            messages.contains("creating /no/such/directory/o: No such file or directory"),
            "{args:?}: {messages}"
        );
    }
    // Its status depends on this machine.
    dptrace()
        .args(["doctor", "-o"])
        .arg(&file)
        .assert()
        .stdout("");
    assert!(
        std::fs::read_to_string(&file)
            .expect("written")
            .contains("dptrace")
    );
}

#[test]
fn an_input_is_not_written_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| {
        dir.path()
            .join(name)
            .into_os_string()
            .into_string()
            .expect("a name of ours")
    };
    let spec = printed(["objects", "qpair"]);
    let (specs, script, kept) = (path("own.toml"), path("own.bt"), path("kept"));
    std::fs::write(&specs, &spec).expect("written");
    std::fs::write(&script, "begin { exit() }").expect("written");
    std::fs::write(&kept, "kept").expect("written");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    for (args, what) in [
        (
            &["generate", "--objects", &specs, "-o", &specs][..],
            "the file of object specs",
        ),
        (
            &["record", "-o", &script, "--", &script],
            "the program to start",
        ),
        (
            &["kernel-delay", "-o", &script, "--", &script],
            "the program to start",
        ),
        (&["run", &script, "-o", &script], "the script"),
        (&["run", &script, "--emit-object", &script], "the script"),
        (&["list", &kept, "-o", &kept], "the file that is listed"),
    ] {
        check_is_refused(args, what);
    }
    // An empty list leaves the file of an earlier run alone.
    dptrace()
        .args([
            "list",
            env!("CARGO_BIN_EXE_dptrace"),
            "no_such_probe",
            "-o",
            &kept,
        ])
        .assert()
        .code(1);
    let read = |path: &String| std::fs::read_to_string(path).expect("it is there");
    assert_eq!(
        (read(&specs), read(&script), read(&kept)),
        (spec, "begin { exit() }".into(), "kept".into())
    );
    // A script can be formatted in place.
    dptrace()
        .args(["run", "--fmt", &script, "-o", &script])
        .assert()
        .success();
    assert_eq!(read(&script), printed(["run", "--fmt", &script]));
}

/// Checks that a command refuses to write over this input of its own.
#[track_caller]
fn check_is_refused(args: &[&str], what: &str) {
    let output = dptrace().args(args).output().expect("it runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    let is_elsewhere = messages.contains("namespace of process numbers");
    assert!(
        messages.contains(&format!(" is {what}\n")) || is_elsewhere,
        "{args:?}: {messages}"
    );
    assert_eq!(
        output.status.code(),
        Some(if is_elsewhere { 3 } else { 2 }),
        "{args:?}: {messages}"
    );
}
