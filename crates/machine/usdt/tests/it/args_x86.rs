//! Arguments as x86-64 compilers write them: one line an operand.

use uapi::Arch;
use usdt::args::{
    ArgSpec, ArgType, Extend, Index, MAX_ARGS, MemoryOperand, Operand, SymbolAccess, SymbolOperand,
    Unreadable, parse_args,
};
use usdt::registers::X86Register::{self, R8, R12, Rax, Rbp, Rbx, Rcx, Rdi, Rip, Rsi, Rsp};
use usdt::{NoteFault, Register};

fn args(text: &str) -> Vec<ArgSpec> {
    parse_args(Arch::X86_64, text).unwrap()
}

fn one(text: &str) -> ArgSpec {
    let mut args = args(text);
    assert_eq!(args.len(), 1, "{text}");
    args.remove(0)
}

fn check(text: &str, shown: &str, operand: &Operand) {
    let arg = one(text);
    assert_eq!(arg.operand, *operand, "{text}");
    assert_eq!(arg.to_string(), shown);
}

fn in_register(register: X86Register, shift: u8) -> Operand {
    Operand::Register {
        register: Register::X86(register),
        shift,
    }
}

fn memory(
    base: Option<X86Register>,
    index: Option<(X86Register, u8)>,
    offset: i64,
) -> MemoryOperand {
    let index = index.map(|(register, shift)| Index {
        register: Register::X86(register),
        extend: Extend::Full,
        shift,
    });
    MemoryOperand {
        base: base.map(Register::X86),
        index,
        offset,
    }
}

fn at(base: X86Register, offset: i64) -> Operand {
    Operand::Memory(memory(Some(base), None, offset))
}

fn symbol(name: &str, memory: MemoryOperand, access: SymbolAccess) -> Operand {
    Operand::Symbol(SymbolOperand {
        name: name.into(),
        memory,
        access,
    })
}

#[test]
fn registers() {
    check("8@%rdi", "u64 @ %rdi", &in_register(Rdi, 0));
    check("-4@%eax", "i32 @ %eax", &in_register(Rax, 0));
    check("2@%ax", "u16 @ %ax", &in_register(Rax, 0));
    check("1@%al", "u8 @ %al", &in_register(Rax, 0));
    check("-1@%sil", "i8 @ %sil", &in_register(Rsi, 0));
    check("4@%r8d", "u32 @ %r8d", &in_register(R8, 0));
    check("1@%r12b", "u8 @ %r12b", &in_register(R12, 0));
    check("8f@%rax", "f64 @ %rax", &in_register(Rax, 0));
    // The size governs, not the register's name.
    check("4@%rax", "u32 @ %rax", &in_register(Rax, 0));
    check("8@%al", "u64 @ %al", &in_register(Rax, 0));
}

#[test]
fn high_bytes() {
    check("1@%ah", "u8 @ %ah", &in_register(Rax, 8));
    check("-1@%bh", "i8 @ %bh", &in_register(Rbx, 8));
    check("1@%ch", "u8 @ %ch", &in_register(Rcx, 8));
}

#[test]
fn constants() {
    check("-4@$1", "i32 @ $1", &Operand::Constant(1));
    check("-8@$-7", "i64 @ $-7", &Operand::Constant(-7));
    check("4@$0x41", "u32 @ $0x41", &Operand::Constant(0x41));
    check(
        "8@$9223372036854775807",
        "u64 @ $9223372036854775807",
        &Operand::Constant(i64::MAX),
    );
    check(
        "8@$18446744073709551615",
        "u64 @ $18446744073709551615",
        &Operand::Constant(-1),
    );
}

#[test]
fn memory_operands() {
    check("-4@-4(%rbp)", "i32 @ -4(%rbp)", &at(Rbp, -4));
    check("8@(%rsp)", "u64 @ (%rsp)", &at(Rsp, 0));
    check("4@0x20(%rdi)", "u32 @ 0x20(%rdi)", &at(Rdi, 0x20));
    check("8f@-24(%rbp)", "f64 @ -24(%rbp)", &at(Rbp, -24));
    check(
        "1@-96(%rbp,%rax,8)",
        "u8 @ -96(%rbp,%rax,8)",
        &Operand::Memory(memory(Some(Rbp), Some((Rax, 3)), -96)),
    );
    check(
        "1@(%rbp,%rax,4)",
        "u8 @ (%rbp,%rax,4)",
        &Operand::Memory(memory(Some(Rbp), Some((Rax, 2)), 0)),
    );
    check(
        "1@-96(%rbp,%rax)",
        "u8 @ -96(%rbp,%rax)",
        &Operand::Memory(memory(Some(Rbp), Some((Rax, 0)), -96)),
    );
    check(
        "8@16(,%rax,8)",
        "u64 @ 16(,%rax,8)",
        &Operand::Memory(memory(None, Some((Rax, 3)), 16)),
    );
    check(
        "8@8( %rbp , %rax , 2 )",
        "u64 @ 8( %rbp , %rax , 2 )",
        &Operand::Memory(memory(Some(Rbp), Some((Rax, 1)), 8)),
    );
    // libbpf reads the instruction pointer too.
    check("8@16(%rip)", "u64 @ 16(%rip)", &at(Rip, 16));
}

