//! What an application's RPC says of its objects beside what its memory shows. It is asked only if the user names its socket:
//! to list connections, SPDK pauses the admin queues of a subsystem.

mod client;
mod trimmed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use observer::Observer;
use serde_json::{Value, json};

use super::finder::Kind;
use crate::alive::AliveObject;
use client::{Client, Refused};

/// What is asked about the objects of a spec.
struct Question {
    spec: &'static str,
    method: &'static str,
    /// Where the objects are in the result.
    list: &'static str,
    /// Values by which an object is recognized, and where they are in the answer.
    identity: &'static [(&'static str, &'static str)],
    /// What is added, and where that is.
    values: &'static [(&'static str, &'static str)],
}

/// Methods and members as SPDK v21.07 and later have them (doc/jsonrpc.md; `lib/nvmf/nvmf_rpc.c`, `lib/bdev/bdev_rpc.c`,
/// `lib/event/app_rpc.c`). None of these pauses anything.
const QUESTIONS: [Question; 3] = [
    Question {
        spec: "thread",
        method: "thread_get_stats",
        list: "/threads",
        identity: &[("thread", "/id")],
        values: &[("busy", "/busy"), ("idle", "/idle"), ("cpumask", "/cpumask")],
    },
    Question {
        spec: "bdev",
        method: "bdev_get_bdevs",
        list: "",
        identity: &[("name", "/name")],
        values: &[("uuid", "/uuid"), ("claimed", "/claimed")],
    },
    Question {
        spec: "subsystem",
        method: "nvmf_get_subsystems",
        list: "",
        identity: &[("subnqn", "/nqn")],
        values: &[("serial", "/serial_number"), ("any_host", "/allow_any_host"), ("listener", "/listen_addresses/0")],
    },
];

/// This one pauses the subsystem's admin queues for a moment; its answers lack the subsystem, which is in the question.
const CONNECTIONS: Question = Question {
    spec: "qpair",
    method: "nvmf_subsystem_get_qpairs",
    list: "",
    identity: &[("subnqn", "/subnqn"), ("cntlid", "/cntlid"), ("qid", "/qid")],
    values: &[("state", "/state"), ("thread", "/thread"), ("peer", "/peer_address"), ("listener", "/listen_address")],
};

/// Members of an address, and the kind of a subsystem.
const OF_ALL: [&str; 4] = ["trtype", "traddr", "trsvcid", "subtype"];

impl Question {
    /// Returns the names of all members that are of interest in an answer.
    fn names(&self) -> Vec<&'static str> {
        let places = self.identity.iter().chain(self.values).map(|(_, place)| *place).chain([self.list]);
        places.flat_map(|place| place.split('/')).filter(|name| !name.is_empty()).chain(OF_ALL).collect()
    }
}

/// The most subsystems that are asked for their connections.
const MOST_SUBSYSTEMS: usize = 1024;

/// What the RPC says, by spec.
#[derive(Default)]
pub struct Answers(BTreeMap<&'static str, Rows>);

/// What it says of the objects of a spec.
pub struct Rows {
    question: &'static Question,
    by_identity: BTreeMap<Vec<String>, Vec<Value>>,
}

/// An object that only the RPC knows.
pub struct Other<'r> {
    /// By what it is recognized, with the names of these values.
    pub identity: Vec<(&'static str, &'r str)>,
    /// What is said of it.
    pub values: &'r [Value],
}

