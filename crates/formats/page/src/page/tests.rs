use super::*;
use crate::heat::Heat;
use crate::model::{
    AbsenceSpan, Activity, Budget, Connection, Figures, Group, Intruder, Lane, LaneStrip, Span,
    StageFigures, Verdict, WaterStage, Waterfall,
};

/// Names that would do harm in an unescaped page.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&\u{202e}\u{0}{{data}}";

fn hostile() -> Report {
    let figures = Figures {
        count: 1,
        mean: 1,
        quantiles: [1; 4],
        max: 1,
        curve: vec![1],
    };
    let mut heat = Heat::new(1_000);
    heat.add(500, 400, Some(HOSTILE), || HOSTILE.to_owned());
    Report {
        title: HOSTILE.to_owned(),
        maker: HOSTILE.to_owned(),
        facts: vec![(HOSTILE.to_owned(), HOSTILE.to_owned())],
        notes: vec![HOSTILE.to_owned()],
        verdicts: vec![Verdict {
            sentence: HOSTILE.to_owned(),
            explained: HOSTILE.to_owned(),
        }],
        heat: heat.finish(1_000, Vec::new()),
        groups: vec![Group {
            name: HOSTILE.to_owned(),
            first: HOSTILE.to_owned(),
            whole: figures.clone(),
            ..Group::default()
        }],
        connections: vec![Connection {
            name: Some(HOSTILE.to_owned()),
            whole: figures,
            ..Connection::default()
        }],
        ..Report::default()
    }
}

#[test]
fn hostile_names_are_text_only() {
    let page = page(&hostile());
    assert_eq!(
        page.matches("</script>").count(),
        2,
        "one of the data, one of the script"
    );
    assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\0'));
    let data = page
        .split_once("id=\"data\">")
        .unwrap()
        .1
        .split_once("</script>")
        .unwrap()
        .0;
    assert!(!data.contains('<') && data.contains("\\u003c/script"));
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let name = data["connections"][0]["name"].as_str().unwrap();
    assert!(
        name.starts_with("</script><img") && name.contains("\\x00") && name.ends_with("{{data}}"),
        "{name}"
    );
}

#[test]
fn the_lead_has_each_kind_once() {
    let group = |first: &str, count, unfinished| Group {
        name: "RDMA_REQ".to_owned(),
        first: first.to_owned(),
        whole: Figures {
            count,
            ..Figures::default()
        },
        unfinished,
        ..Group::default()
    };
    let report = Report {
        groups: vec![group("RDMA_REQ_NEW", 3_579, 1), group("RDMA_REQ_RDY", 0, 1)],
        ..Report::default()
    };
    let page = page(&report);
    assert!(page.contains(" · 3,581 RDMA_REQ · 0 connections"), "{page}");
}

#[test]
fn hostile_names_are_text_only_in_a_comparison() {
    use crate::compared::{ComparedCause, ComparedKind, ComparedSide, ComparedStage, Comparison};
    let name = || HOSTILE.to_owned();
    let side = || ComparedSide {
        title: name(),
        ..ComparedSide::default()
    };
    let kind = ComparedKind {
        name: name(),
        stages: vec![ComparedStage {
            from: name(),
            to: name(),
            ..ComparedStage::default()
        }],
        causes: vec![ComparedCause {
            name: name(),
            ..ComparedCause::default()
        }],
        ..ComparedKind::default()
    };
    let page = comparison_page(&Comparison {
        maker: name(),
        sides: [side(), side()],
        sentences: vec![name(), name()],
        notes: vec![name()],
        kinds: vec![kind],
    });
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'));
    assert!(page.matches("&lt;img src=x onerror=alert(1)&gt;").count() >= 9);
}

/// Returns the SHA-256 of a text in Base64, computed by coreutils.
fn sha256(text: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let script = "printf \"$(sha256sum \"$1\" | cut -c1-64 | sed 's/../\\\\x&/g')\" | base64 -w0";
    let done = testkit::command("bash")
        .args(["-c", script, "bash"])
        .arg(file.path())
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap()
}

/// Checks that only the page's own script and style may run in it.
pub(crate) fn check_policy(page: &str) {
    let inside = |begin: &str, end: &str| {
        page.rsplit_once(begin)
            .unwrap()
            .1
            .split_once(end)
            .unwrap()
            .0
    };
    let policy = inside("Content-Security-Policy\" content=\"", "\">");
    assert!(
        policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
        "{policy}"
    );
    for (begin, end) in [("<script>", "</script>"), ("<style>", "</style>")] {
        let source = format!("'sha256-{}'", sha256(inside(begin, end)));
        assert!(policy.contains(&source), "{begin} has {source}");
    }
    // Handlers and styles in attributes would be blocked, so there are none.
    let body = page
        .split_once("<body>")
        .unwrap()
        .1
        .split_once("<script")
        .unwrap()
        .0;
    assert!(
        !body.contains(" style=")
            && !body.contains(" onclick")
            && !page.contains("http://localhost")
    );
    let script = inside("<script>", "</script>");
    assert!(!script.contains("innerHTML") && !script.contains("eval("));
}

