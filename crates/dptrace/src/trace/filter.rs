//! Which records are wanted.

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, bail};
use clap::Args;
use glob::Pattern;
use objects::ObjectSpec;
use spdk_trace::{ArgValue, ObjectName, Record, TickRate, Ticks, Tpoint};

use super::field::{Context, Field, parse_number};
use crate::failure::{note, usage};
use crate::names;

/// The filters, as typed. A record must pass all of them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only records of these lcores: numbers and ranges, such as 0,4-7
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    lcore: Vec<String>,

    /// Only records of these tracepoints, such as 'TCP_REQ_*,BDEV_IO_DONE'
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',')]
    tpoint: Vec<String>,

    /// Only records of these owners, by description or by prefix and number, such as '*cnode1*' or t03
    #[arg(long, value_name = "GLOB")]
    owner: Option<String>,

    /// Only records of these objects, or related to them
    ///
    /// By name (r10), or by address (0x7f00dc0a8000), which is the same each time a trace is read while it is written.
    #[arg(long, value_name = "r10,...", value_delimiter = ',')]
    object: Vec<String>,

    /// Only records at or after this time, in microseconds since the first record
    #[arg(long, value_name = "US", value_parser = micros)]
    since: Option<f64>,

    /// Only records at or before this time, in microseconds since the first record
    #[arg(long, value_name = "US", value_parser = micros)]
    until: Option<f64>,

    /// Only records that meet this condition
    ///
    /// FIELD=GLOB, FIELD!=GLOB, or FIELD, one of < <= > >=, and a number. If given several times, all conditions must be
    /// met. FIELD is lcore, tpoint, owner, poller, size, object, related, time (the object's age in us), tsc, arg.NAME,
    /// owner.PROPERTY (peer, subnqn, listener, qid, bdev, ...) or OBJECT.PROPERTY (qpair.hostnqn, ...).
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,

    /// Only the time in which all lcores have records
    ///
    /// If rings wrapped, this leaves out records older than the first record of the lcore that starts last, as spdk_trace
    /// does.
    #[arg(long)]
    pub(crate) common: bool,
}

/// The filters, as understood.
pub(crate) struct Filter {
    lcores: Option<HashSet<u16>>,
    /// By tracepoint id.
    tpoints: Option<Vec<bool>>,
    owner: Option<OwnerFilter>,
    objects: Option<Objects>,
    /// In ticks since the first record.
    since: Option<u64>,
    until: Option<u64>,
    conditions: Vec<Condition>,
}

struct OwnerFilter {
    pattern: Pattern,
    /// There are few descriptions and many records.
    known: HashMap<String, bool>,
}

struct Condition {
    field: Field,
    /// As typed.
    name: String,
    test: Test,
    /// Whether it was asked of a record, and whether one had the field.
    is_asked: bool,
    is_there: bool,
}

enum Test {
    Matches(Pattern),
    MatchesNot(Pattern),
    Number(fn(&f64, &f64) -> bool, f64),
}

impl FilterArgs {
    /// Understands the filters for a trace with these tracepoints and objects.
    pub(crate) fn resolve(&self, tpoints: &[Tpoint], specs: &[ObjectSpec], rate: TickRate) -> anyhow::Result<Filter> {
        let conditions = self.conditions.iter().map(|text| Condition::parse(text, specs));
        let owner = self.owner.as_deref().map(pattern).transpose()?;
        Ok(Filter {
            lcores: if self.lcore.is_empty() { None } else { Some(lcores(&self.lcore)?) },
            tpoints: if self.tpoint.is_empty() { None } else { Some(matching(&self.tpoint, tpoints)?) },
            owner: owner.map(|pattern| OwnerFilter { pattern, known: HashMap::new() }),
            objects: if self.object.is_empty() { None } else { Some(objects(&self.object)?) },
            since: self.since.map(|us| ticks(us, rate, f64::ceil)),
            until: self.until.map(|us| ticks(us, rate, f64::floor)),
            conditions: conditions.collect::<anyhow::Result<_>>()?,
        })
    }
}