impl Answers {
    /// Asks about the objects of these kinds. What is not answered is reported and left out.
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
            let Some(result) = answered(client.call(question.method, None, &question.names()), observer)? else {
                continue;
            };
            if leads {
                this.ask_connections(&mut client, &result, observer)?;
            }
            this.take(question, listed(&result, question.list));
        }
        Ok(this)
    }

    /// The connections of each subsystem that can have some.
    fn ask_connections(&mut self, client: &mut Client, subsystems: &Value, observer: &Observer) -> anyhow::Result<()> {
        let nqns = listed(subsystems, "").iter().filter(|subsystem| subsystem["subtype"] != "Discovery");
        for nqn in nqns.filter_map(|subsystem| subsystem["nqn"].as_str()).take(MOST_SUBSYSTEMS) {
            let asked = client.call(CONNECTIONS.method, Some(json!({ "nqn": nqn })), &CONNECTIONS.names());
            let Some(mut result) = answered(asked, observer)? else { return Ok(()) };
            for connection in result.as_array_mut().into_iter().flatten().filter(|each| each.is_object()) {
                connection["subnqn"] = nqn.into();
            }
            self.take(&CONNECTIONS, listed(&result, CONNECTIONS.list));
        }
        Ok(())
    }

    fn take(&mut self, question: &'static Question, objects: &[Value]) {
        let rows = self.0.entry(question.spec).or_insert_with(|| Rows { question, by_identity: BTreeMap::new() });
        for object in objects {
            let identity = question.identity.iter().map(|(_, at)| object.pointer(at).map(shown));
            if let Some(identity) = identity.collect::<Option<Vec<_>>>() {
                let values = question.values.iter().map(|(_, at)| object.pointer(at).map_or(Value::Null, simple));
                rows.by_identity.insert(identity, values.collect());
            }
        }
    }

    /// What it says of the objects of that spec.
    pub fn of(&self, spec: &str) -> Option<&Rows> {
        self.0.get(spec)
    }
}

impl Rows {
    /// The names of what is added.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.question.values.iter().map(|(name, _)| *name)
    }

    /// What is said of an object that was found in memory.
    pub fn of(&self, kind: &Kind, object: &AliveObject) -> Option<&[Value]> {
        self.by_identity.get(&self.identity(kind, object)?).map(Vec::as_slice)
    }

    /// Objects that are not among these.
    pub fn others<'r>(&'r self, kind: &Kind, objects: &[AliveObject]) -> Vec<Other<'r>> {
        let known: BTreeSet<_> = objects.iter().filter_map(|object| self.identity(kind, object)).collect();
        let others = self.by_identity.iter().filter(|(identity, _)| !known.contains(*identity));
        let named = |identity: &'r [String]| {
            self.question.identity.iter().zip(identity).map(|((name, _), text)| (*name, text.as_str())).collect()
        };
        others.map(|(identity, values)| Other { identity: named(identity), values }).collect()
    }

    fn identity(&self, kind: &Kind, object: &AliveObject) -> Option<Vec<String>> {
        let value = |(name, _): &(&str, &str)| {
            let at = kind.compiled.names().iter().position(|known| known == name)?;
            object.values.get(at).map(ToString::to_string)
        };
        self.question.identity.iter().map(value).collect()
    }
}

/// The result, if the application gave one; that it did not is reported.
fn answered(result: anyhow::Result<Value>, observer: &Observer) -> anyhow::Result<Option<Value>> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.is::<Refused>() => {
            observer.note(&format!("--rpc: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.context("--rpc")),
    }
}

fn listed<'v>(result: &'v Value, list: &str) -> &'v [Value] {
    result.pointer(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A value in one cell: an address as `TCP 127.0.0.1:4420`.
fn simple(value: &Value) -> Value {
    let Some(address) = value.as_object() else { return if value.is_array() { Value::Null } else { value.clone() } };
    let member = |name: &str| address.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}:{}", member("trtype"), member("traddr"), member("trsvcid")).into()
}

/// Text as it is, all else as JSON. It is not fit for a terminal yet.
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
    fn what_is_no_answer_leaves_nothing() {
        let mut answers = Answers::default();
        for result in [json!(null), json!([1, "a", [], {}]), json!({ "threads": [{ "id": [] }] })] {
            answers.take(&QUESTIONS[1], listed(&result, ""));
        }
        assert!(answers.of("bdev").is_some_and(|rows| rows.by_identity.is_empty()));
        answers.take(&QUESTIONS[1], &[json!({ "name": "a", "uuid": { "traddr": 5 }, "claimed": [[]] })]);
        let rows = answers.of("bdev").map(|rows| rows.by_identity.clone()).unwrap_or_default();
        assert_eq!(rows, BTreeMap::from([(vec!["a".to_owned()], vec![json!(" :"), Value::Null])]));
    }
}
