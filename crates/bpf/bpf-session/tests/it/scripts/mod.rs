//! Scripts, compiled and run on this kernel: their output is as the language defines it.
//!
//! Needs root; see [`testkit::kernel`] for its behaviour without.

mod facts;
mod iterators;
mod language;
mod memory;
mod random;
mod truth;
mod waiting;

use bpf_program::event::RING;
use bpf_session::{Features, RingReader, Session, SessionError};
use bt_abi::{Attach, ScriptMap};
use compiler_testkit::{FakeTarget, compile, decode};
use facts::live;

/// Output of a script, and the content of its maps.
pub(crate) struct Outcome {
    pub(crate) events: Vec<String>,
    pub(crate) maps: Vec<(String, Vec<String>)>,
}

/// Returns the turn of a test, if this machine permits it.
pub(crate) fn allowed() -> Option<testkit::kernel::Turn> {
    testkit::kernel::may_run("scripts")
}

/// Loads a script and runs its `begin` and `end` probes. `None` if the kernel is too old for it,
/// which is reported.
pub(crate) fn run_with(source: &str, facts: &FakeTarget) -> Option<Outcome> {
    try_run(source, facts).unwrap_or_else(|error| panic!("{source}\n{error}"))
}

/// Does the same, but returns an error if the kernel refuses the script.
pub(crate) fn try_run(source: &str, facts: &FakeTarget) -> Result<Option<Outcome>, SessionError> {
    let script = compile(source, facts).unwrap_or_else(|wrong| panic!("{source}\n{wrong}"));
    let features = Features::detect().unwrap();
    let session = match Session::load(&script.module, features) {
        Ok(session) => session,
        Err(error @ SessionError::TooOld { .. }) => {
            println!("REFUSED: {error}: {source}");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let reader = RingReader::start(&session, RING, |bytes| Some(bytes.to_vec())).unwrap();
    for probe in &script.probes {
        if matches!(probe.attach, Attach::Begin | Attach::End) {
            session.run(probe.program, &[]).unwrap();
        }
    }
    let mut events = Vec::new();
    reader.finish(|batch| events.extend(batch.iter().map(|bytes| decode::event(&script, bytes))));
    let maps = script
        .maps
        .iter()
        .map(|map| (map.name.clone(), entries(&session, map)))
        .collect();
    Ok(Some(Outcome { events, maps }))
}

/// Returns a map's entries, each `[key]: value`, sorted.
fn entries(session: &Session, map: &ScriptMap) -> Vec<String> {
    let kernel = session.map(&map.bpf_name).unwrap();
    let key_table = map
        .key_table
        .as_ref()
        .map(|it| (session.map(&it.bpf_name).unwrap(), it.value_offset as usize));
    let mut entries = Vec::new();
    for key in key_table.map_or(kernel, |(table, _)| table).keys().unwrap() {
        let bytes = kernel.lookup(&key).unwrap().unwrap_or_default();
        let shared = key_table
            .map(|(table, offset)| table.lookup(&key).unwrap().unwrap()[offset..].to_vec());
        let mut cpus: Vec<&[u8]> = match kernel.cpu_stride() {
            Some(stride) => bytes.chunks(stride).collect(),
            None => vec![&bytes],
        };
        cpus.extend(shared.as_deref());
        entries.push(decode::entry(map, &key, &cpus));
    }
    entries.sort();
    entries
}

pub(crate) fn run(source: &str) -> Option<Outcome> {
    run_with(source, &live())
}

/// Checks the output of a script, each event as a line.
#[track_caller]
pub(crate) fn prints(source: &str, expected: &[&str]) {
    if let Some(_alone) = allowed() {
        let Some(outcome) = run(source) else { return };
        assert_eq!(outcome.events, expected, "{source}");
    }
}

/// Checks the content of a script's map at the end.
#[track_caller]
pub(crate) fn holds(source: &str, name: &str, expected: &[&str]) {
    if let Some(_alone) = allowed() {
        let Some(outcome) = run(source) else { return };
        let map = outcome
            .maps
            .iter()
            .find(|(known, _)| known == name)
            .unwrap();
        assert_eq!(map.1, expected, "{source}");
    }
}

/// A type of this kernel's own. Scripts that need none run on the interpreter, too ([`language`],
/// [`memory`]).
#[test]
fn structs_of_this_kernel() {
    prints(
        "begin { $t = (struct task_struct *)curtask; print($t.se.on_rq); }",
        &["1"],
    );
}
