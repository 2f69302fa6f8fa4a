//! Fields of a record for filters and groups: its own fields, its arguments, and the properties of
//! its objects.

use std::borrow::Cow;

use objects::{Annotator, ObjectSpec, OwnerProperties};
use spdk_trace::{ArgValue, Object, Poller, Record, TickRate};
use text::printable;

use crate::annotation::ReadBack;
use crate::identity::Identity;

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The lcore that wrote the record.
    Lcore,
    /// Name of the tracepoint.
    Tpoint,
    /// Description of the owner; in traces without owners the poller.
    Owner,
    /// The poller: prefix and number.
    Poller,
    /// Size, in bytes of data.
    Size,
    /// Name of the object.
    Object,
    /// Name of the object that this one belongs to.
    Related,
    /// Age of the object, in microseconds.
    Time,
    /// Time of the record, in ticks.
    Tsc,
    /// `arg.NAME`.
    Arg(String),
    /// `owner.PROPERTY`.
    OwnerProperty(String),
    /// `SPEC.PROPERTY`.
    ObjectProperty(Property),
    /// `SPEC`: the object itself.
    Identity(Identity),
}

/// A property of the objects of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Name of the spec.
    pub spec: String,
    /// Name of the property.
    pub name: String,
    /// True if the descriptions of owners that are such objects have the property, too.
    pub is_of_owner: bool,
}

/// Aliases of fields, also before a dot: `connection.qid`.
const ALIASES: [(&str, &str); 9] = [
    ("connection", "qpair"),
    ("conn", "qpair"),
    ("queue", "qpair"),
    ("core", "lcore"),
    ("cpu", "lcore"),
    ("tracepoint", "tpoint"),
    ("qid", "qpair.qid"),
    ("subnqn", "qpair.subnqn"),
    ("hostnqn", "qpair.hostnqn"),
];

/// Fields without a dot, with their descriptions.
const PLAIN: [(&str, Field, &str); 9] = [
    ("lcore", Field::Lcore, "the lcore that wrote the record"),
    ("tpoint", Field::Tpoint, "the tracepoint"),
    ("owner", Field::Owner, "the owner's whole description"),
    (
        "poller",
        Field::Poller,
        "the poller, in traces without owners",
    ),
    ("size", Field::Size, "the record's size, in bytes of data"),
    ("object", Field::Object, "the object: r10"),
    (
        "related",
        Field::Related,
        "the object that this one belongs to",
    ),
    ("time", Field::Time, "the object's age, in microseconds"),
    ("tsc", Field::Tsc, "the record's time, in ticks"),
];

/// Returns the names and descriptions of all fields except the arguments, which differ in each
/// trace.
pub fn known(specs: &[ObjectSpec]) -> Vec<(String, String)> {
    let mut known: Vec<_> = PLAIN
        .iter()
        .map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned()))
        .collect();
    known.extend(
        specs
            .iter()
            .map(|spec| (spec.name.clone(), format!("the {} itself", spec.name))),
    );
    known.extend(OwnerProperties::NAMES.iter().map(|it| {
        (
            format!("owner.{it}"),
            "part of the owner's description".into(),
        )
    }));
    let properties = |spec: &ObjectSpec| {
        let name = spec.name.clone();
        spec.properties
            .iter()
            .map(|it| {
                (
                    format!("{name}.{}", it.name),
                    format!("property of the {name}"),
                )
            })
            .collect::<Vec<_>>()
    };
    known.extend(specs.iter().flat_map(properties));
    known
}

/// Returns the names of all fields; `arg.NAME` stands for the arguments.
pub fn names(specs: &[ObjectSpec]) -> Vec<String> {
    let mut names: Vec<String> = PLAIN
        .iter()
        .map(|(plain, ..)| (*plain).to_owned())
        .collect();
    names.extend(
        specs
            .iter()
            .map(|spec| spec.name.clone())
            .filter(|name| !PLAIN.iter().any(|(it, ..)| it == name)),
    );
    names.push("arg.NAME".to_owned());
    names.extend(OwnerProperties::NAMES.iter().map(|p| format!("owner.{p}")));
    names.extend(specs.iter().flat_map(|s| {
        s.properties
            .iter()
            .map(|p| format!("{}.{}", s.name, p.name))
    }));
    names
}

/// Returns the aliases of fields.
pub fn aliases<'a>() -> impl Iterator<Item = &'a str> {
    ALIASES.iter().map(|(alias, _)| *alias)
}

impl Field {
    /// Looks up a field by its name or alias; `specs` are the known objects. `None` if there is no
    /// such field.
    pub fn named(name: &str, specs: &[ObjectSpec]) -> Option<Self> {
        let renamed = || {
            let (first, rest) = name.find('.').map_or((name, ""), |dot| name.split_at(dot));
            ALIASES
                .iter()
                .find(|(alias, _)| *alias == first)
                .map(|(_, field)| format!("{field}{rest}"))
        };
        Self::find(name, specs).or_else(|| Self::find(&renamed()?, specs))
    }