impl Filter {
    /// What its conditions ask for.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.conditions.iter().map(|condition| &condition.field)
    }

    /// Whether the record is wanted; `base` is the first record's time.
    #[inline]
    pub(crate) fn wants(&mut self, record: &Record<'_>, base: Ticks, context: &Context<'_>) -> bool {
        let since_base = record.tsc.0.saturating_sub(base.0);
        self.since.is_none_or(|since| since_base >= since)
            && self.until.is_none_or(|until| since_base <= until)
            && self.lcores.as_ref().is_none_or(|lcores| lcores.contains(&record.lcore.0))
            && self.tpoints.as_ref().is_none_or(|wanted| wanted.get(usize::from(record.tpoint.id)) == Some(&true))
            && self.objects.as_ref().is_none_or(|objects| objects.concern(record))
            && self.owner.as_mut().is_none_or(|owner| owner.wants(record, context))
            && self.conditions.iter_mut().all(|condition| condition.holds(record, context))
    }

    /// Why no record passed, as far as that is known: what no record had. For the end of a message.
    pub(crate) fn why_nothing(&self) -> String {
        let missing = self.conditions.iter().filter(|condition| condition.is_asked && !condition.is_there);
        let missing: Vec<_> = missing.map(|condition| condition.name.as_str()).collect();
        if missing.is_empty() { String::new() } else { format!(" (no record has {})", missing.join(" or ")) }
    }
}

impl OwnerFilter {
    fn wants(&mut self, record: &Record<'_>, context: &Context<'_>) -> bool {
        let Some(description) = record.owner else {
            return Field::Poller.value(record, context).is_some_and(|poller| self.pattern.matches(&poller));
        };
        let by_description = if let Some(&known) = self.known.get(description) {
            known
        } else {
            let matches = self.pattern.matches(description);
            self.known.insert(description.to_owned(), matches);
            matches
        };
        by_description || Field::Poller.value(record, context).is_some_and(|poller| self.pattern.matches(&poller))
    }
}

/// Objects by their names, and by their ids.
#[derive(Default)]
struct Objects {
    names: HashSet<ObjectName>,
    ids: HashSet<u64>,
}

impl Objects {
    /// Whether it is a record of one of these, or points to one.
    fn concern(&self, record: &Record<'_>) -> bool {
        let related = record.related.map(|related| related.name);
        let points = |value: ArgValue<'_>| match value {
            ArgValue::Int(id) | ArgValue::Pointer(id) => self.ids.contains(&id),
            ArgValue::Str(_) => false,
        };
        record.object.name().into_iter().chain(related).any(|name| self.names.contains(&name))
            || !self.ids.is_empty()
                && (record.object.id().is_some_and(|id| self.ids.contains(&id))
                    || record.args.iter().any(|(_, value)| points(value)))
    }
}

impl Condition {
    fn parse(text: &str, specs: &[ObjectSpec]) -> anyhow::Result<Self> {
        const OPERATORS: [&str; 6] = ["!=", ">=", "<=", "=", ">", "<"];
        // The operator that stands first; of two at one place the longer.
        let found = OPERATORS.iter().filter_map(|op| Some((text.find(op)?, op)));
        let Some((at, operator)) = found.min_by_key(|(at, op)| (*at, std::cmp::Reverse(op.len()))) else {
            return Err(usage(format!("the condition {text:?} has none of = != < <= > >=")));
        };
        let (name, value) = (text[..at].trim(), text[at + operator.len()..].trim());
        let field = Field::parse(name, specs).with_context(|| format!("in the condition {text:?}"))?;
        let number = || {
            parse_number(value).ok_or_else(|| usage(format!("in the condition {text:?}: {value:?} is not a number")))
        };
        let must = match *operator {
            "=" => Test::Matches(pattern(value)?),
            "!=" => Test::MatchesNot(pattern(value)?),
            "<" => Test::Number(f64::lt, number()?),
            "<=" => Test::Number(f64::le, number()?),
            ">" => Test::Number(f64::gt, number()?),
            _ => Test::Number(f64::ge, number()?),
        };
        Ok(Self { field, name: name.to_owned(), test: must, is_asked: false, is_there: false })
    }

