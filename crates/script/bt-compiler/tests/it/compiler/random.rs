//! Random scripts: each one that the compiler accepts runs to its end, on both machines, without a
//! fault.

use bt_abi::Attach;
use compiler_testkit::{FakeTarget, Session, registers, try_compile};
use testkit::script::Generator;

use crate::compiler::MACHINES;

/// Number of scripts, unless [`VARIABLE`] sets another.
const SCRIPTS: u64 = 250;
/// Environment variable with the number of scripts.
const VARIABLE: &str = "DPTRACE_TEST_SCRIPTS";
const PROBES: [&str; 5] = [
    "interval:s:1",
    "profile:hz:99",
    "end",
    "uprobe:/bin/program:function",
    "uretprobe:/bin/program:function",
];
/// Addresses of strings in the process: one present, one that has to be faulted in.
const TEXTS: [u64; 2] = [0x7000_0000, 0x7100_0000];

#[test]
fn accepted_scripts_run_to_their_end() {
    let count = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(SCRIPTS);
    let mut accepted = 0;
    for seed in 0..count {
        let source = Generator::random(seed).with(&PROBES, &[]).script();
        let arch = MACHINES[seed as usize / 2 % 2];
        let target = FakeTarget {
            reports_reads: seed % 2 == 0,
            ..FakeTarget::new(arch)
        };
        let target = target.with_function("/bin/program", "function", 64);
        // Scripts that the compiler refuses don't matter here. Most are valid, which is checked
        // below.
        let Ok(script) = try_compile(&source, &target) else {
            continue;
        };
        accepted += 1;
        let mut session = Session::from_script(script, &target);
        session.machine.put(TEXTS[0], &[b'x'; 6000]);
        session.machine.put_away(TEXTS[1], b"waited for\0");
        for probe in session.script.probes.clone() {
            // All registers point to one of the texts; a perf event's context has more behind them.
            let text = TEXTS[usize::from(probe.attach == Attach::Begin)];
            let all: Vec<(u32, u64)> = (0..21).map(|word| (word * 8, text)).collect();
            let outcome = session.run(probe.program, &registers(arch, &all));
            outcome
                .unwrap_or_else(|fault| panic!("seed {seed}, {}:\n{source}\n{fault}", probe.name));
        }
        session.events();
    }
    assert!(
        accepted * 10 >= count * 9,
        "only {accepted} of {count} were accepted"
    );
}
