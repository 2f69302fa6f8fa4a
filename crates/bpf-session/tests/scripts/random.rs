//! Random scripts that the compiler accepts: the verifier must take all of them.

use bpf_session::{Features, Session};
use testkit::script::Generator;

use crate::facts::Facts;
use crate::{allowed, compile};

/// How many are tried, where not said otherwise. Each takes some milliseconds of the verifier's time.
const SCRIPTS: u64 = 2000;
/// Says how many instead.
const VARIABLE: &str = "DPTRACE_TEST_SCRIPTS";

#[test]
fn the_verifier_takes_what_the_compiler_accepts() {
    let Some(_alone) = allowed() else { return };
    let features = Features::detect().unwrap();
    let count = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(SCRIPTS);
    let mut accepted = 0;
    for seed in 0..count {
        let source = Generator::random(seed).script();
        // What the compiler refuses is no matter here: most is valid, and that most is, is looked at below.
        let Ok(script) = compile(&source, &Facts::default()) else { continue };
        accepted += 1;
        if let Err(error) = Session::load(&script.module, features) {
            panic!("seed {seed}:\n{source}\n{error}");
        }
    }
    assert!(accepted * 10 >= count * 9, "only {accepted} of {count} were accepted");
}
