//! Statements over the assembler: values of typed places, conditions with bodies, maps.
//!
//! A statement has as many instructions as it would have by hand. Calls lose r0 to r5; other
//! statements keep all registers that they do not name.

use bpf_insn::Reg::{R0, R1, R2, R3, R4};
use bpf_insn::{Asm, AsmError, AtomicOp, Code, Helper, JumpOp, Label, Reg, Size, Src, Width};

use crate::place::{Place, Word};

/// Makes a program of one body. The label leads to its end, which returns 0.
///
/// # Errors
/// Returns the assembler's error if the body is wrong.
pub fn program(body: impl FnOnce(&mut Asm, Label)) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let end = asm.label("end");
    body(&mut asm, end);
    asm.bind(end).ret();
    asm.finish()
}

/// Returns the comparison that holds if `op` does not, if there is one.
fn inverse(op: JumpOp) -> Option<JumpOp> {
    Some(match op {
        JumpOp::Eq => JumpOp::Ne,
        JumpOp::Ne => JumpOp::Eq,
        JumpOp::Gt => JumpOp::Le,
        JumpOp::Le => JumpOp::Gt,
        JumpOp::Ge => JumpOp::Lt,
        JumpOp::Lt => JumpOp::Ge,
        JumpOp::SGt => JumpOp::SLe,
        JumpOp::SLe => JumpOp::SGt,
        JumpOp::SGe => JumpOp::SLt,
        JumpOp::SLt => JumpOp::SGe,
        JumpOp::Set => return None,
    })
}

/// Returns the offsets and sizes of a value's words, from its start.
fn words<T>() -> impl Iterator<Item = (i16, Size)> {
    let bytes = const { crate::wire::in_instruction(size_of::<T>()) };
    let size = match bytes {
        1 => Size::B,
        2 => Size::H,
        4 => Size::W,
        _ => Size::DW,
    };
    (0..bytes)
        .step_by(usize::from(size.bytes()))
        .map(move |at| (at, size))
}

/// Statements of a program.
pub trait Emit {
    /// Returns the assembler.
    fn asm(&mut self) -> &mut Asm;

    /// Loads the value at the place into `to`.
    fn get<T: Word>(&mut self, to: Reg, from: Place<T>) -> &mut Asm {
        self.asm().load(T::SIZE, to, from.addr())
    }

    /// Stores `value` at the place.
    fn put<T: Word>(&mut self, to: Place<T>, value: impl Into<Src>) -> &mut Asm {
        self.asm().store(T::SIZE, to.addr(), value)
    }

    /// Copies a value of any size via r1: only a word can be copied from a place at r1.
    fn copy<T>(&mut self, from: Place<T>, to: Place<T>) -> &mut Asm {
        let is_word = words::<T>().count() == 1;
        debug_assert!(
            to.addr().base != R1 && (is_word || from.addr().base != R1),
            "r1 is lost"
        );
        let asm = self.asm();
        for (at, size) in words::<T>() {
            let (from, to) = (from.plus::<()>(at).addr(), to.plus::<()>(at).addr());
            asm.load(size, R1, from).store(size, to, R1);
        }
        asm
    }

    /// Stores 0 in all bytes of a value of any size.
    fn clear<T>(&mut self, place: Place<T>) -> &mut Asm {
        let asm = self.asm();
        for (at, size) in words::<T>() {
            asm.store(size, place.plus::<()>(at).addr(), 0);
        }
        asm
    }

    /// Sets `to` to the address of the place.
    fn address<T>(&mut self, to: Reg, of: Place<T>) -> &mut Asm {
        let (base, off) = (of.addr().base, of.addr().off);
        self.asm().mov(to, base).add(to, off)
    }

    /// Adds to the value at the place, not atomically. `via` becomes the new value.
    fn increase<T: Word>(&mut self, place: Place<T>, via: Reg, by: impl Into<Src>) -> &mut Asm {
        self.asm().get(via, place).add(via, by).put(place, via)
    }

    /// Adds to the value at the place atomically, via `via`.
    fn add_atomic(&mut self, place: Place<u64>, via: Reg, by: impl Into<Src>) -> &mut Asm {
        self.asm()
            .mov(via, by)
            .atomic(AtomicOp::Add, Width::W64, place.addr(), via)
    }