#[test]
fn only_its_own_script_and_style_may_run() {
    check_policy(&page(&Report::default()));
}

#[test]
fn parts_without_the_kernel_are_left_out() {
    let page = page(&hostile());
    assert!(
        !page.contains("id=\"who\"")
            && !page.contains("id=\"threads\"")
            && page.contains("records them")
    );
}

/// Returns a unique name of maximum length.
fn long(n: u64) -> String {
    format!("{n:07} nqn.2016-06.io.spdk:{}", "<".repeat(400))
}

fn figures() -> Figures {
    Figures {
        count: 123_456,
        mean: 1_234_567,
        quantiles: [123_456_789; 4],
        max: 987_654_321,
        curve: vec![1_234_567; 51],
    }
}

fn stages() -> Vec<StageFigures> {
    let stage = |n: u64| StageFigures {
        from: format!("TCP_REQ_STAGE_{n}"),
        to: format!("TCP_REQ_END_{n}"),
        figures: figures(),
    };
    (0..14).map(stage).collect()
}

/// Returns stages without curves, as connections have them.
fn without_curves() -> Vec<StageFigures> {
    let stage = |it: StageFigures| StageFigures {
        figures: Figures {
            curve: Vec::new(),
            ..it.figures
        },
        ..it
    };
    stages().into_iter().map(stage).collect()
}

fn waterfall(n: u64) -> Waterfall {
    let stage = |n: u64| WaterStage {
        from: format!("TCP_REQ_STAGE_{n}"),
        to: format!("TCP_REQ_END_{n}"),
        at: n * 1_000_000,
        length: 1_000_000,
        lost: (1_000, 2_000),
        ends: "a device or a peer found done, or not known",
    };
    let span = |n: u64| Span {
        at: n * 10_000,
        length: 5_000,
        activity: Activity::Preempted,
        what: "preempted by somebody".into(),
    };
    Waterfall {
        name: format!("r{n}"),
        whose: Some(long(n)),
        length: 14_000_000,
        lost: Some((1_000, 2_000)),
        stages: (0..14).map(stage).collect(),
        threads: vec![("reactor_0 on CPU 0".into(), (0..80).map(span).collect()); 2],
        ..Waterfall::default()
    }
}

/// Time of the full report, in nanoseconds.
const SPAN: u64 = 3_600_000_000_000;

/// Returns a heat map of a million requests.
fn full_heat() -> Heat {
    let mut heat = Heat::new(SPAN);
    for n in 0..1_000_000u64 {
        let length = 1_000 + n.wrapping_mul(2_654_435_761) % 90_000_000;
        let whose = if n.is_multiple_of(50) {
            long(n % 25_000)
        } else {
            String::new()
        };
        heat.add(n * (SPAN / 1_000_000), length, Some(&whose), || {
            format!("r{n}")
        });
    }
    heat
}

/// Returns a connection; only the first 40 have curves and stages.
fn connection(n: u64) -> Connection {
    Connection {
        name: Some(long(n)),
        whole: Figures {
            curve: if n < 40 {
                vec![1_234_567; 51]
            } else {
                Vec::new()
            },
            ..figures()
        },
        stages: if n < 40 { without_curves() } else { Vec::new() },
        ..Connection::default()
    }
}

/// Returns a report whose parts are all filled to their limits, with long names that need more
/// room in HTML than in the trace.
fn full_report() -> Report {
    let lane = |n: u64| Lane {
        name: format!("reactor_{n}"),
        columns: vec![[123_456; 8]; 2_160 / 16],
    };
    let taken = |n: u64| AbsenceSpan {
        lane: 0,
        at: n * 3_000_000,
        length: 2_999_999,
        activity: Activity::Preempted,
        what: long(n),
    };
    let group = |n: u64| Group {
        name: format!("TCP_REQ{n}"),
        first: format!("TCP_REQ{n}_NEW"),
        whole: figures(),
        stages: stages(),
        ..Group::default()
    };
    let intruder = |n: u64| Intruder {
        name: format!("opt cgu.{n}"),
        victims: vec!["reactor_0".into(); 16],
        ..Intruder::default()
    };
    Report {
        span: SPAN,
        has_kernel: true,
        verdicts: vec![
            Verdict {
                sentence: long(0),
                explained: long(1)
            };
            8
        ],
        notes: (0..16).map(long).collect(),
        heat: full_heat().finish(SPAN, Vec::new()),
        lanes: LaneStrip {
            column: 1_000_000,
            lanes: (0..16).map(lane).collect(),
            taken: (0..1_200).map(taken).collect(),
        },
        budgets: vec![
            Budget {
                name: "reactor_0".into(),
                sums: [1_000_000; 8],
                ..Budget::default()
            };
            24
        ],
        intruders: (0..20).map(intruder).collect(),
        waterfalls: (0..200).map(waterfall).collect(),
        groups: (0..6).map(group).collect(),
        connections: (0..2_000).map(connection).collect(),
        ..Report::default()
    }
}

#[test]
fn a_page_is_smaller_than_a_megabyte_whatever_is_in_it() {
    let page = page(&full_report());
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("did not fit into this file") && page.contains("r1 "));
}
