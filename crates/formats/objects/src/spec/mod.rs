//! Object specs: a kind of object is defined in a file that anyone can write (`objects/*.toml`,
//! `--objects FILE`), not in code.

use serde::Deserialize;

use crate::alive_spec::{AliveSpec, RecordPair};

/// First argument of every probe of a spec: the time stamp counter.
pub const TSC: &str = "tsc";

/// Name that no property may have.
const RESERVED: &str = "object";

/// The specs of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    object: Vec<ObjectSpec>,
}

/// A type of object: the probes that report its life, and the tracepoint arguments that contain its
/// pointer.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ObjectSpec {
    /// Name used in annotations, filters and groups.
    pub name: String,
    /// Provider of its probes.
    #[serde(default = "spdk")]
    pub provider: String,
    /// Probe argument that identifies an object.
    pub key: String,
    /// Names of tracepoint arguments that hold the key.
    #[serde(default)]
    pub tracepoint_args: Vec<String>,
    /// Properties that identify it as the owner of records without a key, as far as the owner's
    /// description has them. The first one is required.
    #[serde(default)]
    pub owner: Vec<String>,
    /// Value of an object found alive that is the id of the owner of its records.
    #[serde(default)]
    pub owner_id: Option<String>,
    /// Values of an object found alive that change during its life: a different value does not make
    /// it another object.
    #[serde(default)]
    pub changing: Vec<String>,
    /// Probes that report its life.
    #[serde(rename = "probe", default)]
    pub probes: Vec<ProbeSpec>,
    /// Rules for finding live objects.
    #[serde(default)]
    pub alive: Vec<AliveSpec>,
    /// Records of traces that report its life.
    #[serde(rename = "record", default)]
    pub records: Vec<RecordPair>,
    /// Properties, in the order in which they are shown.
    #[serde(rename = "property", default)]
    pub properties: Vec<PropertySpec>,
}

/// A probe that reports an event in an object's life.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Name of the probe.
    pub name: String,
    /// Meaning of the probe for the object.
    pub role: Role,
    /// Arguments in order; the probe may have more after these.
    pub args: Vec<ProbeArg>,
    /// True if its first argument is the ticks in every version. SPDK's probes that are not of the
    /// `_TICKS` kind have 0 there from v23.05 on (`include/spdk_internal/usdt.h`): a recorder has
    /// to fill in the time by its own clock.
    #[serde(default = "has_ticks")]
    pub ticks: bool,
}

/// Meaning of a probe for an object.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The object begins.
    Begin,
    /// The object gets more properties.
    Update,
    /// The object begins if it was unknown, and is updated otherwise. For objects whose beginning
    /// no probe reports.
    Seen,
    /// The object ends.
    End,
}

/// An argument of a probe: `name`, or `name: string`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct ProbeArg {
    /// Name in recordings.
    pub name: String,
    /// True if it points to a string; otherwise it is a number.
    pub string: bool,
}

/// A property of an object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PropertySpec {
    /// Name of the property.
    pub name: String,
    /// Probe argument with the value, if its name differs.
    from: Option<String>,
    /// Format of a number.
    #[serde(default)]
    pub show: Show,
}

/// Format of a number.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    /// Unsigned decimal.
    #[default]
    Decimal,
    /// Hexadecimal, with 0x.
    Hex,
}

/// Reason for which a file is not a valid file of specs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The file is not TOML, or not of the specs' shape.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A spec contradicts itself.
    #[error("object {object:?}: {what}")]
    Contradiction {
        /// Name of the spec.
        object: String,
        /// Description of the contradiction.
        what: String,
    },
}

fn spdk() -> String {
    "spdk".to_owned()
}

fn has_ticks() -> bool {
    true
}

impl TryFrom<String> for ProbeArg {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, kind) = text.split_once(':').unwrap_or((&text, "int"));
        let string = match kind.trim() {
            "int" => false,
            "string" => true,
            other => {
                return Err(format!(
                    "argument {text:?}: {other:?} is neither \"int\" nor \"string\""
                ));
            }
        };
        let name = name.trim().to_owned();
        if !is_name(&name) {
            return Err(format!(
                "argument {text:?}: a name is letters, digits and underscores"
            ));
        }
        Ok(Self { name, string })
    }
}

/// Returns whether the text can stand unescaped in a recording and in a tracing script.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl Role {
    /// Returns whether an object can begin with it.
    pub fn begins(self) -> bool {
        matches!(self, Self::Begin | Self::Seen)
    }
}

impl PropertySpec {
    /// Returns the probe argument with the value.
    pub fn from(&self) -> &str {
        self.from.as_deref().unwrap_or(&self.name)
    }
}

impl ObjectSpec {
    /// Returns whether a property's value is a string.
    pub fn is_text(&self, property: &PropertySpec) -> bool {
        self.args()
            .any(|arg| arg.name == property.from() && arg.string)
    }

