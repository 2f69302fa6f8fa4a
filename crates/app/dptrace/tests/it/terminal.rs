//! On a terminal all output fits its width, and has a little colour.

use crate::common::shared::Sample;
use crate::common::small::Small;

#[test]
fn everything_fits_a_terminal() {
    let small = Small::new();
    for columns in [40, 80, 200] {
        let by = ["--by", "owner.subnqn,lcore,owner.qid"];
        let plot = ["--plot", "--by", "owner.subnqn,lcore,owner.qid"];
        for more in [
            &["--summary"][..],
            &["--by", "qpair"],
            &by,
            &[],
            &["--plot"],
            &plot,
        ] {
            let args = small.args("latency", more);
            let (text, succeeded) = crate::common::pty::on_terminal(columns, &[], &args);
            assert!(
                succeeded && crate::common::pty::widest(&text) <= usize::from(columns),
                "{columns} {more:?}:\n{text}"
            );
            assert!(text.contains("\u{1b}[1m"), "{text}");
            for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
                let (uncoloured, _) = crate::common::pty::on_terminal(columns, &[plain], &args);
                assert_eq!(
                    uncoloured,
                    crate::common::pty::without_styles(&text),
                    "{plain:?}"
                );
            }
        }
    }
}

#[test]
fn a_terminal_of_80_columns_gets_the_rows_with_what_distinguishes_them() {
    let small = Small::new();
    let args = small.args("latency", &["--summary", "--tpoint", "TCP_*"]);
    let (text, _) = crate::common::pty::on_terminal(80, &[("NO_COLOR", "1")], &args);
    let expected = "\
        no connection stands out: p99 of all 2 is 5.00 us to 10.0 us, which may be\n\
        chance (few requests are slow)\n\
        \n\
        r from TCP_REQ_NEW, slowest p99 first\n\
        qpair: 10.0.0.… nqn.2016-06.io.spdk:… 10.0.0.9:4420 …\n\
        columns left out for want of room: p50\n\
        qpair                 requests     p99     max  most of p99\n\
        …2:2000 …cnode2 qid:2        1 10.0 us 10.0 us  EXECUTING -> COMPLETED 85%\n\
        …1:1000 …cnode1 qid:1        1 5.00 us 5.00 us  EXECUTING -> COMPLETED 80%\n";
    assert_eq!(text, expected);
    // The stage is cut, rather than the parts that distinguish the rows.
    for columns in [40, 50, 60] {
        let (text, _) = crate::common::pty::on_terminal(columns, &[("NO_COLOR", "1")], &args);
        assert!(
            text.contains("\n…2:2000 …cnode2 qid:2 ") && text.contains(" 10.0 us  EXEC"),
            "{columns}:\n{text}"
        );
    }
}

#[test]
fn a_plot_is_of_blocks_if_the_terminal_has_them() {
    let small = Small::new();
    let args = small.args("latency", &["--plot", "--tpoint", "TCP_*"]);
    let (blocks, _) = crate::common::pty::on_terminal(80, &[("NO_COLOR", "1")], &args);
    let (ascii, _) =
        crate::common::pty::on_terminal(80, &[("NO_COLOR", "1"), ("LC_ALL", "C")], &args);
    assert!(
        blocks.contains('▁') && blocks.contains('▲') && ascii.is_ascii(),
        "{blocks}\n{ascii}"
    );
    assert!(
        ascii.contains(" ^") && blocks.lines().last() == ascii.lines().last(),
        "{ascii}"
    );
}

/// Runs the program with a terminal of this width as its standard error; returns its messages, and
/// whether it succeeded.
fn messages_on_terminal<S: AsRef<std::ffi::OsStr>>(columns: u16, args: &[S]) -> (String, bool) {
    let (terminal, other_end) = crate::common::pty::open(columns);
    let mut command = crate::common::pty::command(&[("NO_COLOR", "1")], args);
    command
        .stdout(std::process::Stdio::null())
        .stderr(other_end);
    crate::common::pty::finish(terminal, command)
}

