//! Arguments as aarch64 compilers write them: one line an operand.

use uapi::Arch;
use usdt::Register;
use usdt::args::{
    Extend, Index, MemoryOperand, Operand, SymbolAccess, SymbolOperand, Unreadable, parse_args,
};
use usdt::registers::Arm64Register::{self, Pc, Sp, X};

fn check(text: &str, shown: &str, operand: &Operand) {
    let args = parse_args(Arch::Aarch64, text).unwrap();
    assert_eq!(args.len(), 1, "{text}");
    assert_eq!(args[0].operand, *operand, "{text}");
    assert_eq!(args[0].to_string(), shown);
}

fn reason(text: &str) -> Option<Unreadable> {
    parse_args(Arch::Aarch64, text)
        .unwrap()
        .first()
        .and_then(usdt::args::ArgSpec::unreadable)
}

fn in_register(register: Arm64Register) -> Operand {
    Operand::Register {
        register: Register::Arm64(register),
        shift: 0,
    }
}

fn at(base: Arm64Register, offset: i64) -> MemoryOperand {
    MemoryOperand {
        base: Some(Register::Arm64(base)),
        index: None,
        offset,
    }
}

fn indexed(base: Arm64Register, register: u8, extend: Extend, shift: u8) -> Operand {
    let index = Some(Index {
        register: Register::Arm64(X(register)),
        extend,
        shift,
    });
    Operand::Memory(MemoryOperand {
        index,
        ..at(base, 0)
    })
}

#[test]
fn registers() {
    check("8@x0", "u64 @ x0", &in_register(X(0)));
    check("-4@w3", "i32 @ w3", &in_register(X(3)));
    // GCC writes the name of the whole register for every width.
    check("-4@x30", "i32 @ x30", &in_register(X(30)));
    check("8@sp", "u64 @ sp", &in_register(Sp));
    check("8@pc", "u64 @ pc", &in_register(Pc));
    check("8@fp", "u64 @ fp", &in_register(X(29)));
    check("8@lr", "u64 @ lr", &in_register(X(30)));
    check("4@wsp", "u32 @ wsp", &in_register(Sp));
    check("8@xzr", "u64 @ xzr", &Operand::Constant(0));
    check("4@wzr", "u32 @ wzr", &Operand::Constant(0));
    check("w3", "u32 @ w3", &in_register(X(3)));
}

#[test]
fn constants() {
    check("-4@5", "i32 @ 5", &Operand::Constant(5));
    check("-4@-7", "i32 @ -7", &Operand::Constant(-7));
    check("4@#5", "u32 @ #5", &Operand::Constant(5));
    check("8@0x7f", "u64 @ 0x7f", &Operand::Constant(0x7f));
}

#[test]
fn memory_operands() {
    check("8@[sp, 8]", "u64 @ [sp, 8]", &Operand::Memory(at(Sp, 8)));
    check("-4@[sp]", "i32 @ [sp]", &Operand::Memory(at(Sp, 0)));
    check(
        "-4@[x29,#-20]",
        "i32 @ [x29,#-20]",
        &Operand::Memory(at(X(29), -20)),
    );
    check(
        "8f@[x0, 0x10]",
        "f64 @ [x0, 0x10]",
        &Operand::Memory(at(X(0), 16)),
    );
    check(
        "4@[x1, x2]",
        "u32 @ [x1, x2]",
        &indexed(X(1), 2, Extend::Full, 0),
    );
    check(
        "8@[x1, x2, lsl 3]",
        "u64 @ [x1, x2, lsl 3]",
        &indexed(X(1), 2, Extend::Full, 3),
    );
    check(
        "8@[x1, x2, lsl #3]",
        "u64 @ [x1, x2, lsl #3]",
        &indexed(X(1), 2, Extend::Full, 3),
    );
    check(
        "4@[x1, w2, sxtw 2]",
        "u32 @ [x1, w2, sxtw 2]",
        &indexed(X(1), 2, Extend::Sign32, 2),
    );
    check(
        "4@[x1, w2, uxtw]",
        "u32 @ [x1, w2, uxtw]",
        &indexed(X(1), 2, Extend::Zero32, 0),
    );
}

#[test]
fn places_in_a_page() {
    let symbol = |name: &str, offset| {
        let access = SymbolAccess::PageOffset;
        Operand::Symbol(SymbolOperand {
            name: name.into(),
            memory: at(X(0), offset),
            access,
        })
    };
    check(
        "4@[x0, #:lo12:counter]",
        "u32 @ [x0, #:lo12:counter]",
        &symbol("counter", 0),
    );
    check(
        "8@[x0, #:lo12:.LANCHOR0+8]",
        "u64 @ [x0, #:lo12:.LANCHOR0+8]",
        &symbol(".LANCHOR0", 8),
    );
}

#[test]
fn unreadable_operands() {
    for name in ["d0", "s31", "q7", "v0.2d", "h1"] {
        let wanted = Unreadable::VectorRegister { name: name.into() };
        assert_eq!(reason(&format!("8f@{name}")), Some(wanted));
    }
    for text in [
        "8@",
        "8@[",
        "8@[]",
        "8@x31",
        "8@x01",
        "8@%rax",
        "8@[x0",
        "8@[x0, 8]!",
        "8@[w0]",
        "8@[x0, #]",
        "8@[x1, w2, lsl 3]",
        "8@[x1, x2, lsl 9]",
        "8@[x1, x2, ror 1]",
        "8@[x1, x2, lsl #]",
        "8@d32",
        "8@y0",
        "8@[x0, #:lo12:]",
    ] {
        assert_eq!(reason(text), Some(Unreadable::Unrecognised), "{text}");
    }
}