    /// Iterates over all possible arguments of these objects: those of probes, and the values of
    /// objects found alive.
    fn args(&self) -> impl Iterator<Item = &ProbeArg> {
        let values = self
            .alive
            .iter()
            .flat_map(|alive| &alive.values)
            .map(|value| &value.arg);
        self.probes
            .iter()
            .flat_map(|probe| &probe.args)
            .chain(values)
    }
}

/// Parses a file of specs.
pub fn parse_specs(text: &str) -> Result<Vec<ObjectSpec>, SpecError> {
    let mut file: File = toml::from_str(text)?;
    file.object
        .iter_mut()
        .flat_map(|spec| &mut spec.alive)
        .for_each(|alive| alive.locate(text));
    file.object.iter().try_for_each(check)?;
    Ok(file.object)
}

/// Specs that come with dptrace, by file name. A file is named after its object.
pub const BUILT_IN: [(&str, &str); 13] = [
    (
        "qpair.toml",
        include_str!("../../../../../objects/qpair.toml"),
    ),
    (
        "ctrlr.toml",
        include_str!("../../../../../objects/ctrlr.toml"),
    ),
    (
        "subsystem.toml",
        include_str!("../../../../../objects/subsystem.toml"),
    ),
    (
        "poll_group.toml",
        include_str!("../../../../../objects/poll_group.toml"),
    ),
    (
        "bdev_nvme_ctrlr.toml",
        include_str!("../../../../../objects/bdev_nvme_ctrlr.toml"),
    ),
    (
        "thread.toml",
        include_str!("../../../../../objects/thread.toml"),
    ),
    (
        "target.toml",
        include_str!("../../../../../objects/target.toml"),
    ),
    (
        "namespace.toml",
        include_str!("../../../../../objects/namespace.toml"),
    ),
    (
        "bdev.toml",
        include_str!("../../../../../objects/bdev.toml"),
    ),
    (
        "poller.toml",
        include_str!("../../../../../objects/poller.toml"),
    ),
    (
        "timed_poller.toml",
        include_str!("../../../../../objects/timed_poller.toml"),
    ),
    (
        "reactor.toml",
        include_str!("../../../../../objects/reactor.toml"),
    ),
    (
        "nvme_ctrlr.toml",
        include_str!("../../../../../objects/nvme_ctrlr.toml"),
    ),
];

/// Returns the specs that come with dptrace.
pub fn built_in() -> Result<Vec<ObjectSpec>, SpecError> {
    let mut specs = Vec::new();
    for (_, text) in BUILT_IN {
        specs.extend(parse_specs(text)?);
    }
    Ok(specs)
}

/// Checks beyond serde that the parts of a spec fit together.
fn check(spec: &ObjectSpec) -> Result<(), SpecError> {
    let wrong = |what: String| {
        Err(SpecError::Contradiction {
            object: spec.name.clone(),
            what,
        })
    };
    if !spec.probes.iter().any(|p| p.role.begins())
        && (spec.alive.is_empty() || !spec.probes.is_empty())
    {
        return wrong("no probe has the role \"begin\" or \"seen\"".to_owned());
    }
    check_alive(spec).or_else(wrong)?;
    for name in spec.probes.iter().map(|p| &p.name).chain([&spec.provider]) {
        if !is_name(name) {
            return wrong(format!(
                "{name:?}: the name of a probe or provider is letters, digits and underscores"
            ));
        }
    }
    for (at, probe) in spec.probes.iter().enumerate() {
        if spec.probes[..at].iter().any(|p| p.name == probe.name) {
            return wrong(format!("probe {:?} occurs twice", probe.name));
        }
        for (at, arg) in probe.args.iter().enumerate() {
            if probe.args[..at].iter().any(|a| a.name == arg.name) {
                return wrong(format!(
                    "probe {:?} has two arguments {:?}",
                    probe.name, arg.name
                ));
            }
        }
        for needed in [TSC, &spec.key] {
            if !probe.args.iter().any(|a| a.name == needed) {
                return wrong(format!("probe {:?} has no argument {needed:?}", probe.name));
            }
        }
    }
    for property in &spec.properties {
        if property.name == RESERVED {
            return wrong(format!(
                "a property cannot be called {RESERVED:?}: in JSON that is the name of the object's type"
            ));
        }
        if !spec.args().any(|arg| arg.name == property.from()) {
            return wrong(format!(
                "property {:?}: no probe has an argument {:?}",
                property.name,
                property.from()
            ));
        }
    }
    Ok(())
}

/// Checks that the parts for objects found alive fit the rest.
fn check_alive(spec: &ObjectSpec) -> Result<(), String> {
    spec.alive
        .iter()
        .try_for_each(|alive| alive.check(&spec.key))?;
    if let Some(owner) = &spec.owner_id
        && !spec
            .alive
            .iter()
            .flat_map(|alive| &alive.values)
            .any(|value| value.arg.name == *owner)
    {
        return Err(format!("owner-id: no alive part has a value {owner:?}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
