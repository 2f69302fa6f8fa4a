//! The layout of C structs: sizes and alignments in, offsets out.
//!
//! Rules from the System V ABI's AMD64 supplement, 3.1.2 ("Aggregates and Unions", "Bit-Fields"), and from the AAPCS64,
//! sections 5.9 ("Composite types") and 10.1.8 ("Bit-fields"); attributes as GCC's manual describes them.

use uapi::Arch;

/// Returns true if bit-fields without a name align their struct: AAPCS64 10.1.8 counts them, the
/// AMD64 supplement says that they do not affect it.
fn unnamed_bits_align(abi: Arch) -> bool {
    abi == Arch::Aarch64
}

/// Limit on the size of a struct, in bytes: Linux has no larger address space for a process.
pub const MAX_SIZE: u64 = 1 << 47;

/// A member, as the layout engine needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Size of the type in bytes; 0 for a flexible array.
    pub size: u64,
    /// Alignment of the type in bytes, a power of two.
    pub align: u64,
    /// Width of a bit-field in bits. A width of 0 begins a new unit of this type.
    pub bits: Option<u32>,
    /// True if the member has a name; only matters for bit-fields.
    pub named: bool,
    /// Requested minimum alignment in bytes, also in a packed struct.
    pub at_least: Option<u64>,
}

/// Layout of a struct or union.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Offset of each item, in bits from the beginning.
    pub bit_offsets: Vec<u64>,
}

/// Lays out a struct or union. `None` if it is larger than [`MAX_SIZE`], or an alignment is not a
/// power of two.
pub fn lay_out(
    abi: Arch,
    union: bool,
    packed: bool,
    at_least: Option<u64>,
    items: &[Item],
) -> Option<Layout> {
    let mut state = State {
        abi,
        packed,
        next: 0,
        align: power(at_least.unwrap_or(1))?,
    };
    let (mut bit_offsets, mut end) = (Vec::with_capacity(items.len()), 0);
    for item in items {
        if union {
            state.next = 0;
        }
        bit_offsets.push(state.place(item)?);
        end = state.next.max(end);
    }
    let size = end.div_ceil(8).checked_next_multiple_of(state.align)?;
    (size <= MAX_SIZE).then_some(Layout {
        size,
        align: state.align,
        bit_offsets,
    })
}

/// Returns the number if it can be an alignment.
fn power(align: u64) -> Option<u64> {
    (align.is_power_of_two() && align <= MAX_SIZE).then_some(align)
}

struct State {
    abi: Arch,
    packed: bool,
    /// First free bit.
    next: u64,
    /// Alignment of the whole so far, in bytes.
    align: u64,
}

impl State {
    /// Finds a place for the next member; returns its first bit.
    fn place(&mut self, item: &Item) -> Option<u64> {
        let asked = power(item.at_least.unwrap_or(1))?;
        let natural = power(item.align)?;
        let align = if self.packed {
            asked
        } else {
            natural.max(asked)
        };
        let at = match item.bits {
            None => self.next.checked_next_multiple_of(align.checked_mul(8)?)?,
            Some(bits) => self.place_bits(item, bits, natural, asked)?,
        };
        let counts = item.bits.is_none() || item.named || unnamed_bits_align(self.abi);
        if counts {
            // A zero-width bit-field aligns the struct by its type even in a packed struct (AAPCS64
            // only: on x86-64 it has no name and does not count).
            let whole = if item.bits == Some(0) {
                natural.max(asked)
            } else {
                align
            };
            self.align = self.align.max(whole);
        }
        let bits = item
            .bits
            .map_or_else(|| item.size.checked_mul(8), |bits| Some(bits.into()))?;
        self.next = at.checked_add(bits)?;
        (self.next <= MAX_SIZE * 8).then_some(at)
    }

    /// Finds a place for a bit-field, which stays within one unit of its type and shares that unit
    /// with its neighbours.
    fn place_bits(&self, item: &Item, bits: u32, natural: u64, asked: u64) -> Option<u64> {
        let unit = natural.checked_mul(8)?;
        if bits == 0 {
            return self
                .next
                .checked_next_multiple_of(unit.max(asked.checked_mul(8)?));
        }
        let at = if asked > 1 {
            self.next.checked_next_multiple_of(asked.checked_mul(8)?)?
        } else {
            self.next
        };
        if self.packed {
            return Some(at);
        }
        let crosses = at % unit + u64::from(bits) > item.size.checked_mul(8)?;
        if crosses {
            at.checked_next_multiple_of(unit)
        } else {
            Some(at)
        }
    }
}
