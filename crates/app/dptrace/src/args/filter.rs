//! The record filters, as typed.

use std::collections::HashSet;

use anyhow::{Context as _, bail};
use clap::Args;
use console::messages::note;
use errors::usage;
use glob::Pattern;
use objects::ObjectSpec;
use records::{Condition, Filter, Objects, OwnerFilter, Test, parse_number};
use requests::{add_matching, field, pattern};
use spdk_trace::{TickRate, Tpoint, TpointSet};
use text::patterns;

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

    /// Only records of these owners, by description or by prefix and number, such as '*cnode1*' or
    /// t03
    #[arg(long, value_name = "GLOB")]
    owner: Option<String>,

    /// Only records of these objects, or related to them
    ///
    /// By name (r10), or by address (0x7f00dc0a8000). If you read a trace that is still being
    /// written several times, addresses stay the same, names may not.
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
    /// FIELD=GLOB, FIELD!=GLOB, or FIELD, one of < <= > >=, and a number. If given several times,
    /// all conditions must be met. FIELD is lcore, tpoint, owner, poller, size, object, related,
    /// time (the object's age in us), tsc, arg.NAME, owner.PROPERTY (peer, subnqn, listener, qid,
    /// bdev, ...) or OBJECT.PROPERTY (qpair.hostnqn, ...).
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,

    /// Only the time span in which all lcores have records
    ///
    /// If rings wrapped, this leaves out records older than the first record of the lcore that
    /// starts last, as spdk_trace does.
    #[arg(long)]
    pub(crate) common: bool,
}

impl FilterArgs {
    /// Resolves the filters for a trace with these tracepoints and objects.
    pub(crate) fn resolve(
        &self,
        tpoints: &[Tpoint],
        specs: &[ObjectSpec],
        rate: TickRate,
    ) -> anyhow::Result<Filter> {
        let conditions = self.conditions.iter().map(|text| condition(text, specs));
        let owner = self.owner.as_deref().map(pattern).transpose()?;
        Ok(Filter {
            lcores: if self.lcore.is_empty() {
                None
            } else {
                Some(lcores(&self.lcore)?)
            },
            tpoints: if self.tpoint.is_empty() {
                None
            } else {
                Some(matching(&self.tpoint, tpoints)?)
            },
            owner: owner.map(OwnerFilter::new),
            objects: if self.object.is_empty() {
                None
            } else {
                Some(objects(&self.object)?)
            },
            since: self.since.map(|us| ticks(us, rate, f64::ceil)),
            until: self.until.map(|us| ticks(us, rate, f64::floor)),
            conditions: conditions.collect::<anyhow::Result<_>>()?,
        })
    }
}

/// Filter for DPDK events, which have neither owners nor objects.
pub(crate) struct EventFilter {
    pub(crate) lcores: Option<HashSet<u16>>,
    pub(crate) tpoints: Vec<Pattern>,
    /// Least time, in microseconds since the first event.
    pub(crate) since: Option<f64>,
    /// Greatest time, in microseconds since the first event.
    pub(crate) until: Option<f64>,
    /// Names of fields, each with the test for its value.
    pub(crate) conditions: Vec<(String, Test)>,
}

impl FilterArgs {
    /// Resolves the filters for a DPDK trace.
    pub(crate) fn of_events(&self) -> anyhow::Result<EventFilter> {
        let given = [
            ("--owner", self.owner.is_some()),
            ("--object", !self.object.is_empty()),
            ("--common", self.common),
        ];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(usage(format!(
                "{option} works only for SPDK traces: DPDK's have no owners and no objects"
            )));
        }
        let conditions = self.conditions.iter().map(|text| {
            let (name, test) = parts(text)?;
            Ok((name.strip_prefix("arg.").unwrap_or(name).to_owned(), test))
        });
        Ok(EventFilter {
            lcores: if self.lcore.is_empty() {
                None
            } else {
                Some(lcores(&self.lcore)?)
            },
            tpoints: self
                .tpoint
                .iter()
                .map(|glob| pattern(glob))
                .collect::<anyhow::Result<_>>()?,
            since: self.since,
            until: self.until,
            conditions: conditions.collect::<anyhow::Result<_>>()?,
        })
    }
}