    /// Exchanges `value` with the value at the place: atomically, or via r0 if the kernel has no
    /// instruction for that (before Linux 5.12). Then an interrupt may come in between.
    fn exchange(&mut self, value: Reg, place: Place<u64>, in_one_step: bool) -> &mut Asm {
        let asm = self.asm();
        if in_one_step {
            return asm.atomic(AtomicOp::Xchg, Width::W64, place.addr(), value);
        }
        asm.mov(R0, value).get(value, place).put(place, R0)
    }

    /// Emits the output of `f`, to be run if `a op b`.
    fn if_(&mut self, a: Reg, op: JumpOp, b: impl Into<Src>, f: impl FnOnce(&mut Asm)) -> &mut Asm {
        let asm = self.asm();
        if let Some(op) = inverse(op) {
            return asm.unless(a, op, b, f);
        }
        let (then, over) = (asm.label("then"), asm.label("over"));
        asm.jump_if(a, op, b, then).jump(over).bind(then);
        f(asm);
        asm.bind(over)
    }

    /// Emits the output of `f`, to be run unless `a op b`.
    fn unless(
        &mut self,
        a: Reg,
        op: JumpOp,
        b: impl Into<Src>,
        f: impl FnOnce(&mut Asm),
    ) -> &mut Asm {
        let asm = self.asm();
        let over = asm.label("over");
        asm.jump_if(a, op, b, over);
        f(asm);
        asm.bind(over)
    }

    /// Limits `reg` to at most `most`, unsigned.
    fn at_most(&mut self, reg: Reg, most: impl Into<Src>) -> &mut Asm {
        let most = most.into();
        self.asm()
            .unless(reg, JumpOp::Le, most, |asm| _ = asm.mov(reg, most))
    }

    /// Limits `reg` to at least `least`, unsigned.
    fn at_least(&mut self, reg: Reg, least: impl Into<Src>) -> &mut Asm {
        let least = least.into();
        self.asm()
            .unless(reg, JumpOp::Ge, least, |asm| _ = asm.mov(reg, least))
    }

    /// Sets r0 to the address of the map's value for the key, or to 0.
    fn lookup<K>(&mut self, map: &str, key: Place<K>) -> &mut Asm {
        self.asm()
            .load_map(R1, map)
            .address(R2, key)
            .call(Helper::MAP_LOOKUP_ELEM)
    }

    /// Sets r0 to the address of the map's value for the key; goes to `missing` if there is no such
    /// key.
    fn lookup_or<K>(&mut self, map: &str, key: Place<K>, missing: Label) -> &mut Asm {
        self.asm()
            .lookup(map, key)
            .jump_if(R0, JumpOp::Eq, 0, missing)
    }

    /// Inserts a value with these flags. r0 is 0 on success.
    fn update<K, V>(&mut self, map: &str, key: Place<K>, value: Place<V>, flags: u32) -> &mut Asm {
        let asm = self.asm();
        asm.load_map(R1, map).address(R2, key).address(R3, value);
        asm.mov(R4, flags).call(Helper::MAP_UPDATE_ELEM)
    }

    /// Sets r0 to the address of the map's value for the key. A missing key is inserted with a
    /// `new` value of 0 and these flags; goes to `full` if there is no room.
    fn entry<K, V>(
        &mut self,
        map: &str,
        key: Place<K>,
        new: Place<V>,
        flags: u32,
        full: Label,
    ) -> &mut Asm {
        self.asm().lookup(map, key).if_(R0, JumpOp::Eq, 0, |asm| {
            // An interrupt may have inserted the same key meanwhile: look it up again.
            asm.clear(new)
                .update(map, key, new, flags)
                .lookup_or(map, key, full);
        })
    }

    /// Removes a key.
    fn delete<K>(&mut self, map: &str, key: Place<K>) -> &mut Asm {
        self.asm()
            .load_map(R1, map)
            .address(R2, key)
            .call(Helper::MAP_DELETE_ELEM)
    }

