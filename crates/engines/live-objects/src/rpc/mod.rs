//! Facts about objects from an application's RPC, beside those in its memory. It is used only if
//! the user names its socket: to list connections, SPDK pauses the admin queues of a subsystem.

mod client;
mod trimmed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use observer::Observer;
use serde_json::{Value, json};

use super::finder::Kind;
use crate::alive::AliveObject;
use client::{Client, RpcError};

/// Query about the objects of a spec.
struct RpcQuery {
    spec: &'static str,
    method: &'static str,
    /// Path of the objects in the result.
    list: &'static str,
    /// Values that identify an object, with their paths in the answer.
    identity: &'static [(&'static str, &'static str)],
    /// Added values, with their paths in the answer.
    values: &'static [(&'static str, &'static str)],
}

/// Queries, with methods and members as SPDK v21.07 and later have them (doc/jsonrpc.md;
/// `lib/nvmf/nvmf_rpc.c`, `lib/bdev/bdev_rpc.c`, `lib/event/app_rpc.c`). None of these pauses
/// anything.
const QUESTIONS: [RpcQuery; 3] = [
    RpcQuery {
        spec: "thread",
        method: "thread_get_stats",
        list: "/threads",
        identity: &[("thread", "/id")],
        values: &[
            ("busy", "/busy"),
            ("idle", "/idle"),
            ("cpumask", "/cpumask"),
        ],
    },
    RpcQuery {
        spec: "bdev",
        method: "bdev_get_bdevs",
        list: "",
        identity: &[("name", "/name")],
        values: &[("uuid", "/uuid"), ("claimed", "/claimed")],
    },
    RpcQuery {
        spec: "subsystem",
        method: "nvmf_get_subsystems",
        list: "",
        identity: &[("subnqn", "/nqn")],
        values: &[
            ("serial", "/serial_number"),
            ("any_host", "/allow_any_host"),
            ("listener", "/listen_addresses/0"),
        ],
    },
];

/// Query for connections. It pauses the subsystem's admin queues for a moment. Its answers lack the
/// subsystem, which is a parameter.
const CONNECTIONS: RpcQuery = RpcQuery {
    spec: "qpair",
    method: "nvmf_subsystem_get_qpairs",
    list: "",
    identity: &[
        ("subnqn", "/subnqn"),
        ("cntlid", "/cntlid"),
        ("qid", "/qid"),
    ],
    values: &[
        ("state", "/state"),
        ("thread", "/thread"),
        ("peer", "/peer_address"),
        ("listener", "/listen_address"),
    ],
};

/// Members of an address, and the kind of a subsystem.
const OF_ALL: [&str; 4] = ["trtype", "traddr", "trsvcid", "subtype"];

impl RpcQuery {
    /// Returns the names of all members needed from an answer.
    fn names(&self) -> Vec<&'static str> {
        let places = self
            .identity
            .iter()
            .chain(self.values)
            .map(|(_, place)| *place)
            .chain([self.list]);
        places
            .flat_map(|place| place.split('/'))
            .filter(|name| !name.is_empty())
            .chain(OF_ALL)
            .collect()
    }
}

/// Limit on the subsystems queried for their connections.
const MAX_SUBSYSTEMS: usize = 1024;

/// Results of the RPC, by spec.
#[derive(Default)]
pub struct Answers(BTreeMap<&'static str, Rows>);

/// Results for the objects of a spec.
pub struct Rows {
    question: &'static RpcQuery,
    by_identity: BTreeMap<Vec<String>, Vec<Value>>,
}

/// Object known only to the RPC.
pub struct RpcOnlyObject<'r> {
    /// Values that identify it, with their names.
    pub identity: Vec<(&'static str, &'r str)>,
    /// Values from the RPC.
    pub values: &'r [Value],
}

impl Answers {
    /// Queries the objects of these kinds. Methods that fail are reported and left out.
    pub fn ask(path: &Path, kinds: &[Kind], observer: &Observer) -> anyhow::Result<Self> {
        let mut client = Client::connect(path)?;
        let mut this = Self::default();
        let is_wanted = |spec: &str| kinds.iter().any(|kind| kind.spec.name == spec);
        let wants_connections = is_wanted(CONNECTIONS.spec);
        for question in &QUESTIONS {
            let leads = question.spec == "subsystem" && wants_connections;
            if !leads && !is_wanted(question.spec) {
                continue;
            }
            let Some(result) = answered(
                client.call(question.method, None, &question.names()),
                observer,
            )?
            else {
                continue;
            };
            if leads {
                this.ask_connections(&mut client, &result, observer)?;
            }
            this.take(question, listed(&result, question.list));
        }
        Ok(this)
    }