/// Parses a condition such as `size>=4096`.
fn condition(text: &str, specs: &[ObjectSpec]) -> anyhow::Result<Condition> {
    let (name, must) = parts(text)?;
    let field = field::parse(name, specs).with_context(|| format!("in the condition {text:?}"))?;
    Ok(Condition::new(field, name, must))
}

/// Splits a condition into its field and the test for its value.
fn parts(text: &str) -> anyhow::Result<(&str, Test)> {
    const OPERATORS: [&str; 6] = ["!=", ">=", "<=", "=", ">", "<"];
    // The first operator counts; of two at one position, the longer.
    let found = OPERATORS.iter().filter_map(|op| Some((text.find(op)?, op)));
    let Some((at, operator)) = found.min_by_key(|(at, op)| (*at, std::cmp::Reverse(op.len())))
    else {
        return Err(usage(format!(
            "the condition {text:?} has no operator: use one of = != < <= > >="
        )));
    };
    let (name, value) = (text[..at].trim(), text[at + operator.len()..].trim());
    let number = || {
        parse_number(value).ok_or_else(|| {
            usage(format!(
                "in the condition {text:?}: {value:?} is not a number"
            ))
        })
    };
    let must = match *operator {
        "=" => Test::Matches(pattern(value)?),
        "!=" => Test::MatchesNot(pattern(value)?),
        "<" => Test::Number(f64::lt, number()?),
        "<=" => Test::Number(f64::le, number()?),
        ">" => Test::Number(f64::gt, number()?),
        _ => Test::Number(f64::ge, number()?),
    };
    Ok((name, must))
}

fn lcores(texts: &[String]) -> anyhow::Result<HashSet<u16>> {
    let mut lcores = HashSet::new();
    for text in texts {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last => lcores.extend(first..=last),
            _ => {
                return Err(usage(format!(
                    "{text:?} is neither an lcore nor a range of lcores (0,4-7)"
                )));
            }
        }
    }
    Ok(lcores)
}

fn matching(globs: &[String], tpoints: &[Tpoint]) -> anyhow::Result<TpointSet> {
    let mut wanted = TpointSet::default();
    let mut unknown = Vec::new();
    for glob in globs {
        if !add_matching(&mut wanted, glob, tpoints.iter())? {
            let near = patterns::hint(glob, tpoints.iter().map(|t| t.name.as_str()));
            unknown.push(format!(
                "no tracepoint of this trace matches {glob:?}{near} (list all with --list-tpoints)"
            ));
        }
    }
    // One of several names may belong to another SPDK version; if none matches, nothing would be
    // listed, without an error.
    if wanted.is_empty() {
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
        // No application uses a digit as a prefix: the prefix was forgotten, or this is an address.
        if let Some(digits) = text.strip_prefix("0x") {
            let id = u64::from_str_radix(digits, 16);
            objects.ids.insert(id.map_err(|_| {
                usage(format!(
                    "{text:?} is neither an object's name nor an address"
                ))
            })?);
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(usage(format!(
                "{text:?} has no prefix: an object's name is a prefix and a number, such as r10"
            )));
        } else {
            objects
                .names
                .insert(text.parse().map_err(|e| usage(format!("{text:?}: {e}")))?);
        }
    }
    Ok(objects)
}

/// Parses a time as typed. `f64` alone would accept "nan", which no record is before or after.
fn micros(text: &str) -> Result<f64, &'static str> {
    let us = text.parse().map_err(|_| "not a number of microseconds")?;
    if f64::is_finite(us) {
        Ok(us)
    } else {
        Err("not a number of microseconds")
    }
}

fn ticks(us: f64, rate: TickRate, round: fn(f64) -> f64) -> u64 {
    // Printed times are rounded to a thousandth; a time copied from the listing must still match
    // its own record.
    let slack = if round(0.5) > 0.5 { -0.0005 } else { 0.0005 };
    round((us + slack) * rate.get() as f64 / 1e6) as u64
}
