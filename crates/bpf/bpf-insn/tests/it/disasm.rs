//! The text of instructions and listings.

use bpf_insn::Reg::*;
use bpf_insn::*;

/// Assembles one instruction and returns its text.
fn text(emit: impl FnOnce(&mut Asm)) -> Result<String, AsmError> {
    let mut asm = Asm::new();
    emit(&mut asm);
    let code = asm.finish()?;
    let texts: Vec<String> = code
        .lines()
        .iter()
        .map(|line| line.insn.to_string())
        .collect();
    Ok(texts.join("\n"))
}

macro_rules! texts {
    ($($method:ident($($argument:expr),*) => $expected:literal;)*) => {
        $(assert_eq!(text(|asm| { asm.$method($($argument),*); }).as_deref(), Ok($expected));)*
    };
}

#[test]
fn arithmetic() {
    texts! {
        mov(R1, R2) => "r1 = r2";
        mov(R1, -1) => "r1 = -0x1";
        mov32(R1, 10) => "w1 = 0xa";
        add(R10, i32::MIN) => "r10 += -0x80000000";
        sub(R1, R2) => "r1 -= r2";
        mul(R1, 3) => "r1 *= 0x3";
        div(R1, 3) => "r1 /= 0x3";
        rem(R1, 3) => "r1 %= 0x3";
        or(R1, R2) => "r1 |= r2";
        and(R1, 255) => "r1 &= 0xff";
        xor(R1, R2) => "r1 ^= r2";
        lsh(R1, 32) => "r1 <<= 0x20";
        rsh(R1, 32) => "r1 >>= 0x20";
        arsh(R1, 32) => "r1 s>>= 0x20";
        neg(R1) => "r1 = -r1";
        alu(AluOp::SDiv, R1, R2) => "r1 s/= r2";
        alu32(AluOp::SMod, R1, R2) => "w1 s%= w2";
        mov_sx(Extend::S8To32, R1, R2) => "w1 = (s8)w2";
        mov_sx(Extend::S32To64, R1, R2) => "r1 = (s32)r2";
        sign_extend(R1, SxSize::W) => "r1 <<= 0x20\nr1 s>>= 0x20";
        swap(ByteOrder::Big, SwapBits::B16, R1) => "r1 = be16 r1";
        swap(ByteOrder::Little, SwapBits::B32, R1) => "r1 = le32 r1";
        swap(ByteOrder::Swap, SwapBits::B64, R1) => "r1 = bswap64 r1";
    }
}

#[test]
fn memory() {
    texts! {
        load(Size::DW, R1, R10.at(-8)) => "r1 = *(u64 *)(r10 - 0x8)";
        load(Size::B, R1, R2.at(0)) => "w1 = *(u8 *)(r2 + 0x0)";
        load(Size::H, R1, R2.at(i16::MIN)) => "w1 = *(u16 *)(r2 - 0x8000)";
        load_sx(SxSize::W, R1, R2.at(4)) => "r1 = *(s32 *)(r2 + 0x4)";
        store(Size::W, R10.at(-4), R3) => "*(u32 *)(r10 - 0x4) = w3";
        store(Size::DW, R10.at(-8), 0) => "*(u64 *)(r10 - 0x8) = 0x0";
        atomic(AtomicOp::Add, Width::W64, R1.at(8), R2) => "lock *(u64 *)(r1 + 0x8) += r2";
        atomic(AtomicOp::FetchXor, Width::W32, R1.at(8), R2) => "w2 = atomic_fetch_xor((u32 *)(r1 + 0x8), w2)";
        atomic(AtomicOp::Xchg, Width::W64, R1.at(8), R2) => "r2 = xchg_64(r1 + 0x8, r2)";
        atomic(AtomicOp::CmpXchg, Width::W32, R1.at(8), R2) => "w0 = cmpxchg32_32(r1 + 0x8, w0, w2)";
        constant(R1, 5) => "r1 = 0x5";
        constant(R1, 0x1_0000_0000) => "r1 = 0x100000000 ll";
        load_imm64(R1, Imm64::Value(u64::MAX)) => "r1 = -0x1 ll";
        load_imm64(R1, Imm64::MapFd(3)) => "ld_pseudo r1, 0x1, 0x3";
        load_map(R1, "events") => "r1 = 0x0 ll";
    }
}

