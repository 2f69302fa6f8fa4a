//! Reads back arbitrary traces of each era, and a realistic load, and compares with a slow model.

use crate::common::model::Model;
use crate::common::{lines, problems, read};
use proptest::prelude::*;
use spdk_trace::Tpoint;
use testkit::{Era, TraceBuilder, Workload, any_trace_of, survivors};

fn reads_back(trace: &TraceBuilder) -> Result<(), TestCaseError> {
    let file = trace.build_file();
    let records = survivors(trace);
    let raw = read(&file.bytes);
    prop_assert_eq!(problems(raw.problems()), vec![""; 0]);
    prop_assert_eq!(raw.record_count(), records.len() as u64);
    prop_assert_eq!(
        lines(&raw),
        Model::new(&file, trace.tpoints().cloned()).lines(records.clone())
    );
    for ring in raw.rings() {
        let mine: Vec<_> = records
            .iter()
            .filter(|r| r.lcore == u32::from(ring.lcore.0))
            .collect();
        prop_assert_eq!(ring.records, mine.len() as u64);
        prop_assert_eq!(
            ring.span.map(|(first, _)| first.0),
            mine.first().map(|r| r.tsc)
        );
        prop_assert_eq!(
            ring.span.map(|(_, last)| last.0),
            mine.last().map(|r| r.tsc)
        );
        prop_assert_eq!(ring.late, 0);
    }
    Ok(())
}

macro_rules! every_trace_is_read_back {
    ($($name:ident $era:ident),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(trace in any_trace_of(Era::$era)) {
                reads_back(&trace)?;
            })*
        }
    };
}

every_trace_is_read_back! {
    any_trace_of_era_a A,
    any_trace_of_era_b B,
    any_trace_of_era_c C,
    any_trace_of_era_d0 D0,
    any_trace_of_era_d D,
    any_trace_of_era_e E,
    any_trace_of_era_f F,
}

/// Returns the descriptors as the reader has them, which other tests check: the generator of the
/// load does not report its own.
fn declared(tpoint: &Tpoint) -> testkit::Tpoint {
    let mut declared = testkit::Tpoint::new(tpoint.id, tpoint.name.clone());
    declared = declared
        .owner_type(tpoint.owner_type)
        .object_type(tpoint.object_type);
    declared.new_object = tpoint.new_object;
    for arg in &tpoint.args {
        let kind = match arg.kind {
            spdk_trace::ArgKind::Int => testkit::ArgKind::Int,
            spdk_trace::ArgKind::Pointer => testkit::ArgKind::Ptr,
            spdk_trace::ArgKind::String => testkit::ArgKind::Str,
        };
        declared = declared.arg(&arg.name, kind, arg.size);
    }
    tpoint
        .relations
        .iter()
        .fold(declared, |declared, relation| {
            declared.relates(relation.object_type, relation.arg)
        })
}

fn is_printed_as_it_was(load: &Workload) {
    let generated = load.generate();
    let raw = read(&generated.file.bytes);
    let what = format!("era {:?}, seed {}", load.era, load.seed);
    assert_eq!(problems(raw.problems()), [""; 0], "{what}");
    let late: u64 = raw.rings().map(|ring| ring.late).sum();
    assert_eq!(
        late == 0,
        load.early_starts_per_mille == 0,
        "{what}: {late} late records"
    );
    let expected = Model::new(&generated.file, raw.tpoints().all().iter().map(declared))
        .lines(generated.truth.clone());
    let lines = lines(&raw);
    assert_eq!(lines.len(), expected.len(), "{what}");
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(line, expected, "{what}");
    }
}

#[test]
fn a_load_that_does_not_wrap() {
    for era in Era::ALL {
        is_printed_as_it_was(&Workload {
            requests: 300,
            slots: 4096,
            owner_count: 300,
            ..Workload::new(era)
        });
    }
}

#[test]
fn a_load_that_wraps_with_many_records_of_an_earlier_time() {
    for era in Era::ALL {
        for seed in 1..4 {
            let load = Workload {
                seed,
                slots: 256,
                lcores: 3,
                early_starts_per_mille: 300,
                ..Workload::new(era)
            };
            is_printed_as_it_was(
                &Workload {
                    owner_count: 300,
                    ..load
                }
                .filling(300),
            );
        }
    }
}

#[test]
fn a_load_without_records_of_an_earlier_time() {
    for era in Era::ALL {
        let load = Workload {
            slots: 512,
            early_starts_per_mille: 0,
            owner_count: 300,
            ..Workload::new(era)
        };
        is_printed_as_it_was(&load.filling(125));
    }
}
