//! The program's descriptions of itself: completions, man pages, specs, the sample, help.

mod help;
mod outputs;

use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

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
    assert_eq!(qpair, include_str!("../../../../../../objects/qpair.toml"));
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
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("did you mean qpair"));
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
fn the_version_is_one_line_or_names_the_build() {
    let version = format!("dptrace {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(["-V"]), version);
    let long = printed(["--version"]);
    let rest = long.strip_prefix(&version).expect("the same line first");
    let names: Vec<_> = rest
        .lines()
        .map(|line| line.split_once(':').map_or(line, |(name, _)| name))
        .collect();
    assert_eq!(names, ["commit", "target", "build"], "{long}");
    assert!(
        rest.contains(std::env::consts::ARCH) && rest.contains("-linux-"),
        "{long}"
    );
    assert!(
        rest.lines().all(|line| line.len() > "commit:   ".len()),
        "{long}"
    );
}

/// A program that needs a loader is not static, whatever its build was asked for.
#[test]
fn the_version_says_static_only_of_a_program_without_a_loader() {
    let long = printed(["--version"]);
    let program = std::fs::read(env!("CARGO_BIN_EXE_dptrace")).expect("the program");
    let program = program.as_slice();
    let header = FileHeader64::<Endianness>::parse(program).expect("ELF");
    let endian = header.endian().expect("an order of bytes");
    let segments = header.program_headers(endian, program).expect("segments");
    let has_loader = segments.iter().any(|it| it.p_type(endian) == PT_INTERP);
    let kind = if has_loader { "dynamic" } else { "static" };
    assert!(long.contains(&format!("\nbuild:    {kind}, ")), "{long}");
}

#[test]
fn unknown_commands_and_options_are_wrong_usage() {
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
