//! `--summary`: a row a group, the slowest first.

use std::cmp::Reverse;
use std::fmt::Write as _;

use screen::{HEAD, LARGEST, NAME, columns, pad, shorten, wrap};

use super::names::{Names, micros, quoted, shortened};
use super::stages::{Latencies, Subject, Times};
use super::tables::{SHORT_TIME, TIME_WIDTH};
use super::tail::Largest;

/// Objects that one tracepoint creates.
type Kind = (char, u16);

/// A group's row.
struct Row<'a> {
    subject: &'a Subject,
    times: &'a Times,
    p50: u64,
    p99: u64,
    /// What the slowest hundredth spent most on.
    most: Option<Largest>,
}

impl<'a> Row<'a> {
    fn new((subject, times): &'a (Subject, Times)) -> Self {
        let p99 = times.whole.quantile(0.99);
        Self { subject, times, p50: times.whole.quantile(0.5), p99, most: times.tail.largest(p99) }
    }
}

/// The rows of each kind of object, the slowest first; the kind on which most time was spent first.
fn kinds(latencies: &Latencies) -> Vec<(Kind, Vec<Row<'_>>)> {
    let mut kinds: Vec<(Kind, Vec<Row<'_>>)> = Vec::new();
    for each in &latencies.subjects {
        let kind = (each.0.prefix, each.0.first);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, rows)) => rows.push(Row::new(each)),
            None => kinds.push((kind, vec![Row::new(each)])),
        }
    }
    for (_, rows) in &mut kinds {
        rows.sort_by_key(|row| Reverse((row.p99, row.times.whole.max(), Reverse(&row.subject.group))));
    }
    kinds.sort_by_key(|(kind, rows)| (Reverse(rows.iter().map(|row| row.times.whole.sum()).sum::<u128>()), *kind));
    kinds
}

/// A table for each kind of object.
pub(super) fn text(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for (index, (kind, rows)) in kinds(latencies).iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        Table::new(*kind, rows, names).write(&mut text, rows);
    }
    text
}

/// What the last column is called.
const MOST: &str = "most of p99";

/// How a table is laid out.
struct Table<'a> {
    names: &'a Names<'a>,
    title: String,
    /// What the groups share, where that was left out of them.
    shared: String,
    groups: Vec<String>,
    stages: Vec<String>,
    group_width: usize,
    count_width: usize,
    time_width: usize,
}

