//! The number of instructions of each program: a change must not make events dearer unnoticed.
//!
//! If the variable `DPTRACE_LISTINGS` names a folder, the listings are written there, to be compared.

use std::fmt::Write as _;

use bpf_insn::Listing;

use super::{Setting, module, tracepoints};
use crate::audit::facts::Facts;

const EXPECTED: &str = include_str!("instructions.txt");

fn facts(old: bool) -> Facts {
    Facts {
        pid: 1996,
        tgid: 2000,
        comm: 2400,
        flags: 44,
        prio: 100,
        policy: 800,
        cpu: 20,
        on_cpu: Some(52),
        state: 24,
        switched_state: old.then_some(24),
        action_name: 88,
        work_function: 24,
        pool: (!old).then_some([0, 8, 4, 176]),
        hrtimer_function: 40,
        timer_function: 24,
        tracepoints: tracepoints().map(|name| (name, 1)).collect(),
    }
}

#[test]
fn programs_have_as_many_instructions_as_before() {
    let (mut counts, folder) = (String::new(), std::env::var("DPTRACE_LISTINGS"));
    for (name, old, each) in [("plain", false, None), ("each", false, Some(1000)), ("old", true, None)] {
        let facts = facts(old);
        let setting = Setting { facts: &facts, exchange: !old, each, ring_bytes: 1 << 20 };
        for program in module(&setting, 8).unwrap().programs {
            writeln!(counts, "{name} {} {}", program.name, program.code.slots()).unwrap();
            if let Ok(folder) = &folder {
                let path = format!("{folder}/cpus {name} {}.txt", program.name);
                std::fs::write(path, Listing::new(&program.code).to_string()).unwrap();
            }
        }
    }
    assert!(counts == EXPECTED, "programs/instructions.txt should be:\n{counts}");
}
