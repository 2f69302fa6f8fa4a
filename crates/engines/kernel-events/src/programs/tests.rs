//! The number of instructions of each program: a change must not make events dearer unnoticed.
//!
//! If the variable `DPTRACE_LISTINGS` names a folder, the listings are written there, to be compared.

use std::fmt::Write as _;

use bpf_insn::Listing;

use super::{Setting, module, tracepoints};
use crate::facts::Facts;

const EXPECTED: &str = include_str!("instructions.txt");

fn facts(old: bool) -> Facts {
    Facts {
        tgid: 2000,
        pid: 1996,
        comm: 2400,
        on_cpu: Some(52),
        cpu: 20,
        state: old.then_some(24),
        tracepoints: tracepoints().map(|name| (name, 1)).collect(),
    }
}

#[test]
fn programs_have_as_many_instructions_as_before() {
    let (mut counts, folder) = (String::new(), std::env::var("DPTRACE_LISTINGS"));
    for (name, facts) in [("plain", facts(false)), ("old", facts(true))] {
        let setting = Setting { facts: &facts, tgid: 77, ring_bytes: 1 << 20 };
        for program in module(&setting, 8).unwrap().programs {
            writeln!(counts, "{name} {} {}", program.name, program.code.slots()).unwrap();
            if let Ok(folder) = &folder {
                let path = format!("{folder}/kernel-events {name} {}.txt", program.name);
                std::fs::write(path, Listing::new(&program.code).to_string()).unwrap();
            }
        }
    }
    assert!(counts == EXPECTED, "programs/instructions.txt should be:\n{counts}");
}