#[test]
fn symbols() {
    let rip = |offset| memory(Some(Rip), None, offset);
    check(
        "-4@NBuffers(%rip)",
        "i32 @ NBuffers(%rip)",
        &symbol("NBuffers", rip(0), SymbolAccess::Load),
    );
    check(
        "-4@52+Stats(%rip)",
        "i32 @ 52+Stats(%rip)",
        &symbol("Stats", rip(52), SymbolAccess::Load),
    );
    check(
        "-4@Stats+52(%rip)",
        "i32 @ Stats+52(%rip)",
        &symbol("Stats", rip(52), SymbolAccess::Load),
    );
    check(
        "-4@Stats-8(%rip)",
        "i32 @ Stats-8(%rip)",
        &symbol("Stats", rip(-8), SymbolAccess::Load),
    );
    check(
        "8f@.LC0(%rip)",
        "f64 @ .LC0(%rip)",
        &symbol(".LC0", rip(0), SymbolAccess::Load),
    );
    check(
        "4@count.0(%rip)",
        "u32 @ count.0(%rip)",
        &symbol("count.0", rip(0), SymbolAccess::Load),
    );
    let plain = |offset| memory(None, None, offset);
    check(
        "8@$table+8",
        "u64 @ $table+8",
        &symbol("table", plain(8), SymbolAccess::Address),
    );
    check(
        "8@counter",
        "u64 @ counter",
        &symbol("counter", plain(0), SymbolAccess::Load),
    );
    let indexed = memory(None, Some((Rax, 3)), 0);
    check(
        "8@table(,%rax,8)",
        "u64 @ table(,%rax,8)",
        &symbol("table", indexed, SymbolAccess::Load),
    );
}

#[test]
fn sizes_are_optional() {
    check("%eax", "u32 @ %eax", &in_register(Rax, 0));
    check("%ah", "u8 @ %ah", &in_register(Rax, 8));
    check("$5", "u64 @ $5", &Operand::Constant(5));
    check("8(%rbp)", "u64 @ 8(%rbp)", &at(Rbp, 8));
}

#[test]
fn unreadable_operands_keep_their_place() {
    let reason = |text: &str| one(text).unreadable().unwrap();
    let vector = |name: &str| Unreadable::VectorRegister { name: name.into() };
    let other = |name: &str| Unreadable::OtherRegister { name: name.into() };
    assert_eq!(reason("8f@%xmm0"), vector("%xmm0"));
    assert_eq!(reason("8@%xmm15"), vector("%xmm15"));
    assert_eq!(reason("32@%ymm1"), vector("%ymm1"));
    assert_eq!(reason("16f@%st(0)"), other("%st"));
    assert_eq!(reason("8@%nonsense"), other("%nonsense"));
    assert_eq!(reason("-4@%fs:tl@tpoff"), Unreadable::ThreadLocal);
    assert_eq!(reason("8@gi@GOTPCREL(%rip)"), Unreadable::Relocation);
    assert_eq!(reason("16@-32(%rbp)"), Unreadable::Size { size: 16 });
    assert_eq!(reason("16f@gld(%rip)"), Unreadable::Size { size: 16 });
    assert_eq!(reason("2f@%ax"), Unreadable::Size { size: 2 });
    assert_eq!(reason("0@%ax"), Unreadable::Size { size: 0 });
    assert_eq!(reason("-4@DWORD PTR [rbp-20]"), Unreadable::IntelSyntax);
    assert_eq!(reason("-4@eax"), Unreadable::IntelSyntax);
    for text in [
        "8@",
        "8@$",
        "8@(",
        "8@()",
        "8@4(%rbp",
        "8@(%rbp,%rax,3)",
        "8@5",
        "8@%",
        "8@(%eax)",
        "8@(%rbp))",
        "8@a+b(%rip)",
    ] {
        assert_eq!(reason(text), Unreadable::Unrecognised, "{text}");
    }
    let shown: Vec<String> = args("8@%rax 8f@%xmm0 -4@$1")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, ["u64 @ %rax", "f64 @ %xmm0", "i32 @ $1"]);
}

#[test]
fn whole_lists() {
    assert_eq!(args("").len(), 0);
    assert_eq!(args("   ").len(), 0);
    assert_eq!(args(":").len(), 0);
    assert_eq!(args("8@%rdi -4@-20(%rbp)  1@$3 ").len(), 3);
    assert_eq!(args(&"8@%rdi ".repeat(MAX_ARGS)).len(), MAX_ARGS);
    let many = parse_args(Arch::X86_64, &"8@%rdi ".repeat(MAX_ARGS + 1));
    assert_eq!(many, Err(NoteFault::TooManyArguments { limit: MAX_ARGS }));
}

#[test]
fn equal_places_are_equal_however_they_are_written() {
    use std::collections::HashSet;
    let (first, second) = (one("8@0x10(%rbp)"), one("8@16(%rbp)"));
    assert_ne!(first.text, second.text);
    assert_eq!(first, second);
    assert_eq!(HashSet::from([first.clone(), second]).len(), 1);
    assert!(
        ["8@24(%rbp)", "-8@16(%rbp)", "4@16(%rbp)", "8@16(%rsp)"]
            .iter()
            .all(|other| one(other) != first)
    );
}

#[test]
fn control_characters_never_reach_the_terminal() {
    assert_eq!(one("8@\u{1b}[31m").to_string(), "u64 @ \\u{1b}[31m");
}

#[test]
fn types() {
    let check = |size, signed, float, shown: &str| {
        let ty = ArgType {
            size,
            signed,
            float,
        };
        assert_eq!(ty.to_string(), shown);
    };
    check(1, false, false, "u8");
    check(8, true, false, "i64");
    check(4, false, true, "f32");
    check(8, true, true, "f64");
    check(16, false, true, "16 bytes");
}
