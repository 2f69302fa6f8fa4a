//! Any text as a file of object specs; those that are accepted must hold together, and work on a recording.
#![no_main]

use libfuzzer_sys::fuzz_target;
use objects::{Lifetimes, ObjectSpec, ProbeSpec, Recording, TSC, parse_specs};

/// A line of a recording in which the probe is hit.
fn hit(probe: &ProbeSpec, tsc: usize) -> String {
    let args = probe
        .args
        .iter()
        .map(|arg| match (arg.name.as_str(), arg.string) {
            (TSC, _) => format!("{TSC}={tsc:#x}"),
            (name, true) => format!("{name}='x'"),
            (name, false) => format!("{name}=0x1"),
        });
    format!("{}: {}\n", probe.name, args.collect::<Vec<_>>().join(", "))
}

fn check(spec: &ObjectSpec) {
    assert!(spec.probes.iter().any(|p| p.role.begins()), "{spec:?}");
    for probe in &spec.probes {
        assert!(
            probe.args.iter().any(|arg| arg.name == TSC)
                && probe.args.iter().any(|arg| arg.name == spec.key)
        );
    }
    for property in &spec.properties {
        let args = || {
            spec.probes
                .iter()
                .flat_map(|p| &p.args)
                .filter(|arg| arg.name == property.from())
        };
        assert!(args().next().is_some(), "{property:?}");
        assert_eq!(
            spec.is_text(property),
            args().any(|arg| arg.string),
            "{property:?}"
        );
    }
}

fuzz_target!(|text: &str| {
    let specs = match parse_specs(text) {
        Ok(specs) => specs,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    specs.iter().for_each(check);
    let lines: String = specs
        .iter()
        .flat_map(|s| &s.probes)
        .enumerate()
        .map(|(i, p)| hit(p, i))
        .collect();
    let recording = Recording::parse(&lines, |_| true);
    let lifetimes = Lifetimes::new(&specs, &recording);
    for object in lifetimes.all() {
        assert!(object.value(specs[object.spec].properties.len()).is_none());
        assert!(object.begin <= object.end);
    }
});