#[test]
fn control() {
    texts! {
        call(Helper::MAP_LOOKUP_ELEM) => "call 0x1";
        call_kfunc(1234) => "call 0x4d2";
        call_subprogram("f") => "call -0x1";
        exit() => "exit";
        insn(Insn::Jump { off: -3 }) => "goto -0x3";
        insn(Insn::JumpLong { off: 70_000 }) => "gotol +0x11170";
    }
    let jump = |op, width, src| {
        Insn::JumpIf {
            op,
            width,
            dst: R0,
            src,
            off: 5,
        }
        .to_string()
    };
    assert_eq!(
        jump(JumpOp::Eq, Width::W64, Src::Imm(0)),
        "if r0 == 0x0 goto +0x5"
    );
    assert_eq!(
        jump(JumpOp::Set, Width::W32, Src::Reg(R1)),
        "if w0 & w1 goto +0x5"
    );
    assert_eq!(
        jump(JumpOp::SLe, Width::W64, Src::Imm(-9)),
        "if r0 s<= -0x9 goto +0x5"
    );
}

/// Builds a small program with everything that a listing can show.
fn program() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (out, again) = (asm.label("out"), asm.label("again"));
    asm.comment("keep the context").mov(R6, R1);
    asm.load_map(R1, "counts").call(Helper::MAP_LOOKUP_ELEM);
    asm.span(Some(SourceSpan { start: 10, end: 14 }))
        .comment("@n[tid]")
        .jump_if(R0, JumpOp::Eq, 0, out);
    asm.span(None);
    asm.bind(again)
        .load_data(R2, "limit", 8)
        .call_subprogram("step")
        .load_function(R3, "each");
    asm.comment("two\nlines")
        .jump_if32(R0, JumpOp::Gt, 3, again);
    asm.bind(out)
        .insn(Insn::Call(Callee::Helper(Helper(9999))))
        .exit();
    asm.finish()
}

#[test]
fn listing() {
    let expected = "
     0: r6 = r1                                      ; keep the context
     1: r1 = 0x0 ll                                  ; map counts
     3: call 0x1                                     ; bpf_map_lookup_elem
     4: if r0 == 0x0 goto +0x6 <out>                 ; @n[tid]; script 10..14
<again>:
     5: r2 = 0x8 ll                                  ; data limit + 0x8
     7: call -0x1                                    ; subprogram step
     8: ld_pseudo r3, 0x4, 0x0                       ; subprogram each
    10: if w0 > 0x3 goto -0x6 <again>                ; two lines
<out>:
    11: call 0x270f                                  ; helper#9999
    12: exit
";
    assert_eq!(format!("\n{}", Listing::new(&program().unwrap())), expected);
}

#[test]
fn listing_of_bytes_with_bytes() {
    let mut asm = Asm::new();
    let out = asm.label("out");
    asm.jump_if(R1, JumpOp::Eq, 0, out)
        .load_imm64(R1, Imm64::MapFd(7))
        .bind(out)
        .exit();
    let code = Code::decode(&asm.finish().unwrap().to_bytes()).unwrap();
    let expected = "
     0: 15 01 02 00 00 00 00 00  if r1 == 0x0 goto +0x2 <L3>
     1: 18 11 00 00 07 00 00 00 00 00 00 00 00 00 00 00  ld_pseudo r1, 0x1, 0x7                       ; map fd 7
<L3>:
     3: 95 00 00 00 00 00 00 00  exit
";
    assert_eq!(format!("\n{}", Listing::new(&code).with_bytes()), expected);
}
