//! Specs of the users' own objects.

use super::QPAIR;
use crate::common::small::Small;
use crate::common::{dptrace, printed};

const CONTROLLER: &str = r#"
[[object]]
name = "request"
key = "req"
tracepoint-args = ["ctx"]
[[object.probe]]
name = "request_begin"
role = "begin"
args = ["tsc", "req", "tag: string"]
[[object.probe]]
name = "request_end"
role = "end"
args = ["tsc", "req"]
[[object.property]]
name = "tag"
"#;

#[test]
fn users_add_their_own_objects() {
    let small = Small::new();
    std::fs::write(small.path("own.toml"), CONTROLLER).expect("written");
    let recording =
        "request_begin: tsc=0x10, req=0xa0, tag='a, b=c'\nrequest_end: tsc=0xf4d58, req=0xa0\n";
    std::fs::write(small.path("own.txt"), recording).expect("written");
    let own = [
        "--objects",
        "@own.toml",
        "-b",
        "@own.txt",
        "-b",
        "@t.recording",
    ];
    let listed = printed(small.args(
        "trace",
        &[&own[..], &["--tpoint", "BDEV_*,RDMA_REQ_NEW"]].concat(),
    ));
    let lines: Vec<_> = listed.lines().collect();
    // The object ended at 1,002,840 ticks: before the second of the records.
    assert!(
        lines[0].ends_with("ctx: request(tag=a, b=c), name: Nvme0, \"n1\""),
        "{listed}"
    );
    assert!(lines[1].ends_with("ctx: 0xa0"), "{listed}");
    assert!(lines[2].ends_with(QPAIR), "{listed}");
    let asked = printed(small.args(
        "trace",
        &[&own[..], &["--where", "request.tag=a,*"]].concat(),
    ));
    assert_eq!(asked.lines().count(), 1, "{asked}");
}

#[test]
fn a_spec_of_the_same_name_replaces_the_built_in_one() {
    let small = Small::new();
    let built_in = printed(["objects", "qpair"]);
    let end = built_in.find("[[object.property]]").expect("properties");
    let own = format!(
        "{}[[object.property]]\nname = \"qid\"\nshow = \"hex\"\n",
        &built_in[..end]
    );
    std::fs::write(small.path("own.toml"), own).expect("written");
    let listed = printed(small.args(
        "trace",
        &[
            "--objects",
            "@own.toml",
            "-b",
            "@t.recording",
            "--tail",
            "1",
        ],
    ));
    assert!(listed.ends_with("qpair(qid=0x5)\n"), "{listed}");
}

#[test]
fn a_broken_spec_is_reported_with_its_line_and_column() {
    let small = Small::new();
    std::fs::write(
        small.path("own.toml"),
        "[[object]]\nname = \"x\"\nkey = = 1\n",
    )
    .expect("written");
    let done = dptrace()
        .args(small.args("trace", &["--objects", "@own.toml"]))
        .assert()
        .code(2);
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        messages.contains("own.toml") && messages.contains("line 3, column"),
        "{messages}"
    );
    assert!(done.get_output().stdout.is_empty());
}
