//! The assembler's methods for instructions, named after the operations; the 64-bit form has the
//! short name.

use super::{Asm, Label, Reference};
use crate::helpers::Helper;
use crate::insn::{
    Addr, AluOp, AtomicOp, ByteOrder, Callee, Extend, Imm64, Insn, JumpOp, Reg, Size, Src,
    SwapBits, SxSize, Width,
};

/// Defines one method for each arithmetic operation at 64 bits.
macro_rules! alu64 {
    ($($(#[$meta:meta])* $method:ident = $op:ident;)*) => {
        $(
            $(#[$meta])*
            pub fn $method(&mut self, dst: Reg, src: impl Into<Src>) -> &mut Self {
                self.alu(AluOp::$op, dst, src)
            }
        )*
    };
}

/// Arithmetic.
impl Asm {
    alu64! {
        /// Emits `dst = src`.
        mov = Mov;
        /// Emits `dst += src`.
        add = Add;
        /// Emits `dst -= src`.
        sub = Sub;
        /// Emits `dst *= src`.
        mul = Mul;
        /// Emits `dst /= src`, unsigned.
        div = Div;
        /// Emits `dst %= src`, unsigned.
        rem = Mod;
        /// Emits `dst |= src`.
        or = Or;
        /// Emits `dst &= src`.
        and = And;
        /// Emits `dst ^= src`.
        xor = Xor;
        /// Emits `dst <<= src`.
        lsh = Lsh;
        /// Emits `dst >>= src`, unsigned.
        rsh = Rsh;
        /// Emits `dst s>>= src`, signed.
        arsh = Arsh;
    }

    /// Emits `dst op= src` at 64 bits.
    pub fn alu(&mut self, op: AluOp, dst: Reg, src: impl Into<Src>) -> &mut Self {
        self.insn(Insn::Alu {
            op,
            width: Width::W64,
            dst,
            src: src.into(),
        })
    }

    /// Emits `dst op= src` at 32 bits; the upper half of `dst` becomes zero.
    pub fn alu32(&mut self, op: AluOp, dst: Reg, src: impl Into<Src>) -> &mut Self {
        self.insn(Insn::Alu {
            op,
            width: Width::W32,
            dst,
            src: src.into(),
        })
    }

    /// Emits `dst = src` at 32 bits; the upper half of `dst` becomes zero.
    pub fn mov32(&mut self, dst: Reg, src: impl Into<Src>) -> &mut Self {
        self.alu32(AluOp::Mov, dst, src)
    }

    /// Emits `dst = src`, sign-extended. Since Linux 6.6; [`Asm::sign_extend`] needs no such
    /// kernel.
    pub fn mov_sx(&mut self, extend: Extend, dst: Reg, src: Reg) -> &mut Self {
        self.insn(Insn::MovSx { extend, dst, src })
    }

    /// Sign-extends the low `size` of `dst` to 64 bits with a shift to the left and a signed one
    /// back.
    pub fn sign_extend(&mut self, dst: Reg, size: SxSize) -> &mut Self {
        let bits = match size {
            SxSize::B => 56,
            SxSize::H => 48,
            SxSize::W => 32,
        };
        self.lsh(dst, bits).arsh(dst, bits)
    }

    /// Emits `dst = -dst` at 64 bits.
    pub fn neg(&mut self, dst: Reg) -> &mut Self {
        self.insn(Insn::Neg {
            width: Width::W64,
            dst,
        })
    }

    /// Swaps the low bytes of `dst` and clears the rest.
    pub fn swap(&mut self, order: ByteOrder, bits: SwapBits, dst: Reg) -> &mut Self {
        self.insn(Insn::Swap { order, bits, dst })
    }
}

/// Memory.
impl Asm {
    /// Emits `dst = *(size *)addr`, zero-extended.
    pub fn load(&mut self, size: Size, dst: Reg, addr: Addr) -> &mut Self {
        self.insn(Insn::Load { size, dst, addr })
    }

    /// Emits `dst = *(size *)addr`, sign-extended. Since Linux 6.6.
    pub fn load_sx(&mut self, size: SxSize, dst: Reg, addr: Addr) -> &mut Self {
        self.insn(Insn::LoadSx { size, dst, addr })
    }

    /// Emits `*(size *)addr = src`.
    pub fn store(&mut self, size: Size, addr: Addr, src: impl Into<Src>) -> &mut Self {
        self.insn(Insn::Store {
            size,
            addr,
            src: src.into(),
        })
    }

    /// Emits an atomic operation on the word at `addr`.
    pub fn atomic(&mut self, op: AtomicOp, width: Width, addr: Addr, src: Reg) -> &mut Self {
        self.insn(Insn::Atomic {
            op,
            width,
            addr,
            src,
        })
    }
}

/// 64-bit constants and addresses.
impl Asm {
    /// Emits `dst = value`, in one slot if the value is a sign-extended 32-bit one, otherwise in
    /// two.
    pub fn constant(&mut self, dst: Reg, value: u64) -> &mut Self {
        match i32::try_from(value.cast_signed()) {
            Ok(small) => self.mov(dst, small),
            Err(_) => self.load_imm64(dst, Imm64::Value(value)),
        }
    }

    /// Emits `dst = imm ll`, always in two slots.
    pub fn load_imm64(&mut self, dst: Reg, imm: Imm64) -> &mut Self {
        self.insn(Insn::LoadImm64 { dst, imm })
    }

    /// Loads the map of this name into `dst`.
    pub fn load_map(&mut self, dst: Reg, map: &str) -> &mut Self {
        self.load_symbol(dst, Imm64::Value(0), Reference::Map(map.to_owned()))
    }

    /// Loads the address of byte `off` of the global data of this name into `dst`.
    pub fn load_data(&mut self, dst: Reg, name: &str, off: u32) -> &mut Self {
        self.load_symbol(
            dst,
            Imm64::Value(u64::from(off)),
            Reference::Data(name.to_owned()),
        )
    }

    /// Loads the address of the subprogram of this name into `dst`, for helpers that call back.
    /// Since Linux 5.13.
    pub fn load_function(&mut self, dst: Reg, subprogram: &str) -> &mut Self {
        self.load_symbol(
            dst,
            Imm64::Func(0),
            Reference::Function(subprogram.to_owned()),
        )
    }

    fn load_symbol(&mut self, dst: Reg, imm: Imm64, reference: Reference) -> &mut Self {
        self.push(Insn::LoadImm64 { dst, imm }, None, Some(reference))
    }
}

/// Jumps and calls.
impl Asm {
    /// Jumps to the label.
    pub fn jump(&mut self, label: Label) -> &mut Self {
        self.push(Insn::Jump { off: 0 }, Some(label), None)
    }

    /// Jumps to the label at any distance. Since Linux 6.6.
    pub fn jump_long(&mut self, label: Label) -> &mut Self {
        self.push(Insn::JumpLong { off: 0 }, Some(label), None)
    }

    /// Jumps to the label if `dst op src` at 64 bits.
    pub fn jump_if(
        &mut self,
        dst: Reg,
        op: JumpOp,
        src: impl Into<Src>,
        label: Label,
    ) -> &mut Self {
        self.compare(Width::W64, dst, op, src.into(), label)
    }

    /// Jumps to the label if `dst op src` at 32 bits. Since Linux 5.1.
    pub fn jump_if32(
        &mut self,
        dst: Reg,
        op: JumpOp,
        src: impl Into<Src>,
        label: Label,
    ) -> &mut Self {
        self.compare(Width::W32, dst, op, src.into(), label)
    }

    fn compare(&mut self, width: Width, dst: Reg, op: JumpOp, src: Src, label: Label) -> &mut Self {
        self.push(
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                off: 0,
            },
            Some(label),
            None,
        )
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: Helper) -> &mut Self {
        self.insn(Insn::Call(Callee::Helper(helper)))
    }

    /// Calls a function of the kernel, by its id in the kernel's own BTF. Since Linux 5.13.
    pub fn call_kfunc(&mut self, btf_id: i32) -> &mut Self {
        self.insn(Insn::Call(Callee::Kfunc { btf_id, module: 0 }))
    }

    /// Calls the subprogram of this name. Since Linux 4.16.
    pub fn call_subprogram(&mut self, name: &str) -> &mut Self {
        // The constant that compilers write before an R_BPF_64_32 relocation to a function's own
        // symbol: the loader adds the symbol's slot and one
        // (linux/Documentation/bpf/llvm_reloc.rst).
        let call = Insn::Call(Callee::Subprogram(-1));
        self.push(call, None, Some(Reference::Call(name.to_owned())))
    }

    /// Returns r0.
    pub fn exit(&mut self) -> &mut Self {
        self.insn(Insn::Exit)
    }
}
