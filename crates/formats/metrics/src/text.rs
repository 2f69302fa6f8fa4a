//! Text that Prometheus reads, in both of its formats.
//!
//! They are OpenMetrics 1.0 (its specification, sections "Text Format" and "Escaping") and
//! Prometheus's own text format 0.0.4 ("Exposition formats" of its documentation). They differ in
//! the name of a counter's family and in escapes of help texts. Only OpenMetrics has exemplars,
//! units and the end.

use std::fmt::{self, Write as _};

use crate::{CoarseHistogram, LE};

/// Format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4.
    Plain,
}

impl Format {
    /// Returns the format for a client that has sent these `Accept` headers: OpenMetrics if they
    /// name it.
    pub fn accepted(accept: &str) -> Self {
        let names = |part: &str| {
            let mut words = part.split(';').map(str::trim);
            let matches = words
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
            // A weight of 0 is a refusal (RFC 9110, 12.4.2).
            matches
                && !words.any(|word| {
                    word.strip_prefix("q=")
                        .is_some_and(|q| q.parse::<f64>() == Ok(0.0))
                })
        };
        if accept.split(',').any(names) {
            Self::OpenMetrics
        } else {
            Self::Plain
        }
    }

    /// Returns the value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Kind of a family of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Number that only grows.
    Counter,
    /// Value that rises and falls.
    Gauge,
    /// Counts of times.
    Histogram,
    /// Labels without a value.
    Info,
}

/// Family of series: one metric.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name without `_total` and `_info`, with the unit at its end.
    pub name: &'static str,
    /// Kind of the family.
    pub kind: Kind,
    /// Unit: the end of the name.
    pub unit: Option<&'static str>,
    /// Explanation for people.
    pub help: &'static str,
}

impl Family {
    /// Returns the name of its samples, except for histograms.
    pub fn sample(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Info => format!("{}_info", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

/// Number in the form in which it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Whole number.
    Whole(u64),
    /// Nanoseconds, written in seconds with all their digits.
    Nanos(u64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Nanos(nanos) if nanos.is_multiple_of(1_000_000_000) => {
                write!(f, "{}.0", nanos / 1_000_000_000)
            }
            Self::Nanos(nanos) => {
                let digits = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
                f.write_str(digits.trim_end_matches('0'))
            }
        }
    }
}

/// One time of a bucket with an identifying label: OpenMetrics' exemplar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// Length in nanoseconds.
    pub nanos: u64,
    /// Time of day, in nanoseconds since 1970.
    pub utc: u64,
    /// Label's name and value. At most 100 characters of the value are written (the format allows
    /// 128 for names and values of labels together).
    pub label: (&'static str, String),
}

/// Names and values of labels. A value is foreign text. An empty one counts as none, and is left
/// out.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Text that is being written.
#[derive(Debug)]
pub struct Text {
    format: Format,
    out: String,
    samples: usize,
}

impl Text {
    /// Creates an empty text.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            out: String::with_capacity(1 << 16),
            samples: 0,
        }
    }

    /// Returns the number of samples that were written, each a series for the reader.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Begins a family: its samples follow.
    pub fn family(&mut self, family: &Family) {
        let (name, kind) = match (self.format, family.kind) {
            (Format::OpenMetrics, Kind::Counter) => (family.name.to_owned(), "counter"),
            (Format::Plain, Kind::Counter) => (family.sample(), "counter"),
            (Format::OpenMetrics, Kind::Info) => (family.name.to_owned(), "info"),
            (Format::Plain, Kind::Info) => (family.sample(), "gauge"),
            (_, Kind::Gauge) => (family.name.to_owned(), "gauge"),
            (_, Kind::Histogram) => (family.name.to_owned(), "histogram"),
        };
        self.push(&["# TYPE ", &name, " ", kind, "\n"]);
        if let (Format::OpenMetrics, Some(unit)) = (self.format, family.unit) {
            self.push(&["# UNIT ", &name, " ", unit, "\n"]);
        }
        self.push(&["# HELP ", &name, " "]);
        escape(
            &mut self.out,
            family.help,
            self.format == Format::OpenMetrics,
        );
        self.out.push('\n');
    }

    /// Writes a sample of a counter, a gauge or an information (whose value is 1).
    pub fn sample(&mut self, family: &Family, labels: Labels<'_>, value: Value) {
        self.line(&family.sample(), labels, None, value);
        self.out.push('\n');
    }

    /// Writes the samples of a histogram. The exemplar goes to its bucket.
    pub fn histogram(
        &mut self,
        family: &Family,
        labels: Labels<'_>,
        counts: &CoarseHistogram,
        exemplar: Option<&Exemplar>,
    ) {
        let bucket = format!("{}_bucket", family.name);
        let place = exemplar.map(|exemplar| CoarseHistogram::index(exemplar.nanos));
        let cumulative = counts.cumulative();
        for (index, count) in cumulative.into_iter().enumerate() {
            let le = LE
                .get(index)
                .map_or("+Inf".to_owned(), |le| Value::Nanos(*le).to_string());
            self.line(&bucket, labels, Some(&le), Value::Whole(count));
            if let (Format::OpenMetrics, Some(exemplar), true) =
                (self.format, exemplar, place == Some(index))
            {
                self.exemplar(exemplar);
            }
            self.out.push('\n');
        }
        let all = cumulative[LE.len()];
        self.line(
            &format!("{}_sum", family.name),
            labels,
            None,
            Value::Nanos(counts.sum()),
        );
        self.out.push('\n');
        self.line(
            &format!("{}_count", family.name),
            labels,
            None,
            Value::Whole(all),
        );
        self.out.push('\n');
    }

    /// Returns the whole text.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }

    fn push(&mut self, parts: &[&str]) {
        for part in parts {
            self.out.push_str(part);
        }
    }

    /// Writes a sample without its line's end.
    fn line(&mut self, name: &str, labels: Labels<'_>, le: Option<&str>, value: Value) {
        self.samples += 1;
        self.out.push_str(name);
        let le = le.map(|le| ("le", le));
        let mut before = '{';
        for (label, text) in labels
            .iter()
            .copied()
            .chain(le)
            .filter(|(_, text)| !text.is_empty())
        {
            self.out.push(before);
            self.push(&[label, "=\""]);
            escape(&mut self.out, text, true);
            self.out.push('"');
            before = ',';
        }
        if before == ',' {
            self.out.push('}');
        }
        // Writing to a string does not fail.
        let _ = write!(self.out, " {value}");
    }

    fn exemplar(&mut self, exemplar: &Exemplar) {
        let (name, text) = &exemplar.label;
        self.push(&[" # {", name, "=\""]);
        escape(
            &mut self.out,
            &text.chars().take(100).collect::<String>(),
            true,
        );
        let _ = write!(
            self.out,
            "\"}} {} {}",
            Value::Nanos(exemplar.nanos),
            Value::Nanos(exemplar.utc)
        );
    }
}