    /// Sets `to` to the time of the monotonic clock, in nanoseconds.
    fn now(&mut self, to: Reg) -> &mut Asm {
        self.asm()
            .comment("when")
            .call(Helper::KTIME_GET_NS)
            .mov(to, R0)
    }

    /// Writes the name of the current task to the place.
    fn current_name(&mut self, to: Place<[u8; 16]>) -> &mut Asm {
        self.asm()
            .address(R1, to)
            .mov(R2, 16)
            .call(Helper::GET_CURRENT_COMM)
    }

    /// Keeps the lower 32 bits of `reg`.
    fn low_half(&mut self, reg: Reg) -> &mut Asm {
        self.asm().lsh(reg, 32).rsh(reg, 32)
    }

    /// Sets `to` to the logarithm to base 2 of `value`, 0 for 0. `value` and `scratch` are lost.
    fn logarithm(&mut self, to: Reg, value: Reg, scratch: Reg) -> &mut Asm {
        let asm = self.asm();
        asm.comment("the logarithm").mov(to, 0);
        for bits in [32, 16, 8, 4, 2, 1] {
            asm.mov(scratch, value)
                .rsh(scratch, bits)
                .unless(scratch, JumpOp::Eq, 0, |asm| {
                    asm.mov(value, scratch).add(to, bits);
                });
        }
        asm
    }

    /// Returns 0.
    fn ret(&mut self) -> &mut Asm {
        self.asm().mov(R0, 0).exit()
    }
}

impl Emit for Asm {
    fn asm(&mut self) -> &mut Asm {
        self
    }
}

#[cfg(test)]
mod tests {
    use bpf_insn::Listing;
    use bpf_insn::Reg::{R3, R6};

    use super::*;
    use crate::{field, slot};

    #[repr(C)]
    struct Key {
        id: u64,
        cpu: u32,
        kind: u32,
    }

    #[repr(C)]
    struct Stack {
        name: [u8; 16],
        key: Key,
        small: u16,
    }

    fn listing(body: impl FnOnce(&mut Asm)) -> Vec<String> {
        let code = program(|asm, _| body(asm)).unwrap();
        let text = Listing::new(&code).to_string();
        let line = |line: &str| {
            Some(
                line.split_once(": ")?
                    .1
                    .split(';')
                    .next()?
                    .trim()
                    .to_owned(),
            )
        };
        text.lines().filter_map(line).collect()
    }

    #[test]
    fn an_access_has_the_size_of_its_field() {
        let key = field!(R6, Key, kind);
        let first = |body: fn(&mut Asm)| listing(body).swap_remove(0);
        assert_eq!(
            listing(|asm| _ = asm.get(R1, key))[0],
            "w1 = *(u32 *)(r6 + 0xc)"
        );
        assert_eq!(
            first(|asm| _ = asm.put(slot!(Stack, small), R1)),
            "*(u16 *)(r10 - 0x8) = w1"
        );
        assert_eq!(
            listing(|asm| _ = asm.copy(slot!(Stack, name), R6.into())).len(),
            4 + 2
        );
        assert_eq!(
            first(|asm| _ = asm.clear(slot!(Stack, key.cpu))),
            "*(u32 *)(r10 - 0x10) = 0x0"
        );
    }

    #[test]
    fn slots_do_not_overlap() {
        let (name, key) = (slot!(Stack, name).addr(), slot!(Stack, key).addr());
        let at = [name.off, key.off, slot!(Stack, small).addr().off];
        assert_eq!(at, [-40, -24, -8]);
    }

    #[test]
    fn conditions_skip_their_bodies() {
        let body = |asm: &mut Asm| _ = asm.mov(R3, 1);
        let lines = listing(|asm| _ = asm.if_(R1, JumpOp::Gt, 5, body));
        assert_eq!(lines[..2], ["if r1 <= 0x5 goto +0x1 <over>", "r3 = 0x1"]);
        // No comparison holds if no bit is set.
        let lines = listing(|asm| _ = asm.if_(R1, JumpOp::Set, 4, body));
        assert_eq!(
            lines[..3],
            [
                "if r1 & 0x4 goto +0x1 <then>",
                "goto +0x1 <over>",
                "r3 = 0x1"
            ]
        );
    }
}