    fn find(name: &str, specs: &[ObjectSpec]) -> Option<Self> {
        if let Some((_, field, _)) = PLAIN.iter().find(|(plain, ..)| *plain == name) {
            return Some(field.clone());
        }
        if let Some(spec) = specs.iter().find(|spec| spec.name == name) {
            return Some(Self::Identity(Identity::for_spec(spec)));
        }
        match name.split_once('.')? {
            ("arg", arg) if !arg.is_empty() => Some(Self::Arg(arg.to_owned())),
            ("owner", property) if OwnerProperties::NAMES.contains(&property) => {
                Some(Self::OwnerProperty(property.to_owned()))
            }
            (object, property) => {
                let spec = specs.iter().find(|spec| spec.name == object)?;
                spec.properties
                    .iter()
                    .find(|known| known.name == property)?;
                let is_of_owner = spec.owner.iter().any(|name| name == property);
                Some(Self::ObjectProperty(Property {
                    spec: object.to_owned(),
                    name: property.to_owned(),
                    is_of_owner,
                }))
            }
        }
    }

    /// Returns the record's value, if it has one.
    pub fn value<'a>(&self, record: &Record<'a>, context: &Context<'a>) -> Option<Cow<'a, str>> {
        match self {
            Self::Lcore => Some(record.lcore.to_string().into()),
            Self::Tpoint => Some(record.tpoint.name.as_str().into()),
            Self::Owner => record.owner.map(text).or_else(|| record.poller.map(poller)),
            Self::Poller => record.poller.map(poller),
            Self::Size => Some(record.size.to_string().into()),
            Self::Object => record.object.name().map(|name| name.to_string().into()),
            Self::Related => record
                .related
                .map(|related| related.name.to_string().into()),
            Self::Time => self
                .number(record, context)
                .map(|micros| micros.to_string().into()),
            Self::Tsc => Some(record.tsc.0.to_string().into()),
            Self::Arg(name) => record.args.by_name(name).map(arg),
            Self::OwnerProperty(name) => OwnerProperties::parse(record.owner?).get(name).map(text),
            Self::ObjectProperty(property) => property.value(record, context),
            Self::Identity(identity) => identity.value(record, context),
        }
    }

    /// Returns the value as a number.
    pub fn number<'a>(&self, record: &Record<'a>, context: &Context<'a>) -> Option<f64> {
        match self {
            Self::Time => match record.object {
                Object::Known { age: Some(age), .. } => {
                    Some(context.rate.nanos(age).0 as f64 / 1000.0)
                }
                _ => None,
            },
            Self::Size => Some(f64::from(record.size)),
            Self::Tsc => Some(record.tsc.0 as f64),
            Self::Arg(name) => match record.args.by_name(name)? {
                ArgValue::Int(n) | ArgValue::Pointer(n) => Some(n as f64),
                ArgValue::Str(_) => None,
            },
            other => parse_number(&other.value(record, context)?),
        }
    }
}

impl Property {
    /// Returns the property of the first such object that the record points to, or else of its
    /// owner.
    fn value<'a>(&self, record: &Record<'a>, context: &Context<'a>) -> Option<Cow<'a, str>> {
        let of_owner = || {
            OwnerProperties::parse(record.owner?)
                .get(&self.name)
                .map(text)
        };
        let found = object_property(record, context, &self.spec, &self.name);
        found.or_else(|| if self.is_of_owner { of_owner() } else { None })
    }
}

/// Context of a field's value besides the record.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Ticks of the trace per second.
    pub rate: TickRate,
    /// Annotator for objects, if there is a recording.
    pub annotator: Option<&'a Annotator>,
}

/// Parses a number as a user types it: decimal, or hexadecimal with 0x.
pub fn parse_number(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as f64),
        None => text.parse().ok(),
    }
}

/// Formats text from a document as in a listing.
fn text(text: &str) -> Cow<'_, str> {
    printable::text(text.as_bytes())
}

fn poller(poller: Poller<'_>) -> Cow<'_, str> {
    match poller {
        Poller::Id(prefix, id) => format!("{prefix}{id:02}").into(),
        Poller::Text(label) => text(label),
    }
}

fn arg(value: ArgValue<'_>) -> Cow<'_, str> {
    match value {
        ArgValue::Int(n) => n.to_string().into(),
        ArgValue::Pointer(p) => format!("{p:#x}").into(),
        ArgValue::Str(bytes) => printable::text(bytes),
    }
}

/// Returns a property of the first object of this type that the record points to.
pub(crate) fn object_property<'a>(
    record: &Record<'a>,
    context: &Context<'a>,
    spec: &str,
    property: &str,
) -> Option<Cow<'a, str>> {
    let found = context
        .annotator
        .and_then(|a| a.property(a.find(record, spec)?, property));
    match (found, record.annotations) {
        (Some(value), _) => Some(value.into()),
        (None, Some(json)) => ReadBack::parse(json)
            .property(spec, property)
            .map(Cow::from),
        (None, None) => None,
    }
}