/// Writes text as labels have it, or without `quotes` as help texts of the older format have it.
/// All other characters are unchanged, control characters too: readers know these three escapes
/// only.
fn escape(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: Family = Family {
        name: "a_requests",
        kind: Kind::Counter,
        unit: None,
        help: "Say \"a\\b\".",
    };
    const TIMES: Family = Family {
        name: "a_time_seconds",
        kind: Kind::Histogram,
        unit: Some("seconds"),
        help: "Times.",
    };
    const BUILD: Family = Family {
        name: "a_build",
        kind: Kind::Info,
        unit: None,
        help: "Build.",
    };

    fn written(format: Format) -> String {
        let mut text = Text::new(format);
        text.family(&REQUESTS);
        text.sample(
            &REQUESTS,
            &[("of", "a\"b\\c\nd\u{1}é"), ("none", "")],
            Value::Whole(7),
        );
        text.sample(&REQUESTS, &[("none", "")], Value::Nanos(1_500_000_000));
        text.family(&BUILD);
        text.sample(&BUILD, &[("version", "1")], Value::Whole(1));
        text.family(&TIMES);
        let mut counts = CoarseHistogram::default();
        for nanos in [1000, 2_000_000_000] {
            counts.add(nanos);
        }
        let label = ("object", "r\"1".to_owned());
        let exemplar = Exemplar {
            nanos: 2_000_000_000,
            utc: 1_700_000_000_250_000_000,
            label,
        };
        text.histogram(&TIMES, &[("stage", "whole")], &counts, Some(&exemplar));
        assert_eq!(text.samples(), 3 + 14);
        text.finish()
    }

    #[test]
    fn open_metrics_is_as_its_specification_has_it() {
        let text = written(Format::OpenMetrics);
        let begin = "# TYPE a_requests counter\n# HELP a_requests Say \\\"a\\\\b\\\".\n\
             a_requests_total{of=\"a\\\"b\\\\c\\nd\u{1}é\"} 7\na_requests_total 1.5\n\
             # TYPE a_build info\n# HELP a_build Build.\na_build_info{version=\"1\"} 1\n\
             # TYPE a_time_seconds histogram\n# UNIT a_time_seconds seconds\n# HELP a_time_seconds Times.\n\
             a_time_seconds_bucket{stage=\"whole\",le=\"0.000001024\"} 1\n";
        assert!(text.starts_with(begin), "{text}");
        let end = "a_time_seconds_bucket{stage=\"whole\",le=\"+Inf\"} 2 # {object=\"r\\\"1\"} 2.0 1700000000.25\n\
             a_time_seconds_sum{stage=\"whole\"} 2.000001\na_time_seconds_count{stage=\"whole\"} 2\n# EOF\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn the_older_format_has_its_own_names() {
        let text = written(Format::Plain);
        let begin = "# TYPE a_requests_total counter\n# HELP a_requests_total Say \"a\\\\b\".\n";
        assert!(text.starts_with(begin), "{text}");
        assert!(
            text.contains("# TYPE a_build_info gauge\n") && !text.contains("EOF"),
            "{text}"
        );
        assert!(!text.contains("UNIT") && !text.contains(" # {"), "{text}");
    }

    #[test]
    fn the_client_chooses() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        for plain in [
            "",
            "*/*",
            "text/plain",
            "application/openmetrics-text; q=0",
            "xapplication/openmetrics-text",
        ] {
            assert_eq!(Format::accepted(plain), Format::Plain, "{plain}");
        }
    }
}
