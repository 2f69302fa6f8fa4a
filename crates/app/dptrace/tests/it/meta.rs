//! The program's descriptions of itself: completions, man pages, specs, the sample, help.

use crate::common::{dptrace, printed};

const COMMANDS: [&str; 13] = [
    "top",
    "trace",
    "latency",
    "timeline",
    "report",
    "list",
    "record",
    "generate",
    "doctor",
    "demo",
    "objects",
    "completions",
    "man",
];

/// The scripts of the first three call the program: see `completion.rs`.
#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            printed(["completions", shell]).contains(&format!(" complete {shell} -- ")),
            "{shell}"
        );
    }
    for shell in ["elvish", "powershell"] {
        let script = printed(["completions", shell]);
        assert!(
            COMMANDS.iter().all(|command| script.contains(command)),
            "{shell}"
        );
        assert!(
            script.contains("list-tpoints") && script.contains("slowest"),
            "{shell}"
        );
        assert!(
            !script.contains("demo-target") && !script.contains("usdt-file-activation"),
            "{shell}"
        );
    }
    dptrace().args(["completions", "tcsh"]).assert().code(2);
}

#[test]
fn built_in_specs_are_printed() {
    let qpair = printed(["objects", "qpair"]);
    assert_eq!(qpair, include_str!("../../../../../objects/qpair.toml"));
    let all = printed(["objects"]);
    assert!(all.contains(&qpair));
    let list = printed(["objects", "--list"]);
    assert_eq!(
        list.lines().next(),
        Some("qpair            An NVMe-oF queue pair: one connection of a host to a subsystem")
    );
    assert_eq!(list.lines().count(), all.matches("[[object]]").count());
    for line in list.lines() {
        let name = line.split(' ').next().expect("a name");
        let spec = printed(["objects", name]);
        assert!(
            spec.contains(&format!("name = \"{name}\"\n")) && all.contains(&spec),
            "{line}"
        );
        assert_eq!(
            printed(["objects", "--list", name])
                .split_whitespace()
                .next(),
            Some(name)
        );
    }
    // All of them together form a valid file of specs.
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("all.toml");
    std::fs::write(&file, all).expect("written");
    assert_eq!(
        printed(["generate".as_ref(), "--objects".as_ref(), file.as_os_str()]),
        printed(["generate", "--objects", "all"])
    );
    let done = dptrace().args(["objects", "qpiar"]).assert().code(2);
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("near: qpair"));
}

#[test]
fn the_demo_reports_the_sample_and_its_latency() {
    let demo = printed(["demo", "--sample", "--head", "40"]);
    let commands: Vec<_> = demo
        .lines()
        .filter(|line| line.starts_with("$ dptrace"))
        .collect();
    assert_eq!(commands.len(), 2, "{demo}");
    assert!(
        demo.contains("\nthe slowest: r")
            && demo.contains("\n  stage (")
            && !demo.contains("verdict"),
        "{demo}"
    );
    assert_eq!(
        demo.lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .count(),
        40
    );
    assert!(
        demo.contains("qpair(ptr=0x"),
        "a recorded connection is named"
    );
    assert!(
        demo.contains("nqn.2016-06.io.spdk:cnode"),
        "an owner is named"
    );
    assert!(
        demo.contains("TCP_REQ_NEW -> TCP_REQ_NEED_BUFFER"),
        "{demo}"
    );
}

/// The demo, a newcomer's first view, has both kinds of annotation in it without any option.
#[test]
fn the_demo_shows_an_annotated_record_at_once() {
    let demo = printed(["demo", "--sample"]);
    assert!(
        demo.contains("qpair(ptr=0x") && demo.contains("nqn.2016-06.io.spdk:cnode"),
        "{demo}"
    );
}

/// The commands that the demo shows print the output that it shows.
#[test]
fn the_demos_files_can_be_tried() {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(
        printed(["demo".as_ref(), "--write".as_ref(), dir.path().as_os_str()]),
        ""
    );
    let demo = printed(["demo", "--sample"]);
    for command in demo
        .lines()
        .filter_map(|line| line.strip_prefix("$ dptrace "))
    {
        let done = dptrace()
            .args(command.split(' '))
            .current_dir(dir.path())
            .assert()
            .success();
        let shown = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        assert!(
            demo.contains(&format!("$ dptrace {command}\n{shown}")),
            "{command}"
        );
    }
}

/// The bundled files match the generator's present output.
#[test]
fn the_sample_is_the_generated_one() {
    let dir = tempfile::tempdir().expect("a directory");
    printed(["demo".as_ref(), "--write".as_ref(), dir.path().as_os_str()]);
    let generated = testkit::Workload::sample().generate();
    let trace = std::fs::read(dir.path().join("demo.trace")).expect("written");
    assert!(
        trace == generated.file.bytes,
        "cargo run -p testkit --bin gen-trace -- --sample (and gzip -9 -n) makes another file"
    );
    let recording = std::fs::read_to_string(dir.path().join("demo.recording")).expect("written");
    assert_eq!(recording, generated.recording);
}

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
    let text = printed(["--help"]);
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

/// `-h` is a screen of its own: one line per option, with text that may be cut.
#[test]
fn short_help_has_a_line_for_each_option() {
    for command in COMMANDS.iter().chain(&["run", "kernel-delay", "scripts"]) {
        let done = dptrace()
            .args([command, "-h"])
            .env("COLUMNS", "80")
            .assert()
            .success();
        let text = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
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
    let overview = printed(["-h"]);
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
    for args in of_commands.chain([vec!["-h"], vec!["--help"]]) {
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

#[test]
fn the_version_is_one_line_or_names_the_build() {
    let version = format!("dptrace {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(["-V"]), version);
    let long = printed(["--version"]);
    let rest = long.strip_prefix(&version).expect("the same line first");
    let names: Vec<_> = rest
        .lines()
        .map(|line| line.split_once(':').map_or(line, |(name, _)| name))
        .collect();
    assert_eq!(names, ["commit", "target", "features"], "{long}");
    assert!(
        rest.contains(std::env::consts::ARCH) && rest.contains("-linux-"),
        "{long}"
    );
    assert!(
        rest.lines().all(|line| line.len() > "features: ".len()),
        "{long}"
    );
}

#[test]
fn what_does_not_exist_is_wrong_usage() {
    for args in [
        &["--no-such"][..],
        &["no-such"],
        &[],
        &["latency", "--follow"],
        &["demo", "--head", "x"],
        &["man"],
    ] {
        let done = dptrace().args(args).assert().code(2);
        assert!(done.get_output().stdout.is_empty(), "{args:?}");
        assert!(!done.get_output().stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn lists_are_json_for_programs() {
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        printed(args)
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object"))
            .collect()
    };
    let has = |object: &serde_json::Value, field: &str| {
        object[field].as_str().is_some_and(|text| !text.is_empty())
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
fn what_is_printed_goes_to_a_file() {
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
