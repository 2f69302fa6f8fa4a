//! Tests with traces of real targets: the raw file and its own SPDK's JSON must agree.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::common::line::{line, problems};
use spdk_trace::{JsonTrace, Object, RawTrace, Record, Ticks, Trace};

/// Versions whose printer omits records from before the newest lcore's start only if a ring
/// wrapped.
const KEEPS_ALL_UNLESS_WRAPPED: [&str; 1] = ["v26.09-pre"];

/// Returns every `.trace`, or only those with a `.json` next to them.
fn traces(with_json: bool) -> Vec<PathBuf> {
    let mut found = testkit::real_traces();
    found.retain(|file| !with_json || file.with_extension("json").exists());
    found
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn raw(path: &Path) -> RawTrace {
    RawTrace::read(&bytes(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the time from which SPDK's printer shows records.
fn shown_from(path: &Path, trace: &RawTrace) -> Ticks {
    if KEEPS_ALL_UNLESS_WRAPPED
        .iter()
        .any(|version| path.to_string_lossy().contains(version))
    {
        return trace.common_start();
    }
    trace
        .rings()
        .filter_map(|ring| ring.span)
        .map(|(first, _)| first)
        .max()
        .unwrap_or_default()
}

/// Returns the record as `spdk_trace -j` represents it.
fn as_json<'a>(record: &Record<'a>, with_owners: bool) -> Record<'a> {
    let object = match record.object {
        Object::Untyped(id) | Object::Unseen(id) => Object::ValueOnly(id),
        Object::Known { name, id, .. } if record.tpoint.new_object => Object::Known {
            name,
            id,
            age: None,
        },
        object => object,
    };
    Record {
        object,
        owner: record.owner.filter(|_| with_owners),
        ..*record
    }
}

#[test]
fn raw_file_and_json_have_the_same_records() {
    for path in traces(true) {
        let raw = raw(&path);
        let start = shown_from(&path, &raw);
        let json = JsonTrace::parse(bytes(&path.with_extension("json")));
        let json = json.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut expected = Vec::new();
        raw.for_each(|record| {
            if record.tsc >= start {
                expected.push(line(&as_json(record, json.owners().is_some())));
            }
            ControlFlow::Continue(())
        });
        assert_eq!(json.tick_rate(), raw.tick_rate(), "{}", path.display());
        let mut lines = Vec::new();
        let found = Trace::Json(json).for_each(|record| {
            lines.push(line(record));
            ControlFlow::Continue(())
        });
        assert_eq!(problems(&found), [""; 0], "{}", path.display());
        for (i, (line, expected)) in lines.iter().zip(&expected).enumerate() {
            assert_eq!(line, expected, "{}, record {i}", path.display());
        }
        assert_eq!(lines.len(), expected.len(), "{}", path.display());
        assert!(!lines.is_empty());
    }
}

#[test]
fn real_files_have_no_flaws() {
    for path in traces(false) {
        let trace = raw(&path);
        assert_eq!(problems(trace.problems()), [""; 0], "{}", path.display());
        let wrapped = trace.rings().any(|ring| ring.wrapped);
        let name = path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        println!(
            "{}: {} records, wrapped: {wrapped}",
            path.display(),
            trace.record_count()
        );
        assert_eq!(wrapped, !name.contains("nowrap"), "{}", path.display());
    }
}
