//! The built-in object specs find the same objects in the memory of real targets as the targets'
//! RPCs returned (`data/README.md`).

use std::collections::BTreeMap;

use live_memory::{Image, Memory as _, define_types};
use live_objects::alive::{Addresses, Program, Value, agree, compile, roots};
use objects::layouts::{layout_text, versions};
use typeinfo::{Arch, TypeStore};

const V22_09: &str = include_str!("data/spdk-v22.09.image");
const V24_09: &str = include_str!("data/spdk-v24.09.image");
const V26_09: &str = include_str!("data/spdk-v26.09.image");

/// Objects by kind, each with its values in the order of the spec.
struct Found(BTreeMap<String, Vec<BTreeMap<String, String>>>);

impl Found {
    /// Reads an image with the layouts of a version.
    fn read(image: &str, version: &str) -> Self {
        let (memory, roots) = load(image);
        let mut types = TypeStore::new(Arch::X86_64);
        define_types(&mut types, &layout_text(version.parse().unwrap())).unwrap();
        let globals = Addresses(|name: &str| roots.get(name).copied());
        let program = Program::new(types, &globals);
        let mut found = Self(BTreeMap::new());
        for spec in objects::built_in()
            .unwrap()
            .into_iter()
            .filter(|spec| !spec.alive.is_empty())
        {
            // Versions that lack a struct have no such objects.
            let Ok(compiled) = compile(&spec, &program) else {
                continue;
            };
            let reading = compiled.read(&memory);
            let objects = agree(&reading, reading.clone()).objects;
            let shown = |(at, value): (usize, &Value)| match value {
                Value::Int(number) => compiled.enumerator(at, *number).map(str::to_owned),
                Value::Text(_) => None,
            };
            let row = |values: &[Value]| {
                let texts = values.iter().enumerate();
                let texts = texts
                    .map(|(at, value)| shown((at, value)).unwrap_or_else(|| value.to_string()));
                compiled.names().iter().cloned().zip(texts).collect()
            };
            found
                .0
                .entry(spec.name)
                .or_default()
                .extend(objects.iter().map(|object| row(&object.values)));
        }
        found
    }

    /// Returns these values of all objects of a kind, sorted.
    fn values(&self, kind: &str, names: &[&str]) -> Vec<String> {
        let objects = self.0.get(kind).map(Vec::as_slice).unwrap_or_default();
        let text = |object: &BTreeMap<String, String>| {
            let values: Vec<_> = names
                .iter()
                .map(|name| object.get(*name).map_or("-", String::as_str))
                .collect();
            values.join(" ").trim_end().to_owned()
        };
        let mut rows: Vec<_> = objects.iter().map(text).collect();
        rows.sort_unstable();
        rows
    }
}

/// Loads the memory of an image, and the addresses of its globals.
fn load(image: &str) -> (Image, BTreeMap<&str, u64>) {
    let (mut memory, mut roots) = (Image::new(), BTreeMap::new());
    for line in image.lines().skip(1) {
        if let Some((name, address)) = line
            .strip_prefix("# ")
            .and_then(|root| root.split_once("=0x"))
        {
            roots.insert(name, u64::from_str_radix(address, 16).unwrap());
            continue;
        }
        let (address, hex) = line.split_once(' ').unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        memory.write(u64::from_str_radix(address, 16).unwrap(), &bytes);
    }
    (memory, roots)
}

const QPAIR: [&str; 7] = [
    "subnqn",
    "cntlid",
    "qid",
    "transport",
    "thread",
    "state",
    "hostnqn",
];

/// Connections of `spdk_nvme_perf` in every version: one host with two I/O queues, one with one.
const HOSTS: [&str; 5] = [
    "nqn.2016-06.io.spdk:cnode1 1 0 TCP 2",
    "nqn.2016-06.io.spdk:cnode1 1 1 TCP 2",
    "nqn.2016-06.io.spdk:cnode1 1 2 TCP 2",
    "nqn.2016-06.io.spdk:cnode2 1 0 TCP 2",
    "nqn.2016-06.io.spdk:cnode2 1 1 TCP 2",
];

/// State of a connection in use: up to v24.01, and from v24.05 on.
const ACTIVE: &str = "SPDK_NVMF_QPAIR_ACTIVE";
const ENABLED: &str = "SPDK_NVMF_QPAIR_ENABLED";

#[test]
fn connections_are_those_of_the_rpc() {
    for (image, version, state, itself) in [
        (V22_09, "v22.09", ACTIVE, None),
        (
            V24_09,
            "v24.09",
            ENABLED,
            Some("nqn.2014-08.org.nvmexpress:uuid:bd20ff22-6459-4e37-95e1-663ea9127be5"),
        ),
        (
            V26_09,
            "v26.09",
            ENABLED,
            Some("nqn.2014-08.org.nvmexpress:uuid:c5cc9ae9-eff1-4277-a14f-9bf17988eeaf"),
        ),
    ] {
        let found = Found::read(image, version);
        let itself =
            itself.map(|host| format!("nqn.2016-06.io.spdk:cnode2 2 0 TCP 2 {state} {host}"));
        let expected: Vec<_> = HOSTS
            .iter()
            .map(|host| format!("{host} {state}"))
            .chain(itself)
            .collect();
        assert_eq!(found.values("qpair", &QPAIR), expected, "{version}");
    }
}

