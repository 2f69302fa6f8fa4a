//! Random scripts that the compiler accepts: the verifier must take all of them.

use std::collections::BTreeSet;

use bpf_session::{Features, Session, SessionError};
use compiler_testkit::{FakeTarget, compile};
use testkit::script::Generator;

use crate::scripts::allowed;
use crate::scripts::facts::{can_wait, live};

/// Default number of scripts. Each takes some milliseconds of the verifier's time.
const SCRIPTS: u64 = 2000;
/// Variable that overrides the number of scripts.
const VARIABLE: &str = "DPTRACE_TEST_SCRIPTS";
/// File of the user probes; nothing is attached.
const FILE: &str = "/bin/program";
/// Function of the user probes, in [`FILE`].
const FUNCTION: &str = "function";
const PROBES: [&str; 5] = [
    "interval:s:1",
    "profile:hz:99",
    "end",
    "uprobe:/bin/program:function",
    "uretprobe:/bin/program:function",
];

#[test]
#[ignore = "deep random: 2,000 random scripts take minutes of the verifier's time"]
fn the_verifier_takes_what_the_compiler_accepts() {
    let Some(_alone) = allowed() else { return };
    let features = Features::detect().unwrap();
    let count = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(SCRIPTS);
    let (mut accepted, mut waiting, mut too_old) = (0, 0, BTreeSet::new());
    for seed in 0..count {
        let source = Generator::random(seed).with(&PROBES, &[]).script();
        // Scripts that the compiler refuses are skipped; that most are valid is checked below.
        let Ok(script) = compile(&source, &facts(seed)) else {
            continue;
        };
        accepted += 1;
        waiting += u64::from(
            script
                .module
                .programs
                .iter()
                .any(|program| program.sleepable),
        );
        match Session::load(&script.module, features) {
            Ok(_) => {}
            Err(error @ SessionError::TooOld { .. }) => {
                too_old.insert(
                    error
                        .to_string()
                        .split(", which")
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                );
            }
            Err(error) => panic!("seed {seed}:\n{source}\n{error}"),
        }
    }
    for lack in &too_old {
        println!("some need what this kernel lacks: {lack}");
    }
    assert!(
        accepted * 10 >= count * 9,
        "only {accepted} of {count} were accepted"
    );
    assert!(
        !can_wait() || waiting * 10 >= count,
        "only {waiting} of {count} may wait for memory"
    );
}

/// Returns a machine with a function to probe; every other one reports failed reads.
fn facts(seed: u64) -> FakeTarget {
    FakeTarget {
        reports_reads: seed.is_multiple_of(2),
        ..live()
    }
    .with_function(FILE, FUNCTION, 64)
}
