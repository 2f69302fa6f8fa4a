//! A report made of the fuzzer's input, and what must hold of the markup that is made of it.

use std::collections::BTreeSet;

use std::path::{Path, PathBuf};

use page::{
    AbsenceSpan, Activity, Budget, Cause, Connection, Figures, Group, Heat, Hole, Intruder, Lane,
    LaneStrip, PerfettoFile, Report, Span, StageFigures, Summary, TimeCauses, Verdict, WaterStage,
    Waterfall,
};

/// Names and numbers from the input; behind its end, the same ones over and over.
struct Source<'a> {
    text: Vec<&'a str>,
    numbers: &'a [u8],
    at: usize,
    named: usize,
}

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.numbers
            .get((self.at - 1) % self.numbers.len().max(1))
            .copied()
            .unwrap_or(0)
    }

    /// Any number, small ones as often as large ones.
    fn number(&mut self) -> u64 {
        let digits = self.byte() % 65;
        let all = u64::from_le_bytes(std::array::from_fn(|_| self.byte()));
        all.checked_shr(64 - u32::from(digits)).unwrap_or(0)
    }

    fn few(&mut self) -> usize {
        usize::from(self.byte() % 4)
    }

    /// Never empty: what has no name is left out, which is no matter of markup.
    fn name(&mut self) -> String {
        self.named += 1;
        let name = self
            .text
            .get((self.named - 1) % self.text.len().max(1))
            .copied()
            .unwrap_or_default();
        if name.is_empty() {
            "x".to_owned()
        } else {
            name.to_owned()
        }
    }

    fn activity(&mut self) -> Activity {
        Activity::ALL[usize::from(self.byte()) % Activity::ALL.len()]
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.few()).map(|_| one(self)).collect()
    }

    fn figures(&mut self) -> Figures {
        let quantiles = std::array::from_fn(|_| self.number());
        let (count, mean, max) = (self.number(), self.number(), self.number());
        Figures {
            count,
            mean,
            quantiles,
            max,
            curve: self.list(Self::number),
        }
    }

    fn stage(&mut self) -> StageFigures {
        StageFigures {
            from: self.name(),
            to: self.name(),
            figures: self.figures(),
        }
    }

    fn span(&mut self) -> Span {
        Span {
            at: self.number(),
            length: self.number(),
            activity: self.activity(),
            what: self.name(),
        }
    }

    fn waterfall(&mut self) -> Waterfall {
        let stage = |it: &mut Self| WaterStage {
            from: it.name(),
            to: it.name(),
            at: it.number(),
            length: it.number(),
            lost: (it.number(), it.number()),
            ends: "its own work",
        };
        Waterfall {
            name: self.name(),
            kind: self.name(),
            whose: Some(self.name()),
            ran_on: self.name(),
            at: self.number(),
            length: self.number(),
            lost: Some((self.number(), self.number())),
            culprits: self.list(Self::name),
            stages: self.list(stage),
            threads: self.list(|it| (it.name(), it.list(Self::span))),
            spans_left_out: self.number(),
        }
    }

    fn lanes(&mut self) -> LaneStrip {
        let columns = |it: &mut Self| std::array::from_fn(|_| it.number());
        let taken = |it: &mut Self| AbsenceSpan {
            lane: it.few(),
            at: it.number(),
            length: it.number(),
            activity: it.activity(),
            what: it.name(),
        };
        LaneStrip {
            column: self.number(),
            lanes: self.list(|it| Lane {
                name: it.name(),
                columns: it.list(columns),
            }),
            taken: self.list(taken),
        }
    }

    fn connection(&mut self) -> Connection {
        Connection {
            name: Some(self.name()),
            group: self.few(),
            whole: self.figures(),
            unfinished: self.number(),
            summary: Summary {
                most: Some((self.name(), self.name(), 0.5)),
                excluded: Some(self.name()),
            },
            lost: Some(((self.number(), self.number()), self.number())),
            stages: self.list(Self::stage),
        }
    }

    fn hole(&mut self) -> Hole {
        Hole {
            at: self.number(),
            length: self.number(),
            why: self.name(),
        }
    }

    fn cause(&mut self) -> Cause {
        Cause {
            name: self.name(),
            activity: Some(self.activity()),
            cpus: vec![7],
            took: (self.number(), self.number()),
            stage: Some((self.name(), self.name())),
        }
    }

    fn budget(&mut self) -> Budget {
        Budget {
            name: self.name(),
            tid: 7,
            cpus: vec![1, 2],
            sums: std::array::from_fn(|_| self.number()),
        }
    }

    fn intruder(&mut self) -> Intruder {
        Intruder {
            name: self.name(),
            activity: self.activity(),
            cpu: Some(7),
            victims: self.list(Self::name),
            times: self.number(),
            total: self.number(),
            longest: self.number(),
        }
    }

    fn group(&mut self) -> Group {
        Group {
            name: self.name(),
            first: self.name(),
            prefix: 'r',
            whole: self.figures(),
            unfinished: self.number(),
            stages: self.list(Self::stage),
        }
    }

    fn report(&mut self) -> Report {
        let span = self.number();
        let mut heat = Heat::new(span);
        for _ in 0..self.few() * 4 {
            let (end, length, whose) = (self.number(), self.number(), self.name());
            heat.add(end, length, Some(&whose), || "r1".to_owned());
        }
        let holes = self.list(Self::hole);
        Report {
            title: self.name(),
            maker: self.name(),
            facts: self.list(|it| (it.name(), it.name())),
            offset: self.number(),
            span,
            has_kernel: self.byte() % 2 == 0,
            still_open: (self.byte() % 2 == 0).then(|| self.name()),
            absences: self.list(Self::name),
            perfetto: (self.byte() % 2 == 0).then(|| {
                let file = PathBuf::from(self.name());
                PerfettoFile::from_paths(Some(Path::new("x.html")), &file)
            }),
            verdicts: self.list(|it| Verdict {
                sentence: it.name(),
                explained: it.name(),
            }),
            left_out: self.list(Self::name),
            spent: TimeCauses {
                of: self.name(),
                requests: self.number(),
                length: self.number(),
                causes: self.list(Self::cause),
            },
            notes: self.list(Self::name),
            heat: heat.finish(span, holes),
            lanes: self.lanes(),
            budgets: self.list(Self::budget),
            budgets_left_out: self.number(),
            intruders: self.list(Self::intruder),
            intruders_left_out: self.number(),
            waterfalls: self.list(Self::waterfall),
            groups: self.list(Self::group),
            connections: self.list(Self::connection),
            connections_left_out: self.number(),
        }
    }
}

