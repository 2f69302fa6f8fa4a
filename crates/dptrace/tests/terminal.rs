//! On a terminal everything fits its width, and has a little colour.
#![expect(clippy::expect_used, reason = "a test that is not set up as it should be fails")]

#[path = "common/args.rs"]
mod args;
#[path = "common/pty.rs"]
mod pty;
#[path = "common/shared.rs"]
#[expect(dead_code, reason = "only its traces are needed")]
mod shared;
#[path = "common/small.rs"]
mod small;

use shared::Sample;
use small::Small;

#[test]
fn everything_fits_a_terminal() {
    let small = Small::new();
    for columns in [40, 80, 200] {
        for more in [&["--summary"][..], &["--by", "qpair"], &["--by", "owner.subnqn,lcore,owner.qid"], &[]] {
            let args = small.args("latency", more);
            let (text, succeeded) = pty::on_terminal(columns, &[], &args);
            assert!(succeeded && pty::widest(&text) <= usize::from(columns), "{columns} {more:?}:\n{text}");
            assert!(text.contains("\u{1b}[1m"), "{text}");
            for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
                let (uncoloured, _) = pty::on_terminal(columns, &[plain], &args);
                assert_eq!(uncoloured, pty::without_styles(&text), "{plain:?}");
            }
        }
    }
}

#[test]
fn a_terminal_of_80_columns_gets_the_rows_with_what_distinguishes_them() {
    let small = Small::new();
    let args = small.args("latency", &["--summary", "--tpoint", "TCP_*"]);
    let (text, _) = pty::on_terminal(80, &[("NO_COLOR", "1")], &args);
    let expected = "\
        r from TCP_REQ_NEW, slowest p99 first\n\
        qpair: 10.0.0.… nqn.2016-06.io.spdk:… 10.0.0.9:4420 …\n\
        qpair                 requests     p50     p99     max  most of p99\n\
        …2:2000 …cnode2 qid:2        1 10.0 us 10.0 us 10.0 us  EXECUTING 85%\n\
        …1:1000 …cnode1 qid:1        1 5.00 us 5.00 us 5.00 us  EXECUTING 80%\n";
    assert_eq!(text, expected);
}

#[test]
fn real_traces_fit_a_terminal() {
    for sample in Sample::with(&["v24.09", "v26.09-pre"], &["trace"]) {
        let trace = sample.path("trace");
        for more in ["--summary", "--by=qpair"] {
            let (text, succeeded) = pty::on_terminal(80, &[], &["latency".as_ref(), trace.as_os_str(), more.as_ref()]);
            assert!(succeeded && pty::widest(&text) <= 80 && text.lines().count() > 3, "{sample:?} {more}:\n{text}");
        }
    }
}
