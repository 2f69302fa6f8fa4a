//! Messages of a session, as text or JSON. Messages for standard output are returned as text. The
//! program prints the messages for standard error; only their wording is here.

use ::text::{json::push_string, printable};

use crate::table::{Cell, Table};
use crate::value::Value;
use crate::{json, text};

/// Form of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Text for people.
    #[default]
    Text,
    /// JSON, one object a line.
    Json,
}

/// Range in a script that a message refers to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScriptRange {
    /// Name of the script.
    pub file: String,
    /// Line and column of the first character, from 1.
    pub start: (usize, usize),
    /// Line and column behind the last character.
    pub end: (usize, usize),
}

impl ScriptRange {
    /// Formats the range as `stdin:1:9-62`, or as `stdin:1-2` if it spans several lines.
    pub fn shown(&self) -> String {
        let Self { file, start, end } = self;
        if start.0 == end.0 {
            format!("{file}:{}:{}-{}", start.0, start.1, end.1)
        } else {
            format!("{file}:{}-{}", start.0, end.0)
        }
    }
}

/// Formatter of messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Printer {
    form: Form,
}

impl Printer {
    /// Creates a printer for this form.
    pub fn new(form: Form) -> Self {
        Self { form }
    }

    /// Returns true if the form is JSON.
    pub fn is_json(self) -> bool {
        self.form == Form::Json
    }

    /// Formats text that the script printed. `kind` names its source, such as `printf` or `time`.
    pub fn words(self, kind: &str, words: &str) -> String {
        match self.form {
            Form::Text => words.to_owned(),
            Form::Json => message(kind, |out| push_string(out, words.as_bytes())),
        }
    }

    /// Formats a file's text; in text mode control characters are escaped for the terminal.
    pub fn file(self, bytes: &[u8]) -> String {
        match self.form {
            Form::Text => printable::lines(bytes).into_owned(),
            Form::Json => self.words("cat", &String::from_utf8_lossy(bytes)),
        }
    }

    /// Formats like [`Self::words`], but ends a line of text: `join`, and `syscall` for `system`.
    pub fn line(self, kind: &str, words: &str) -> String {
        match self.form {
            Form::Text => format!("{words}\n"),
            Form::Json => self.words(kind, words),
        }
    }

    /// Formats the output of `print(value)`.
    pub fn value(self, value: &Value) -> String {
        match self.form {
            Form::Text => text::value(value) + "\n",
            Form::Json => message("value", |out| json::push(out, value)),
        }
    }

    /// Formats the output of `print(@map[key])`.
    pub fn cell(self, cell: &Cell) -> String {
        match self.form {
            Form::Text => cell.to_string() + "\n",
            Form::Json => message("value", |out| json::push_cell(out, cell)),
        }
    }

    /// Formats a map; an empty table prints nothing.
    pub fn map(self, table: &Table) -> String {
        use crate::table::Kind;
        if table.rows.is_empty() {
            return String::new();
        }
        if self.form == Form::Text {
            return map_text(table);
        }
        let kind = match table.kind {
            Kind::Map => "map",
            Kind::Stats => "stats",
            Kind::Histogram => "hist",
            Kind::Series => "tseries",
        };
        message(kind, |out| json::push_table(out, table))
    }

    /// Formats the number of lost events, in JSON only; in text mode it is reported elsewhere.
    pub fn lost_events(self, lost: u64) -> String {
        match self.form {
            Form::Text => String::new(),
            Form::Json => {
                format!(
                    "{{\"type\": \"lost_events\", \"count\": {lost}, \"data\": {{\"events\": {lost}}}}}\n"
                )
            }
        }
    }

    /// Formats the number of attached probes, in JSON only, as [`Self::lost_events`].
    pub fn attached_probes(self, count: usize) -> String {
        match self.form {
            Form::Text => String::new(),
            Form::Json => {
                format!(
                    "{{\"type\": \"attached_probes\", \"count\": {count}, \"data\": {{\"probes\": {count}}}}}\n"
                )
            }
        }
    }

    /// Formats the message of `errorf` or `warnf`, in JSON only; in text mode it is printed
    /// elsewhere.
    pub fn complaint(self, kind: &str, words: &str, place: &ScriptRange) -> String {
        match self.form {
            Form::Text => String::new(),
            Form::Json => {
                let mut out = format!("{{\"type\": \"{kind}\", \"msg\": ");
                push_string(&mut out, words.as_bytes());
                out + &at(place)
            }
        }
    }

    /// Formats a helper's error, in JSON only, as [`Self::lost_events`].
    pub fn helper_error(self, words: &str, helper: &str, code: i64, place: &ScriptRange) -> String {
        match self.form {
            Form::Text => String::new(),
            Form::Json => {
                let mut out = "{\"type\": \"helper_error\", \"msg\": ".to_owned();
                push_string(&mut out, words.as_bytes());
                out.push_str(", \"helper\": ");
                push_string(&mut out, helper.as_bytes());
                out + &format!(", \"retcode\": {code}") + &at(place)
            }
        }
    }