    /// Queries the connections of each subsystem that can have some.
    fn ask_connections(
        &mut self,
        client: &mut Client,
        subsystems: &Value,
        observer: &Observer,
    ) -> anyhow::Result<()> {
        let nqns = listed(subsystems, "")
            .iter()
            .filter(|subsystem| subsystem["subtype"] != "Discovery");
        for nqn in nqns
            .filter_map(|subsystem| subsystem["nqn"].as_str())
            .take(MAX_SUBSYSTEMS)
        {
            let asked = client.call(
                CONNECTIONS.method,
                Some(json!({ "nqn": nqn })),
                &CONNECTIONS.names(),
            );
            let Some(mut result) = answered(asked, observer)? else {
                return Ok(());
            };
            for connection in result
                .as_array_mut()
                .into_iter()
                .flatten()
                .filter(|each| each.is_object())
            {
                connection["subnqn"] = nqn.into();
            }
            self.take(&CONNECTIONS, listed(&result, CONNECTIONS.list));
        }
        Ok(())
    }

    fn take(&mut self, question: &'static RpcQuery, objects: &[Value]) {
        let rows = self.0.entry(question.spec).or_insert_with(|| Rows {
            question,
            by_identity: BTreeMap::new(),
        });
        for object in objects {
            let identity = question
                .identity
                .iter()
                .map(|(_, at)| object.pointer(at).map(shown));
            if let Some(identity) = identity.collect::<Option<Vec<_>>>() {
                let values = question
                    .values
                    .iter()
                    .map(|(_, at)| object.pointer(at).map_or(Value::Null, simple));
                rows.by_identity.insert(identity, values.collect());
            }
        }
    }

    /// Returns the results for the objects of this spec.
    pub fn rows(&self, spec: &str) -> Option<&Rows> {
        self.0.get(spec)
    }
}

impl Rows {
    /// Returns the names of the added values.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.question.values.iter().map(|(name, _)| *name)
    }

    /// Returns the RPC's values for an object found in memory.
    pub fn values(&self, kind: &Kind, object: &AliveObject) -> Option<&[Value]> {
        self.by_identity
            .get(&self.identity(kind, object)?)
            .map(Vec::as_slice)
    }

    /// Returns the RPC's objects that are not among these.
    pub fn others<'r>(&'r self, kind: &Kind, objects: &[AliveObject]) -> Vec<RpcOnlyObject<'r>> {
        let known: BTreeSet<_> = objects
            .iter()
            .filter_map(|object| self.identity(kind, object))
            .collect();
        let others = self
            .by_identity
            .iter()
            .filter(|(identity, _)| !known.contains(*identity));
        let named = |identity: &'r [String]| {
            self.question
                .identity
                .iter()
                .zip(identity)
                .map(|((name, _), text)| (*name, text.as_str()))
                .collect()
        };
        others
            .map(|(identity, values)| RpcOnlyObject {
                identity: named(identity),
                values,
            })
            .collect()
    }

    fn identity(&self, kind: &Kind, object: &AliveObject) -> Option<Vec<String>> {
        let value = |(name, _): &(&str, &str)| {
            let at = kind
                .compiled
                .names()
                .iter()
                .position(|known| known == name)?;
            object.values.get(at).map(ToString::to_string)
        };
        self.question.identity.iter().map(value).collect()
    }
}

/// Returns the result. If the application refused, reports that and returns `None`.
fn answered(result: anyhow::Result<Value>, observer: &Observer) -> anyhow::Result<Option<Value>> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.is::<RpcError>() => {
            observer.note(&format!("--rpc: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.context("--rpc")),
    }
}

fn listed<'v>(result: &'v Value, list: &str) -> &'v [Value] {
    result
        .pointer(list)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Converts a value for one cell: an address becomes `TCP 127.0.0.1:4420`.
fn simple(value: &Value) -> Value {
    let Some(address) = value.as_object() else {
        return if value.is_array() {
            Value::Null
        } else {
            value.clone()
        };
    };
    let member = |name: &str| {
        address
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!(
        "{} {}:{}",
        member("trtype"),
        member("traddr"),
        member("trsvcid")
    )
    .into()
}

/// Formats text as it is, all else as JSON. The result is not yet safe for a terminal.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_answer_leaves_nothing() {
        let mut answers = Answers::default();
        for result in [
            json!(null),
            json!([1, "a", [], {}]),
            json!({ "threads": [{ "id": [] }] }),
        ] {
            answers.take(&QUESTIONS[1], listed(&result, ""));
        }
        assert!(
            answers
                .rows("bdev")
                .is_some_and(|rows| rows.by_identity.is_empty())
        );
        answers.take(
            &QUESTIONS[1],
            &[json!({ "name": "a", "uuid": { "traddr": 5 }, "claimed": [[]] })],
        );
        let rows = answers
            .rows("bdev")
            .map(|rows| rows.by_identity.clone())
            .unwrap_or_default();
        assert_eq!(
            rows,
            BTreeMap::from([(vec!["a".to_owned()], vec![json!(" :"), Value::Null])])
        );
    }
}
