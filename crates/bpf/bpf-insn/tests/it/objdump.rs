//! Our text of instructions, compared with llvm-objdump's.
//!
//! The tool is `$LLVM_OBJDUMP` or `llvm-objdump`. Any LLVM will do: numbers are compared as numbers
//! (before 16 they were printed in decimal). Instructions that an older one does not know are left
//! out and counted.

use crate::common::table::every_kind;
use bpf_insn::*;
use std::error::Error;

/// Output of llvm-objdump for an unknown instruction.
const UNKNOWN: &str = "<unknown>";
/// Kernel that brought BPF v4.
const V4: KernelVersion = KernelVersion::new(6, 6);

/// Returns the text with single blanks and decimal numbers.
fn normal(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let at = word.find("0x").unwrap_or(word.len());
        let digits: String = word[at..]
            .chars()
            .skip(2)
            .take_while(char::is_ascii_hexdigit)
            .collect();
        match u64::from_str_radix(&digits, 16) {
            Ok(number) => format!("{}{number}{}", &word[..at], &word[at + 2 + digits.len()..]),
            Err(_) => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns one instruction per line: the text after the slot and before the jump's symbol.
fn instructions(output: &str) -> Vec<String> {
    let lines = output.lines().filter_map(|line| {
        let (slot, rest) = line.split_once(':')?;
        slot.trim().parse::<u32>().ok()?;
        Some(normal(rest.split(" <f").next().unwrap_or(rest)))
    });
    lines.collect()
}

/// Returns the tool's output for the object; `None` without the tool.
fn objdump(object: &[u8]) -> Result<Option<String>, Box<dyn Error>> {
    let tool = std::env::var("LLVM_OBJDUMP").unwrap_or_else(|_| "llvm-objdump".into());
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("all.o");
    std::fs::write(&path, object)?;
    let arguments = ["-d", "--no-show-raw-insn", "--mattr=+alu32"];
    let output = match testkit::command(&tool).args(arguments).arg(&path).output() {
        Ok(output) => output,
        Err(error) => {
            testkit::kernel::skip_if_permitted("llvm-objdump", &format!("{tool}: {error}"));
            return Ok(None);
        }
    };
    if !output.status.success() || !output.stderr.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(Some(String::from_utf8(output.stdout)?))
}

fn object_of(insns: &[Insn]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut asm = Asm::new();
    for &insn in insns {
        asm.insn(insn);
    }
    let mut object = ObjectBuilder::new("GPL");
    object.program("uprobe", "f", asm.finish()?);
    Ok(object.build()?)
}

#[test]
fn every_kind_reads_as_objdump_prints_it() {
    let insns = every_kind();
    let object = object_of(&insns).unwrap();
    let Some(output) = objdump(&object).unwrap() else {
        return;
    };
    let theirs = instructions(&output);
    assert_eq!(theirs.len(), insns.len(), "{output}");
    let pairs: Vec<(Insn, &String)> = insns.into_iter().zip(&theirs).collect();
    // An LLVM before 17 takes some BPF v4 instructions for others: it ignores the offset field of a
    // division.
    let knows_v4 = pairs
        .iter()
        .all(|(insn, theirs)| !is_long_jump(*insn) || *theirs != UNKNOWN);
    let is_compared =
        |insn: Insn, theirs: &str| theirs != UNKNOWN && (knows_v4 || insn.since() < V4);
    let mut compared = 0;
    for &(insn, theirs) in pairs
        .iter()
        .filter(|(insn, theirs)| is_compared(*insn, theirs))
    {
        assert_eq!(normal(&insn.to_string()), *theirs);
        compared += 1;
    }
    println!(
        "compared {compared} of {} instructions, the rest is unknown to this llvm-objdump",
        pairs.len()
    );
    assert!(
        compared * 2 > pairs.len(),
        "only {compared} of {} compared",
        pairs.len()
    );
}

fn is_long_jump(insn: Insn) -> bool {
    matches!(insn, Insn::JumpLong { .. })
}

#[test]
fn blanks_and_number_bases_do_not_count() {
    assert_eq!(
        normal("r1 =  *(u64 *)(r10 - 0x10)"),
        "r1 = *(u64 *)(r10 - 16)"
    );
    assert_eq!(normal("if w1 == -0xa goto +0x5"), "if w1 == -10 goto +5");
}