impl<'a> Table<'a> {
    fn new((prefix, first): Kind, rows: &[Row<'_>], names: &'a Names<'a>) -> Self {
        let count = |row: &Row<'_>| (row.times.whole.count() + row.times.unfinished).to_string().len();
        let count_width = rows.iter().map(count).max().unwrap_or(0).max("requests".len()) + 1;
        let mut this = Self {
            names,
            title: format!("{prefix} from {}", names.tpoint(first)),
            shared: String::new(),
            groups: rows.iter().map(|row| group(&row.subject.group)).collect(),
            stages: rows.iter().map(|row| most(row, |stage| names.stage(stage))).collect(),
            group_width: 0,
            count_width,
            time_width: if names.screen.is_terminal() { SHORT_TIME } else { TIME_WIDTH + 1 },
        };
        let room = names.screen.width().map(|width| width.saturating_sub(count_width + 3 * this.time_width + 2));
        if let Some(room) = room {
            this.fit(room, rows);
        }
        this.group_width = this.longest_group().max(columns(&this.head()));
        if let Some(room) = room {
            this.group_width = this.group_width.min(room.saturating_sub(this.longest_stage()));
        }
        this
    }

    /// Makes names shorter until groups and stages fit the columns that are left for them, if they can be made to.
    fn fit(&mut self, room: usize, rows: &[Row<'_>]) {
        let names = self.names;
        let fits = |this: &Self| this.longest_group() + this.longest_stage() <= room;
        if fits(self) {
            return;
        }
        let start = names.common_start(rows.iter().filter_map(|row| Some(row.most?.stage))).len();
        let short =
            |(from, to): (u16, u16)| format!("{} -> {}", &names.tpoint(from)[start..], &names.tpoint(to)[start..]);
        self.stages = rows.iter().map(|row| most(row, short)).collect();
        if fits(self) {
            return;
        }
        let short = shortened(&self.groups);
        (self.groups, self.shared) = (short.names, short.shared);
        if fits(self) {
            return;
        }
        self.stages = rows.iter().map(|row| most(row, |(from, _)| names.tpoint(from)[start..].to_owned())).collect();
    }

    fn longest_group(&self) -> usize {
        self.groups.iter().map(|group| columns(group)).max().unwrap_or(0)
    }

    fn longest_stage(&self) -> usize {
        self.stages.iter().map(|stage| columns(stage)).max().unwrap_or(0).max(MOST.len())
    }

    /// What the groups are.
    fn head(&self) -> String {
        if self.names.by.is_empty() { "all".to_owned() } else { self.names.by.join(", ") }
    }

    fn write(&self, text: &mut String, rows: &[Row<'_>]) {
        let (screen, time, count) = (self.names.screen, self.time_width, self.count_width);
        let unit = if screen.is_terminal() { "" } else { " (us)" };
        let title = format!("{}, slowest p99 first{unit}", self.title);
        self.line(text, &screen.paint(HEAD, title).to_string());
        if let Some(width) = screen.width().filter(|_| !self.shared.is_empty()) {
            for line in wrap(&format!("{}: {}", self.head(), self.shared), width) {
                self.line(text, &line);
            }
        }
        let group = pad(&shorten(&self.head(), self.group_width), self.group_width);
        let head = format!("{group}{:>count$}{:>time$}{:>time$}{:>time$}  {MOST}", "requests", "p50", "p99", "max");
        self.line(text, &screen.paint(HEAD, head).to_string());
        for (index, row) in rows.iter().enumerate() {
            let group = pad(&shorten(&self.groups[index], self.group_width), self.group_width);
            let values = [row.p50, row.p99, row.times.whole.max()];
            let [p50, p99, max] =
                values.map(|nanos| if row.times.whole.count() > 0 { self.names.time(nanos) } else { "-".into() });
            // Of several, the first is the slowest.
            let worst = if index == 0 && rows.len() > 1 { LARGEST } else { screen::Style::new() };
            let (p99, stage) = (screen.paint(worst, p99), screen.paint(worst, &self.stages[index]));
            let objects = row.times.whole.count() + row.times.unfinished;
            let group = screen.paint(NAME, group);
            self.line(text, &format!("{group}{objects:>count$}{p50:>time$}{p99:>time$}{max:>time$}  {stage}"));
        }
    }

    fn line(&self, text: &mut String, line: &str) {
        text.push_str(&self.names.screen.cut(line));
        text.push('\n');
    }
}

fn group(values: &[Option<Box<str>>]) -> String {
    if values.is_empty() {
        return "all".to_owned();
    }
    values.iter().map(|value| value.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(", ")
}

/// A stage's name and its share.
fn most(row: &Row<'_>, name: impl Fn((u16, u16)) -> String) -> String {
    row.most.map_or_else(|| "-".to_owned(), |most| format!("{} {:.0}%", name(most.stage), most.share * 100.0))
}

/// An object a row.
pub(super) fn json(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for ((prefix, first), rows) in kinds(latencies) {
        for (index, row) in rows.iter().enumerate() {
            let (rank, object, first) = (index + 1, quoted(&prefix.to_string()), quoted(names.tpoint(first)));
            let _ = write!(text, "{{\"summary\":{rank},\"object\":{object},\"first\":{first}");
            text.push_str(&names.json_group(&row.subject.group));
            let (count, unfinished) = (row.times.whole.count(), row.times.unfinished);
            let _ = write!(text, ",\"count\":{count},\"unfinished\":{unfinished}");
            let [p50, p99, max] = [row.p50, row.p99, row.times.whole.max()].map(micros);
            let _ = write!(text, ",\"p50_us\":{p50},\"p99_us\":{p99},\"max_us\":{max},\"most_of_p99\":");
            let _ = match row.most {
                Some(Largest { stage: (from, to), share }) => {
                    let (from, to) = (quoted(names.tpoint(from)), quoted(names.tpoint(to)));
                    writeln!(text, "{{\"from\":{from},\"to\":{to},\"share\":{share:.3}}}}}")
                }
                None => writeln!(text, "null}}"),
            };
        }
    }
    text
}