/// Messages are wrapped on a terminal; elsewhere each is one line.
#[test]
fn messages_fit_a_terminal() {
    let small = Small::new();
    let args = small.args("latency", &["--where", "owner.qid>7", "--by", "arg.dq"]);
    let (text, succeeded) = messages_on_terminal(60, &args);
    let text = crate::common::pty::without_styles(&text);
    assert!(
        succeeded && crate::common::pty::widest(&text) <= 60 && text.lines().count() > 2,
        "{text}"
    );
    assert!(
        text.starts_with(
            "note: no tracepoint of this trace has an argument \"dq\", so\n  no record has arg.dq"
        ),
        "{text}"
    );
    // Commands in messages stay unbroken, for copying.
    let (text, _) = messages_on_terminal(60, &["trace", "-i", "/no/such/file", "--for"]);
    assert!(
        text.contains("error:") && crate::common::pty::widest(&text) <= 60,
        "{text}"
    );
}

/// A terminal shows `^C`, and output after it must begin a new line.
#[test]
fn output_of_an_interrupted_script_begins_a_line() {
    use host::{Capabilities, Capability};
    if !Capabilities::own()
        .missing(&[Capability::Bpf, Capability::Perfmon])
        .is_empty()
    {
        return testkit::kernel::skip_if_permitted("kernel", "it needs CAP_BPF and CAP_PERFMON");
    }
    let script = "begin { printf(\"^C\"); } end { printf(\"table\\n\"); } \
                  interval:ms:50 /!@sent/ { @sent = 1; system(\"kill -s INT $PPID\"); }";
    let (text, succeeded) =
        crate::common::pty::on_terminal(80, &[], &["run", "-q", "--unsafe", "-e", script]);
    assert!(succeeded && text.contains("^C\ntable\n"), "{text:?}");
}

/// Scripts have lines of up to 120 columns.
#[test]
fn the_help_of_scripts_fits_a_terminal() {
    for script in ["syslat", "upcalls"] {
        let (text, succeeded) =
            crate::common::pty::on_terminal(80, &[], &["run", script, "--", "--help"]);
        assert!(
            succeeded && crate::common::pty::widest(&text) <= 80,
            "{text}"
        );
        let prose = text.lines().filter(|line| line.starts_with("  ")).count();
        assert!(prose >= 2, "a paragraph goes on behind two blanks: {text}");
    }
}

#[test]
fn real_traces_fit_a_terminal() {
    for sample in Sample::with(&["v24.09", "v26.09-pre"], &["trace"]) {
        let trace = sample.path("trace");
        for more in ["--summary", "--by=qpair"] {
            let (text, succeeded) = crate::common::pty::on_terminal(
                80,
                &[],
                &["latency".as_ref(), trace.as_os_str(), more.as_ref()],
            );
            assert!(
                succeeded && crate::common::pty::widest(&text) <= 80 && text.lines().count() > 3,
                "{sample:?} {more}:\n{text}"
            );
        }
    }
}

/// A connection's full name is printed once; after that its number stands for it.
#[test]
fn a_listing_on_a_terminal_names_each_connection_once() {
    let small = Small::new();
    let listing = |columns, more: &[&str]| {
        let args = small.args("trace", &[&["-b", "@t.recording"], more].concat());
        crate::common::pty::on_terminal(columns, &[("NO_COLOR", "1")], &args).0
    };
    let text = listing(80, &["--tpoint", "TCP_REQ_NEW,TCP_REQ_EXECUTING,RDMA_*"]);
    let expected = "\
\u{20}lc           us own tracepoint           size object      age us arguments
#1 = 10.0.0.1:1000 nqn.2016-06.io.spdk:cnode1 10.0.0.9:4420 qid:1
  0        0.000 #1  TCP_REQ_NEW               r0           0.000 qd: 1
#2 = 10.0.0.2:2000 nqn.2016-06.io.spdk:cnode2 10.0.0.9:4420 qid:2
  2        0.500 #2  TCP_REQ_NEW               r1           0.000 qd: 2
  0        1.000 #1  TCP_REQ_EXECUTING    4096 r0           1.000
  2        2.000 #2  TCP_REQ_EXECUTING     512 r1           1.500
#3 = qpair(ptr=0xc0, thread=3, qid=5, subnqn=nqn.2016-06.io.spdk:cnode1,
     hostnqn=nqn.2014-08.com.example:rack=7,slot=2)
  2       11.000 #3  RDMA_REQ_NEW              r2           0.000
  2       13.000 #3  RDMA_REQ_COMPLETED        r2           2.000