    /// A record that has no such field passes `!=` only.
    fn holds<'a>(&mut self, record: &Record<'a>, context: &Context<'a>) -> bool {
        let value = || self.field.value(record, context);
        let (is_there, holds) = match &self.test {
            Test::Matches(pattern) => value().map_or((false, false), |v| (true, pattern.matches(&v))),
            Test::MatchesNot(pattern) => value().map_or((false, true), |v| (true, !pattern.matches(&v))),
            Test::Number(compare, to) => {
                self.field.number(record, context).map_or((false, false), |n| (true, compare(&n, to)))
            }
        };
        self.is_asked = true;
        self.is_there |= is_there;
        holds
    }
}

fn pattern(text: &str) -> anyhow::Result<Pattern> {
    Pattern::new(text).map_err(|e| usage(format!("the glob {text:?} is wrong at character {}: {}", e.pos + 1, e.msg)))
}

fn lcores(texts: &[String]) -> anyhow::Result<HashSet<u16>> {
    let mut lcores = HashSet::new();
    for text in texts {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => lcores.extend(first..=last),
            _ => return Err(usage(format!("{text:?} is neither an lcore nor a range of lcores (0,4-7)"))),
        }
    }
    Ok(lcores)
}

fn matching(globs: &[String], tpoints: &[Tpoint]) -> anyhow::Result<Vec<bool>> {
    let ids = tpoints.iter().map(|t| usize::from(t.id) + 1).max().unwrap_or(0);
    let mut wanted = vec![false; ids];
    let mut unknown = Vec::new();
    for glob in globs {
        let pattern = pattern(glob)?;
        let mut any = false;
        for tpoint in tpoints.iter().filter(|t| pattern.matches(&t.name)) {
            wanted[usize::from(tpoint.id)] = true;
            any = true;
        }
        if !any {
            let near = names::hint(glob, tpoints.iter().map(|t| t.name.as_str()));
            unknown.push(format!("no tracepoint of this trace matches {glob:?}{near} (list all with --list-tpoints)"));
        }
    }
    // One of several may be of another version of SPDK; where none fits, nothing would be shown and nothing said to be wrong.
    if !wanted.contains(&true) {
        bail!("{}", unknown.join("; "));
    }
    for text in &unknown {
        note(text);
    }
    Ok(wanted)
}

fn objects(texts: &[String]) -> anyhow::Result<Objects> {
    let mut objects = Objects::default();
    for text in texts {
        // No application has a digit for a prefix: the prefix was forgotten, or it is an address.
        if let Some(digits) = text.strip_prefix("0x") {
            let id = u64::from_str_radix(digits, 16);
            objects.ids.insert(id.map_err(|_| usage(format!("{text:?} is neither an object's name nor an address")))?);
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(usage(format!(
                "{text:?} has no prefix: an object's name is a prefix and a number, such as r10"
            )));
        } else {
            objects.names.insert(text.parse().map_err(|e| usage(format!("{text:?}: {e}")))?);
        }
    }
    Ok(objects)
}

/// A time as typed. `f64` alone would take "nan", which no record is before or after.
fn micros(text: &str) -> Result<f64, &'static str> {
    let us = text.parse().map_err(|_| "not a number of microseconds")?;
    if f64::is_finite(us) { Ok(us) } else { Err("not a number of microseconds") }
}

fn ticks(us: f64, rate: TickRate, round: fn(f64) -> f64) -> u64 {
    // What is shown is rounded to a thousandth; a time that was read off the listing must not miss its own record.
    let slack = if round(0.5) > 0.5 { -0.0005 } else { 0.0005 };
    round((us + slack) * rate.get() as f64 / 1e6) as u64
}