/// A report of which all names are lines of this text, and all numbers and counts come of these bytes.
pub fn made_of(text: &str, numbers: &[u8]) -> Report {
    Source {
        text: text.split('\n').collect(),
        numbers,
        at: 0,
        named: 0,
    }
    .report()
}

/// The elements of a document, each as its name with the names of its attributes.
///
/// # Panics
/// If it is not well formed: an element that is not closed, an attribute without quotes, an unknown entity, a character that
/// does something to those who read the source.
pub fn elements(document: &str) -> BTreeSet<String> {
    let is_obeyed = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!document.contains(is_obeyed), "a control character");
    let (mut found, mut open, mut rest) = (BTreeSet::new(), Vec::new(), document);
    rest = rest.strip_prefix("<!doctype html>\n").unwrap_or(rest);
    while let Some((text, tag)) = rest.split_once('<') {
        check_text(text);
        let (tag, after) = split_tag(tag);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "the elements are nested");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        assert!(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()),
            "no element: {name}"
        );
        found.insert(format!("{name}{}", attributes(&tag[name.len()..])));
        // Scripts, styles and data are no markup up to their end.
        if let "script" | "style" = name {
            let (inside, after) = rest.split_once("</").expect("it ends");
            rest = after
                .strip_prefix(&format!("{name}>"))
                .unwrap_or_else(|| panic!("{name} has {inside:?}"));
        } else if !tag.ends_with('/') && !matches!(name, "meta" | "input") {
            open.push(name);
        }
    }
    check_text(rest);
    assert_eq!(open, Vec::<&str>::new(), "all elements end");
    found
}

/// A tag up to its end, which is not within quotes.
fn split_tag(text: &str) -> (&str, &str) {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return (&text[..at], &text[at + 1..]),
            '<' => panic!("a tag in a tag: {:?}", &text[..at]),
            _ => {}
        }
    }
    panic!("a tag does not end");
}

/// The names of attributes; their values are in quotes.
fn attributes(text: &str) -> String {
    let (mut names, mut rest) = (String::new(), text.trim_end_matches('/').trim());
    while !rest.is_empty() {
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "no attribute: {name:?}"
        );
        names.push(' ');
        names.push_str(name);
        rest = after;
        if let Some(value) = rest.strip_prefix("=\"") {
            let (value, after) = value.split_once('"').expect("it ends");
            check_text(value);
            rest = after;
        }
        rest = rest.trim_start();
    }
    names
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let is_known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"]
            .iter()
            .any(|known| text[at..].starts_with(known));
        assert!(
            is_known,
            "an entity: {:?}",
            text[at..].chars().take(12).collect::<String>()
        );
    }
}
