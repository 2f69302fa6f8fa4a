//! A real Prometheus scrapes it, and the files of `packaging/` for it are accepted by these
//! programs.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::kernel::{PROGRAM, Process, kernel, needs};
use crate::serve::web::{Metrics, Served, TIMEOUT, ask};
use crate::serve::{NOBODY, target_of};

/// Prometheus that scrapes one address each second, on a port of its own.
struct Prometheus {
    _process: Process,
    address: SocketAddr,
    _dir: tempfile::TempDir,
}

impl Prometheus {
    fn start(scraped: SocketAddr) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs: [{{job_name: dptrace, static_configs: [{{targets: \
             ['{scraped}']}}]}}]\n"
        );
        let file = dir.path().join("prometheus.yml");
        fs::write(&file, config).expect("written");
        let port = TcpListener::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("an address");
        let mut command = testkit::command("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!(
            "--storage.tsdb.path={}",
            dir.path().join("data").display()
        ));
        command
            .args([&format!("--web.listen-address={port}"), "--log.level=info"])
            .stdout(Stdio::null());
        let mut process = Process::start(&mut command);
        process.wait_for("Server is ready");
        Self {
            _process: process,
            address: port,
            _dir: dir,
        }
    }

    /// Returns the value of an expression, if it has one.
    fn value(&self, expression: &str) -> Option<f64> {
        let encoded = expression
            .bytes()
            .fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
        let request =
            format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let answer = ask(self.address, request.as_bytes());
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let json: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(json["status"], "success", "{expression}: {json}");
        json["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }

    /// Waits until the value satisfies the predicate.
    #[track_caller]
    fn wait_until(&self, expression: &str, matches: impl Fn(f64) -> bool) {
        let begin = Instant::now();
        loop {
            let value = self.value(expression);
            if value.is_some_and(&matches) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "{expression} is {value:?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Asserts that `promtool` accepts this text.
#[track_caller]
fn promtool(args: &[&str], text: &str) {
    let mut command = testkit::command("promtool");
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(text.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Rates are true, even after a restart of the target.
#[test]
#[ignore = "deep peers: it needs prometheus and promtool, and judges a rate within 2 %"]
fn prometheus_scrapes_it() {
    let Some(_guard) = kernel() else { return };
    if !needs("prometheus") || !needs("promtool") {
        return;
    }
    let temp = tempfile::tempdir().expect("a directory");
    let name = format!("prom-{}", std::process::id());
    let program = temp.path().join(&name);
    symlink(PROGRAM, &program).expect("a link");
    let start = || {
        target_of(
            &program,
            &["--app", "prom", "--rate", "2000", "--interrupt-mode"],
        )
    };
    let one = start();
    let served = Served::start(&["--name", &name]);
    let prometheus = Prometheus::start(served.address);
    prometheus.wait_until(
        "rate(dptrace_requests_total{transport=\"TCP\"}[5s])",
        |rate| rate > 0.0,
    );
    // A signal that it handles: it removes its trace file.
    one.signal("TERM");
    one.end();
    let two = start();
    served.wait_until("the second one is followed", |metrics| {
        let labels =
            [("pid", &*two.pid().to_string()), ("part", "threads")].map(|(a, b)| (a, b.to_owned()));
        let labels: Vec<(&str, &str)> = labels.iter().map(|(a, b)| (*a, b.as_str())).collect();
        metrics.sum("dptrace_target_following", &labels) > 0.0
    });
    std::thread::sleep(Duration::from_millis(1500));
    let threads = fs::read_dir(format!("/proc/{}/task", two.pid()))
        .expect("tasks")
        .count() as f64;
    let rate = format!("sum(rate(dptrace_thread_seconds_total{{process=\"{name}\"}}[8s]))");
    prometheus.wait_until(&rate, |rate| (rate / threads - 1.0).abs() < 0.02);
    assert!(
        prometheus
            .value("count(dptrace_stage_seconds_bucket{stage=\"whole\",le=\"+Inf\"})")
            .is_some()
    );
    promtool(
        &["check", "metrics"],
        &served.page("/metrics", "text/plain"),
    );
    two.signal("TERM");
    two.end();
}

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../packaging")
        .join(file)
}

/// Returns the names of series in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    words
        .filter(|word| word.starts_with("dptrace_") || word.starts_with("process_"))
        .collect()
}

/// Returns the names of all samples that the metrics can have.
fn exposed(metrics: &Metrics) -> BTreeSet<String> {
    let samples = metrics.families.iter().flat_map(|(name, kind)| {
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
    });
    samples.collect()
}

/// Rules, dashboard and page name exposed metrics only.
#[test]
fn files_of_others_name_what_is_exposed() {
    let temp = tempfile::tempdir().expect("a directory");
    let tables = temp.path().join("tables");
    let served = Served::start(&[
        "--name",
        NOBODY,
        "--no-kernel",
        "--parquet",
        tables.to_str().expect("UTF-8"),
    ]);
    let exposed = exposed(&served.metrics());
    let rules = fs::read_to_string(packaging("prometheus/dptrace-rules.yaml")).expect("rules");
    let dashboard = fs::read_to_string(packaging("grafana/dptrace.json")).expect("a dashboard");
    let page = fs::read_to_string(packaging("../docs/serve.md")).expect("a page");
    let dashboard_json: Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(
        dashboard_json["panels"]
            .as_array()
            .is_some_and(|panels| panels.len() > 5)
    );
    let monitoring = fs::read_to_string(packaging("../docs/monitoring.md")).expect("a page");
    for (text, least) in [(&rules, 5), (&dashboard, 5), (&page, 8), (&monitoring, 2)] {
        let named: BTreeSet<&str> = names(text)
            .into_iter()
            .filter(|name| !is_family(name, &page, text))
            .collect();
        let unknown: Vec<_> = named
            .iter()
            .filter(|name| !exposed.contains(**name))
            .collect();
        assert!(
            unknown.is_empty() && named.len() >= least,
            "{unknown:?} of {named:?}"
        );
    }
    let is_documented = |name: &String| {
        let family = name
            .strip_suffix("_bucket")
            .or_else(|| name.strip_suffix("_sum"))
            .or_else(|| name.strip_suffix("_count"));
        page.contains(&format!("`{}`", family.unwrap_or(name)))
    };
    let missing: Vec<_> = exposed.iter().filter(|name| !is_documented(name)).collect();
    assert!(
        missing.is_empty(),
        "docs/serve.md does not have {missing:?}"
    );
}

/// Returns the panels of the dashboard, each with its title and its expressions.
fn panels() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(packaging("grafana/dptrace.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let text_of = |value: &Value| value.as_str().expect("text").to_owned();
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    panels
        .map(|panel| {
            let targets = panel["targets"].as_array().expect("targets").iter();
            let expressions = targets.map(|target| text_of(&target["expr"])).collect();
            (text_of(&panel["title"]), expressions)
        })
        .collect()
}

/// Two processes on two machines have threads of one name: their sum would be a share above 100 %.
#[test]
fn panels_about_threads_keep_machines_and_processes_apart() {
    let mut seen = 0;
    for (title, expressions) in panels() {
        for expression in expressions
            .iter()
            .filter(|expression| expression.contains("dptrace_thread_seconds_total"))
        {
            assert!(
                expression.contains("sum by (instance, process, thread, where"),
                "{title}: {expression}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 2, "only {seen} expressions are about threads");
}

#[test]
#[ignore = "deep peers: it needs promtool"]
fn expressions_of_panels_are_those_of_prometheus() {
    if !needs("promtool") {
        return;
    }
    let filled = |expression: &String| {
        expression
            .replace("$__rate_interval", "1m")
            .replace("$instance", ".*")
    };
    let rules: Vec<Value> = panels()
        .iter()
        .flat_map(|(_, expressions)| expressions)
        .map(|expression| serde_json::json!({"record": "panel", "expr": filled(expression)}))
        .collect();
    let groups = serde_json::json!({"groups": [{"name": "panels", "rules": rules}]});
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("panels.yaml");
    fs::write(&file, groups.to_string()).expect("written");
    promtool(&["check", "rules", file.to_str().expect("UTF-8")], "");
}

#[test]
#[ignore = "deep peers: it needs promtool"]
fn rules_are_those_of_prometheus() {
    if needs("promtool") {
        promtool(
            &[
                "check",
                "rules",
                packaging("prometheus/dptrace-rules.yaml")
                    .to_str()
                    .expect("UTF-8"),
            ],
            "",
        );
    }
}

/// Returns whether the page refers to a histogram by its family name.
fn is_family(name: &str, page: &str, text: &str) -> bool {
    std::ptr::eq(page, text) && name == "dptrace_stage_seconds"
}
