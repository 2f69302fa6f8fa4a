//! An HTTP client, and a strict parser of the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::kernel::{PROGRAM, Process, until};

/// Timeout for anything that is sure to come.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(5);

/// A running `dptrace serve` that answers.
pub(crate) struct Served {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

impl Served {
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = testkit::command(PROGRAM);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .env("NO_COLOR", "1")
            .stdout(Stdio::null());
        let mut process = Process::start(&mut command);
        let line = process.wait_for("listening on http");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .expect("an address");
        Self {
            address: address.parse().expect("an address"),
            process,
        }
    }

    /// Returns the body of a page.
    #[track_caller]
    pub(crate) fn page(&self, path: &str, accept: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
        let answer = ask(self.address, request.as_bytes());
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head: {answer:?}"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .expect("a length");
        assert_eq!(length.parse(), Ok(body.len()));
        body.to_owned()
    }

    #[track_caller]
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::read(&self.page("/metrics", "application/openmetrics-text;version=1.0.0"))
    }

    /// Scrapes until the metrics satisfy the predicate.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Metrics) -> bool) -> Metrics {
        let begin = Instant::now();
        loop {
            let metrics = self.metrics();
            if is_so(&metrics) {
                return metrics;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "never: {what}: {:#?}",
                metrics.samples
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Sends bytes, and reads until the end. Asks again if it is turned away: a client that has its
/// answer keeps its place until the server's thread has ended.
#[track_caller]
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> String {
    until(
        || ask_once(address, request),
        |answer| !answer.starts_with("HTTP/1.1 503 "),
    )
}

fn ask_once(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
    // The server may answer and close before everything has been sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("UTF-8")
}

/// Name and labels of a sample.
pub(crate) type Series = (String, BTreeMap<String, String>);

/// Parsed metrics.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) samples: BTreeMap<Series, f64>,
    /// Types of the families, by name.
    pub(crate) families: BTreeMap<String, String>,
    pub(crate) exemplars: usize,
}

impl Metrics {
    /// Parses OpenMetrics text strictly by its specification; panics at anything else.
    #[track_caller]
    pub(crate) fn read(text: &str) -> Self {
        let (mut metrics, mut family) = (Self::default(), String::new());
        let text = text.strip_suffix("# EOF\n").expect("the end");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let mut words = rest.splitn(3, ' ');
                let [keyword, name, value] =
                    [(); 3].map(|()| words.next().unwrap_or_else(|| panic!("{line}")));
                match keyword {
                    "TYPE" => {
                        name.clone_into(&mut family);
                        let before = metrics.families.insert(family.clone(), value.to_owned());
                        assert!(before.is_none(), "twice: {line}");
                    }
                    "UNIT" => assert!(
                        name == family && name.ends_with(&format!("_{value}")),
                        "{line}"
                    ),
                    "HELP" => assert!(name == family && !value.is_empty(), "{line}"),
                    _ => panic!("{line}"),
                }
                continue;
            }
            metrics.sample(line, &family);
        }
        metrics.check_histograms();
        metrics
    }

    fn sample(&mut self, line: &str, family: &str) {
        let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
        let (name, mut rest) = line.split_at(end);
        let mut labels = BTreeMap::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = read_labels(inside, &mut labels);
        }
        let rest = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
        let (value, exemplar) = rest
            .split_once(" # ")
            .map_or((rest, None), |(value, rest)| (value, Some(rest)));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        let kind = self.families[family].as_str();
        let suffix = name
            .strip_prefix(family)
            .unwrap_or_else(|| panic!("{line} is not of {family}"));
        let is_fitting = match kind {
            "counter" => suffix == "_total" && value >= 0.0,
            "gauge" => suffix.is_empty(),
            "info" => suffix == "_info" && value == 1.0,
            "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix) && value >= 0.0,
            _ => false,
        };
        assert!(is_fitting, "{kind}: {line}");
        if let Some(exemplar) = exemplar {
            assert_eq!(suffix, "_bucket", "{line}");
            let mut named = BTreeMap::new();
            let rest = read_labels(
                exemplar
                    .strip_prefix('{')
                    .unwrap_or_else(|| panic!("{line}")),
                &mut named,
            );
            let numbers: Vec<f64> = rest
                .split_ascii_whitespace()
                .map(|word| word.parse().expect("a number"))
                .collect();
            assert!(
                numbers.len() == 2 && numbers[0] <= bound(&labels) && numbers[1] > 1.7e9,
                "{line}"
            );
            self.exemplars += 1;
        }
        assert!(
            self.samples
                .insert((name.to_owned(), labels), value)
                .is_none(),
            "twice: {line}"
        );
    }

    /// Asserts that buckets increase, and that the last one equals the count.
    fn check_histograms(&self) {
        let mut series: BTreeMap<Series, Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), value) in &self.samples {
            let Some(family) = name.strip_suffix("_bucket") else {
                continue;
            };
            let mut without = labels.clone();
            without.remove("le");
            series
                .entry((family.to_owned(), without))
                .or_default()
                .push((bound(labels), *value));
        }
        for ((family, labels), mut buckets) in series {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(
                buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1),
                "{labels:?} {buckets:?}"
            );
            let last = buckets.last().expect("a bucket");
            assert!(last.0 == f64::INFINITY);
            assert_eq!(
                self.samples
                    .get(&(format!("{family}_count"), labels.clone())),
                Some(&last.1),
                "{labels:?}"
            );
        }
    }

    /// Returns the sum of the samples of that name which have all these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.matching(name, labels).map(|(_, value)| value).sum()
    }

    pub(crate) fn matching<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = (&'a BTreeMap<String, String>, f64)> {
        let matches = move |found: &BTreeMap<String, String>| {
            labels
                .iter()
                .all(|(label, value)| found.get(*label).is_some_and(|it| it == value))
        };
        let named = self
            .samples
            .iter()
            .filter(move |((it, labels), _)| it == name && matches(labels));
        named.map(|((_, labels), value)| (labels, *value))
    }

    /// Returns all values of a label.
    pub(crate) fn values(&self, label: &str) -> BTreeSet<&str> {
        self.samples
            .keys()
            .filter_map(|(_, labels)| labels.get(label).map(String::as_str))
            .collect()
    }
}

fn bound(labels: &BTreeMap<String, String>) -> f64 {
    match labels["le"].as_str() {
        "+Inf" => f64::INFINITY,
        number => number.parse().expect("a number"),
    }
}

/// Parses labels after their opening brace; returns the text after the closing one.
fn read_labels<'a>(text: &'a str, labels: &mut BTreeMap<String, String>) -> &'a str {
    let mut rest = text;
    loop {
        let (name, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
        let mut value = String::new();
        let mut chars = behind.char_indices();
        let end = loop {
            match chars.next() {
                Some((at, '"')) => break at,
                Some((_, '\\')) => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    other => panic!("an escape: {other:?} in {text}"),
                },
                Some((_, '\n')) | None => panic!("no end: {text}"),
                Some((_, c)) => value.push(c),
            }
        };
        assert!(
            !value.is_empty() && labels.insert(name.to_owned(), value).is_none(),
            "{text}"
        );
        let behind = &behind[end + 1..];
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return behind.strip_prefix('}').unwrap_or_else(|| panic!("{text}")),
        }
    }
}