";
    assert_eq!(text, expected);
    // A number is explained even if its first record is not shown.
    let tail = listing(80, &["--tail", "1"]);
    assert!(
        tail.contains("#3 = qpair(") || tail.contains(" = qpair("),
        "{tail}"
    );
    assert_eq!(tail.lines().count(), 4, "{tail}");
    for columns in [40, 80, 200] {
        let text = listing(columns, &["--tsc", "--delta"]);
        assert!(
            crate::common::pty::widest(&text) <= usize::from(columns) && text.lines().count() > 10,
            "{text}"
        );
    }
    let full = listing(80, &["--full"]);
    assert!(
        crate::common::pty::widest(&full) > 80 && full.matches("qpair(ptr=0xc0").count() == 2,
        "{full}"
    );
}

/// Descriptions of traces and their possible contents, with all details in files.
#[test]
fn the_description_of_a_trace_fits_a_terminal() {
    let small = Small::new();
    let samples = Sample::with(&["v21.10", "v24.09", "v26.09-pre"], &["trace", "json"]);
    let files = samples
        .iter()
        .flat_map(|sample| [sample.path("trace"), sample.path("json")])
        .chain([small.path("t.trace")]);
    for file in files.chain([small.path("t.trace")]) {
        for what in ["--info", "--list-tpoints"] {
            let args = ["trace".as_ref(), file.as_os_str(), what.as_ref()];
            for columns in [40, 80] {
                let (text, succeeded) = crate::common::pty::on_terminal(columns, &[], &args);
                let text = crate::common::pty::without_styles(&text);
                assert!(
                    succeeded && crate::common::pty::widest(&text) <= usize::from(columns),
                    "{columns} {file:?} {what}:\n{text}"
                );
                if columns == 80 {
                    let whole = crate::common::pty::on_terminal(
                        columns,
                        &[],
                        &[&args[..], &["--full".as_ref()]].concat(),
                    )
                    .0;
                    let words = |text: &str| {
                        text.split_whitespace()
                            .map(str::to_owned)
                            .collect::<Vec<_>>()
                    };
                    let is_there = |word: &String| {
                        words(&text).contains(word) || word == "late" || word.contains('/')
                    };
                    let missing: Vec<_> = words(&whole)
                        .into_iter()
                        .filter(|word| !is_there(word))
                        .collect();
                    assert!(
                        missing.is_empty(),
                        "{file:?} {what}: {missing:?} of\n{whole}\nin\n{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_long_list_of_arguments_goes_on_over_lines() {
    let small = Small::new();
    let (text, _) =
        crate::common::pty::on_terminal(62, &[], &small.args("trace", &["--list-tpoints"]));
    let expected = "\
\u{20}  id group  name               owner object arguments
  192     3  BDEV_IO_START      -     i new  ctx: pointer,
                                             name: string[16]
  193     3  BDEV_IO_DONE       -     i      ctx: pointer
";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn doctor_fits_a_terminal() {
    let _turn = testkit::kernel::alone();
    for columns in [80, 200] {
        for args in [&["doctor"][..], &["doctor", "-v"]] {
            let (text, _) = crate::common::pty::on_terminal(columns, &[], args);
            assert!(
                crate::common::pty::widest(&text) <= usize::from(columns),
                "{columns} {args:?}:\n{text}"
            );
            assert!(
                crate::common::pty::without_styles(&text).starts_with("dptrace record and run can"),
                "{text}"
            );
        }
    }
}
