//! Filters for records.

use std::collections::{HashMap, HashSet};

use glob::Pattern;
use spdk_trace::{ArgValue, ObjectName, Record, Ticks, TpointSet};

use crate::field::{Context, Field};

/// Criteria for a record; a missing one permits all.
#[derive(Default)]
pub struct Filter {
    /// Lcores that wrote it.
    pub lcores: Option<HashSet<u16>>,
    /// Tracepoints.
    pub tpoints: Option<TpointSet>,
    /// Owners.
    pub owner: Option<OwnerFilter>,
    /// Objects that it is about or related to.
    pub objects: Option<Objects>,
    /// Minimum time, in ticks since the first record.
    pub since: Option<u64>,
    /// Maximum time, in ticks since the first record.
    pub until: Option<u64>,
    /// Further conditions, which must all hold.
    pub conditions: Vec<Condition>,
}

/// A filter for owners by a pattern that matches their description, or prefix and number.
pub struct OwnerFilter {
    pattern: Pattern,
    /// Cache by description: there are few descriptions and many records.
    known: HashMap<String, bool>,
}

/// A condition on a field.
pub struct Condition {
    field: Field,
    /// Name of the field, as typed.
    name: String,
    test: Test,
    /// True once a record was tested, and once one had the field.
    is_asked: bool,
    is_there: bool,
}

/// Test of a field's value.
#[derive(Debug)]
pub enum Test {
    /// The pattern matches.
    Matches(Pattern),
    /// The pattern does not match.
    MatchesNot(Pattern),
    /// The comparison with a number holds.
    Number(fn(&f64, &f64) -> bool, f64),
}

impl Filter {
    /// Iterates over the fields of its conditions.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.conditions.iter().map(|condition| &condition.field)
    }

    /// Returns whether the record passes; `base` is the first record's time.
    #[inline]
    pub fn wants(&mut self, record: &Record<'_>, base: Ticks, context: &Context<'_>) -> bool {
        self.reaches(record, base)
            && self
                .tpoints
                .as_ref()
                .is_none_or(|wanted| wanted.contains(record.tpoint.id))
            && self
                .objects
                .as_ref()
                .is_none_or(|objects| objects.concern(record))
            && self
                .owner
                .as_mut()
                .is_none_or(|owner| owner.wants(record, context))
            && self
                .conditions
                .iter_mut()
                .all(|condition| condition.holds(record, context))
    }

    /// Returns whether a record passes the filters for lcores and time.
    #[inline]
    pub fn reaches(&self, record: &Record<'_>, base: Ticks) -> bool {
        let since_base = record.tsc.0.saturating_sub(base.0);
        self.since.is_none_or(|since| since_base >= since)
            && self.until.is_none_or(|until| since_base <= until)
            && self
                .lcores
                .as_ref()
                .is_none_or(|lcores| lcores.contains(&record.lcore.0))
    }

    /// Returns a reason for which no record passed, if known: fields that no record had. For the
    /// end of a message.
    pub fn empty_reason(&self) -> String {
        let missing = self
            .conditions
            .iter()
            .filter(|condition| condition.is_asked && !condition.is_there);
        let missing: Vec<_> = missing.map(|condition| condition.name.as_str()).collect();
        if missing.is_empty() {
            String::new()
        } else {
            format!(" (no record has {})", missing.join(" or "))
        }
    }
}

impl OwnerFilter {
    /// Creates a filter for the owners that the pattern matches.
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            known: HashMap::new(),
        }
    }

    fn wants(&mut self, record: &Record<'_>, context: &Context<'_>) -> bool {
        let Some(description) = record.owner else {
            return Field::Poller
                .value(record, context)
                .is_some_and(|poller| self.pattern.matches(&poller));
        };
        let by_description = if let Some(&known) = self.known.get(description) {
            known
        } else {
            let matches = self.pattern.matches(description);
            self.known.insert(description.to_owned(), matches);
            matches
        };
        by_description
            || Field::Poller
                .value(record, context)
                .is_some_and(|poller| self.pattern.matches(&poller))
    }
}

/// Objects by name and by id.
#[derive(Default)]
pub struct Objects {
    /// Names, such as `r10`.
    pub names: HashSet<ObjectName>,
    /// Ids (addresses).
    pub ids: HashSet<u64>,
}

impl Objects {
    /// Returns whether the record is about one of these, or points to one.
    fn concern(&self, record: &Record<'_>) -> bool {
        let related = record.related.map(|related| related.name);
        let points = |value: ArgValue<'_>| match value {
            ArgValue::Int(id) | ArgValue::Pointer(id) => self.ids.contains(&id),
            ArgValue::Str(_) => false,
        };
        record
            .object
            .name()
            .into_iter()
            .chain(related)
            .any(|name| self.names.contains(&name))
            || !self.ids.is_empty()
                && (record.object.id().is_some_and(|id| self.ids.contains(&id))
                    || record.args.iter().any(|(_, value)| points(value)))
    }
}

impl Condition {
    /// Creates a test of a field; `name` is the field's name as typed.
    pub fn new(field: Field, name: &str, test: Test) -> Self {
        Self {
            field,
            name: name.to_owned(),
            test,
            is_asked: false,
            is_there: false,
        }
    }

    /// Returns whether the condition holds. A record without the field passes only `!=`.
    fn holds<'a>(&mut self, record: &Record<'a>, context: &Context<'a>) -> bool {
        let value = || self.field.value(record, context);
        let (is_there, holds) = match &self.test {
            Test::Matches(pattern) => {
                value().map_or((false, false), |v| (true, pattern.matches(&v)))
            }
            Test::MatchesNot(pattern) => {
                value().map_or((false, true), |v| (true, !pattern.matches(&v)))
            }
            Test::Number(compare, to) => self
                .field
                .number(record, context)
                .map_or((false, false), |n| (true, compare(&n, to))),
        };
        self.is_asked = true;
        self.is_there |= is_there;
        holds
    }
}
