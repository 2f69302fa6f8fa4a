//! The layout of C structs: sizes and alignments in, offsets out.
//!
//! Rules from the System V ABI's AMD64 supplement, 3.1.2 ("Aggregates and Unions", "Bit-Fields"), and from the AAPCS64,
//! sections 5.9 ("Composite types") and 10.1.8 ("Bit-fields"); attributes as GCC's manual describes them.

use uapi::Arch;

/// Whether bit-fields without a name align the struct that they are in: AAPCS64 10.1.8 counts them, the AMD64 supplement
/// says that they do not affect it.
fn unnamed_bits_align(abi: Arch) -> bool {
    abi == Arch::Aarch64
}

/// The largest struct that is laid out: Linux has no larger address space for a process.
pub const MAX_SIZE: u64 = 1 << 47;

/// What the layout needs to know of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Its type's size in bytes; 0 for a flexible array.
    pub size: u64,
    /// Its type's alignment in bytes, a power of two.
    pub align: u64,
    /// How many bits, of a bit-field. None of 0 bits means: begin a new unit of this type.
    pub bits: Option<u32>,
    /// Whether it has a name, or is an anonymous struct.
    pub named: bool,
    /// A requested alignment: at least this number of bytes, also in a packed struct.
    pub at_least: Option<u64>,
}

/// Where everything is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// In bytes.
    pub size: u64,
    /// In bytes.
    pub align: u64,
    /// Of each item, in bits from the beginning.
    pub bit_offsets: Vec<u64>,
}

/// Lays out a struct or union. None if it is larger than [`MAX_SIZE`], or an alignment is not a power of two.
pub fn lay_out(abi: Arch, union: bool, packed: bool, at_least: Option<u64>, items: &[Item]) -> Option<Layout> {
    let mut state = State { abi, packed, next: 0, align: power(at_least.unwrap_or(1))? };
    let (mut bit_offsets, mut end) = (Vec::with_capacity(items.len()), 0);
    for item in items {
        if union {
            state.next = 0;
        }
        bit_offsets.push(state.place(item)?);
        end = state.next.max(end);
    }
    let size = end.div_ceil(8).checked_next_multiple_of(state.align)?;
    (size <= MAX_SIZE).then_some(Layout { size, align: state.align, bit_offsets })
}

/// The number, if it can be an alignment.
fn power(align: u64) -> Option<u64> {
    (align.is_power_of_two() && align <= MAX_SIZE).then_some(align)
}

struct State {
    abi: Arch,
    packed: bool,
    /// The first bit that is free.
    next: u64,
    /// Of the whole, so far.
    align: u64,
}

impl State {
    /// Finds a place for the next member, and returns its first bit.
    fn place(&mut self, item: &Item) -> Option<u64> {
        let asked = power(item.at_least.unwrap_or(1))?;
        let natural = power(item.align)?;
        let align = if self.packed { asked } else { natural.max(asked) };
        let at = match item.bits {
            None => self.next.checked_next_multiple_of(align.checked_mul(8)?)?,
            Some(bits) => self.place_bits(item, bits, natural, asked)?,
        };
        let counts = item.bits.is_none() || item.named || unnamed_bits_align(self.abi);
        if counts {
            // A bit-field of no bits aligns the struct by its type even where all else is packed (AAPCS64 only: on
            // x86-64 it has no name and does not count).
            let whole = if item.bits == Some(0) { natural.max(asked) } else { align };
            self.align = self.align.max(whole);
        }
        let bits = item.bits.map_or_else(|| item.size.checked_mul(8), |bits| Some(bits.into()))?;
        self.next = at.checked_add(bits)?;
        (self.next <= MAX_SIZE * 8).then_some(at)
    }

    /// A bit-field stays within one unit of its type, and shares that unit with whatever is there.
    fn place_bits(&self, item: &Item, bits: u32, natural: u64, asked: u64) -> Option<u64> {
        let unit = natural.checked_mul(8)?;
        if bits == 0 {
            return self.next.checked_next_multiple_of(unit.max(asked.checked_mul(8)?));
        }
        let at = if asked > 1 { self.next.checked_next_multiple_of(asked.checked_mul(8)?)? } else { self.next };
        if self.packed {
            return Some(at);
        }
        let crosses = at % unit + u64::from(bits) > item.size.checked_mul(8)?;
        if crosses { at.checked_next_multiple_of(unit) } else { Some(at) }
    }
}