    /// Formats any other failure of a program, in JSON only, as [`Self::lost_events`].
    pub fn runtime_error(self, words: &str, place: &ScriptRange) -> String {
        match self.form {
            Form::Text => String::new(),
            Form::Json => {
                let mut out = "{\"type\": \"runtime_error\", \"msg\": ".to_owned();
                push_string(&mut out, words.as_bytes());
                out + &at(place)
            }
        }
    }

    /// Formats the heading of `count` tests, in text only.
    pub fn tests_head(self, count: usize) -> String {
        if self.is_json() {
            String::new()
        } else {
            format!("[==========] Running {}.\n", tests(count))
        }
    }

    /// Formats a test's result: its name, result and duration in nanoseconds. In text mode,
    /// `output` is shown only if the test failed.
    pub fn test(self, name: &str, passed: bool, nanos: u64, output: &str) -> String {
        if self.is_json() {
            let fields = vec![
                ("duration".to_owned(), Value::Uint(nanos)),
                ("passed".to_owned(), Value::Bool(passed)),
                ("output".to_owned(), Value::Text(output.into())),
            ];
            return message("test_result", |out| {
                json::push(
                    out,
                    &Value::Record(vec![(name.to_owned(), Value::Record(fields))]),
                );
            });
        }
        let took = match nanos {
            0..1_000 => format!("{nanos} ns"),
            1_000..1_000_000 => format!("{} us", nanos / 1_000),
            1_000_000..1_000_000_000 => format!("{} ms", nanos / 1_000_000),
            _ => format!("{} s", nanos / 1_000_000_000),
        };
        let lines = output
            .lines()
            .filter(|line| !passed && !line.is_empty())
            .map(|line| format!("{line}\n"));
        let result = if passed {
            "[       OK ]"
        } else {
            "[  FAILED  ]"
        };
        format!(
            "[ RUN      ] {name}\n{}{result} {name} ({took})\n",
            lines.collect::<String>()
        )
    }

    /// Formats the summary of all tests, in text only: their number, and the names of the failed
    /// ones.
    pub fn tests_end(self, count: usize, failed: &[String]) -> String {
        if self.is_json() {
            return String::new();
        }
        let mut out = format!(
            "[==========] {} ran.\n[  PASSED  ] {}.\n",
            tests(count),
            tests(count - failed.len())
        );
        if !failed.is_empty() {
            let names = failed.iter().map(|name| format!("[  FAILED  ] {name}\n"));
            let listed = format!("[  FAILED  ] {}, listed below:\n", tests(failed.len()));
            out.extend(std::iter::once(listed).chain(names));
        }
        out
    }

    /// Formats a benchmark's result: its name, nanoseconds per run and number of runs.
    pub fn benchmark(self, name: &str, average: u64, runs: u64) -> String {
        let fields = vec![
            ("average".to_owned(), Value::Uint(average)),
            ("iters".to_owned(), Value::Uint(runs)),
        ];
        match self.form {
            Form::Text => format!("{name:<41}{average:<15}{runs}\n"),
            Form::Json => message("benchmark_result", |out| {
                json::push(
                    out,
                    &Value::Record(vec![(name.to_owned(), Value::Record(fields))]),
                );
            }),
        }
    }

    /// Formats the heading of benchmark results, in text only.
    pub fn benchmark_head(self) -> String {
        match self.form {
            Form::Text => format!(
                "{:<41}{:<15}Iterations\n{}\n",
                "Benchmark",
                "Time(ns)",
                "-".repeat(66)
            ),
            Form::Json => String::new(),
        }
    }

    /// Returns the separator between the last event and the maps.
    pub fn end(self) -> &'static str {
        if self.form == Form::Text { "\n\n" } else { "" }
    }
}

fn tests(count: usize) -> String {
    format!("{count} {}", if count == 1 { "test" } else { "tests" })
}

fn message(kind: &str, data: impl FnOnce(&mut String)) -> String {
    let mut out = format!("{{\"type\": \"{kind}\", \"data\": ");
    data(&mut out);
    out.push_str("}\n");
    out
}

fn at(place: &ScriptRange) -> String {
    let mut out = ", \"filename\": ".to_owned();
    push_string(&mut out, place.file.as_bytes());
    out + &format!(
        ", \"line\": {}, \"col\": {}}}\n",
        place.start.0, place.start.1
    )
}

fn map_text(table: &Table) -> String {
    let mut out = String::new();
    for (key, cell) in &table.rows {
        out.push_str(&table.name);
        if !table.is_scalar {
            out.push('[');
            out.push_str(&text::key(key));
            out.push(']');
        }
        // Output of several lines begins on a line of its own.
        out.push_str(if matches!(cell, Cell::Value(_)) {
            ": "
        } else {
            ":\n"
        });
        out.push_str(&cell.to_string());
        out.push('\n');
    }
    out
}
