//! Code of scripts for aarch64, on any compiling machine: offsets of registers in `struct
//! user_pt_regs` (`arch/arm64/include/uapi/asm/ptrace.h`: `regs[31]`, `sp`, `pc`, `pstate`), and
//! the calling convention (AAPCS64, 6.4).

use bpf_insn::Listing;
use compiler_testkit::{FakeTarget, compile};
use uapi::Arch;

/// Returns the instructions of a script's first program, as `llvm-objdump -d` would show them.
#[track_caller]
fn compiled(script: &str, args: &str) -> String {
    let target = FakeTarget::new(Arch::Aarch64).with_function("/bin/it", "f", 64);
    let target = target.with_usdt("/bin/it", "it", "p", &[args]);
    let script = compile(script, &target).unwrap_or_else(|wrong| panic!("{script}\n{wrong}"));
    let text = Listing::new(&script.module.programs[0].code).to_string();
    // Without the notes behind them.
    text.lines()
        .map(|line| line.split(';').next().unwrap_or(line).trim_end().to_owned() + "\n")
        .collect()
}

/// Checks that the script's program loads `width` bytes from this offset of its context.
#[track_caller]
fn assert_looks_at(script: &str, args: &str, width: u8, offset: u16) {
    let text = compiled(script, args);
    let load = format!("= *(u{} *)(r", width * 8);
    let place = format!(" + {offset:#x})");
    let found = text
        .lines()
        .any(|line| line.contains(&load) && line.ends_with(&place));
    assert!(found, "{script}: no look at {offset}:\n{text}");
}

#[test]
fn arguments_and_results_of_functions() {
    for n in 0..8 {
        assert_looks_at(&format!("uprobe:/bin/it:f {{ @ = arg{n}; }}"), "", 8, n * 8);
    }
    assert_looks_at("uretprobe:/bin/it:f { @ = retval; }", "", 8, 0);
}

#[test]
fn registers_by_name() {
    for (name, offset) in [
        ("x0", 0),
        ("r7", 56),
        ("x30", 240),
        ("sp", 248),
        ("pc", 256),
    ] {
        assert_looks_at(
            &format!("uprobe:/bin/it:f {{ @ = reg(\"{name}\"); }}"),
            "",
            8,
            offset,
        );
    }
}

#[test]
fn arguments_of_probes() {
    let probe = "usdt:/bin/it:it:p { @ = arg1; }";
    // As gcc and clang write them for aarch64: a register, a value on the stack, and one behind a
    // pointer.
    assert_looks_at(probe, "8@x0 -4@w21", 8, 21 * 8);
    for (args, base) in [("8@x0 8@[sp, 24]", 248), ("8@x0 4@[x19, -8]", 19 * 8)] {
        assert_looks_at(probe, args, 8, base);
        assert!(
            compiled(probe, args).contains("call 0x70"),
            "bpf_probe_read_user"
        );
    }
    let constant = compiled(probe, "8@x0 4@77");
    assert!(constant.contains("= 0x4d"), "{constant}");
}

/// `pstate`, whose lowest four bits are 0 for user code (`PSR_MODE_EL0t`).
#[test]
fn the_mode_of_a_sample() {
    assert_looks_at("profile:hz:99 { @ = usermode; }", "", 8, 264);
}