/// Checks the subsystems with their namespaces and block devices, which all targets have.
fn check_storage(found: &Found, version: &str) {
    let subsystems = [
        "nqn.2014-08.org.nvmexpress.discovery",
        "nqn.2016-06.io.spdk:cnode1",
        "nqn.2016-06.io.spdk:cnode2",
    ];
    assert_eq!(
        found.values("subsystem", &["subnqn"]),
        subsystems,
        "{version}"
    );
    assert_eq!(
        found.values("bdev", &["name"]),
        ["Malloc0", "Malloc1"],
        "{version}"
    );
    let namespaces = [
        "nqn.2016-06.io.spdk:cnode1 1 Malloc0",
        "nqn.2016-06.io.spdk:cnode2 1 Malloc1",
    ];
    assert_eq!(
        found.values("namespace", &["subnqn", "nsid", "bdev"]),
        namespaces,
        "{version}"
    );
}

#[test]
fn all_else_is_there_too() {
    for (image, version, group, itself) in [
        (V22_09, "v22.09", "0", false),
        (V24_09, "v24.09", "000", true),
        (V26_09, "v26.09", "000", true),
    ] {
        let found = Found::read(image, version);
        check_storage(&found, version);
        let threads = [
            "1 app_thread".to_owned(),
            format!("2 nvmf_tgt_poll_group_{group}"),
        ];
        assert_eq!(
            found.values("thread", &["thread", "name"]),
            threads,
            "{version}"
        );
        assert_eq!(
            found.values("ctrlr", &["cntlid"]).len(),
            if itself { 3 } else { 2 },
            "{version}"
        );
        assert_eq!(
            (
                found.values("reactor", &["lcore"]).len(),
                found.values("poll_group", &[]).len()
            ),
            (1, 1),
            "{version}"
        );
        assert_eq!(found.values("poller", &["name"]).len(), 3, "{version}");
        let timed = found.values("timed_poller", &["name"]);
        assert_eq!(timed.len(), if itself { 7 } else { 4 }, "{version}");
        assert!(timed.contains(&"nvmf_tcp_accept".to_owned()), "{timed:?}");
        let initiators = if itself {
            vec!["Nvme0 127.0.0.1 nqn.2016-06.io.spdk:cnode2"]
        } else {
            vec![]
        };
        assert_eq!(
            found.values("nvme_ctrlr", &["name", "traddr", "subnqn"]),
            initiators,
            "{version}"
        );
    }
}

#[test]
fn with_the_layouts_of_another_version_there_is_no_wrong_name() {
    for (image, version) in [(V22_09, "v22.09"), (V24_09, "v24.09"), (V26_09, "v26.09")] {
        let real = Found::read(image, version).values("qpair", &QPAIR);
        let mut equal = Vec::new();
        for other in versions() {
            let rows = Found::read(image, &other.to_string()).values("qpair", &QPAIR);
            assert!(
                rows.is_empty() || rows == real,
                "{version} as {other}: {rows:?}"
            );
            equal.extend((!rows.is_empty()).then(|| other.to_string()));
        }
        // Neighbours may be equal in all that matters here.
        assert!(
            equal.contains(&version.to_owned()) && equal.len() <= 4,
            "{version} as {equal:?}"
        );
    }
}

/// A connection with an address in a trace leads to the globals of a program without symbols.
#[test]
fn connections_lead_to_globals() {
    for (image, version) in [(V22_09, "v22.09"), (V24_09, "v24.09"), (V26_09, "v26.09")] {
        let pointers = Found::read(image, version).values("qpair", &["qpair"]);
        let pointers: Vec<u64> = pointers
            .iter()
            .map(|pointer| pointer.parse().unwrap())
            .collect();
        let (mut memory, globals) = load(image);
        // The walk that made the image did not read the lists' ends.
        let end = 0x1000;
        memory.write(end, &[0; 8]);
        for name in ["g_nvmf_tgts", "g_threads"] {
            assert!(memory.read(globals[name] + 8, &mut [0]).is_err());
            memory.write(globals[name] + 8, &u64::to_le_bytes(end));
        }
        let mut types = TypeStore::new(Arch::X86_64);
        define_types(&mut types, &layout_text(version.parse().unwrap())).unwrap();
        let specs = objects::built_in().unwrap();
        let qpair = specs.iter().find(|spec| spec.name == "qpair").unwrap();
        let nothing = Addresses(|_: &str| None);
        let program = Program::new(types, &nothing);
        let found = roots(qpair, &program, &pointers, &memory);
        let expected = ["g_nvmf_tgts", "g_threads"].map(|name| (name.to_owned(), globals[name]));
        assert_eq!(found, BTreeMap::from(expected), "{version}");
        assert!(roots(qpair, &program, &[end, 0, globals["g_threads"]], &memory).is_empty());
    }
}
