//! Places in memory with their types, so that each instruction has the size of its field, and no
//! slots of the stack overlap.
//!
//! The stack of a program is a structure: the compiler gives each slot its offset, and a structure
//! larger than the stack does not compile.
//!
//! ```
//! use bpf_insn::{Asm, Reg::R1};
//! use bpf_program::{Emit as _, slot};
//!
//! #[repr(C)]
//! struct Stack {
//!     saved: u64,
//!     key: u32,
//! }
//!
//! let mut asm = Asm::new();
//! asm.get(R1, slot!(Stack, saved)).put(slot!(Stack, key), R1).ret();
//! let text = bpf_insn::Listing::new(&asm.finish()?).to_string();
//! assert!(text.contains("r1 = *(u64 *)(r10 - 0x10)") && text.contains("*(u32 *)(r10 - 0x8) = w1"));
//! # Ok::<(), bpf_insn::AsmError>(())
//! ```
//!
//! ```compile_fail
//! #[repr(C)]
//! struct Stack {
//!     too_large: [u64; 65],
//! }
//! let place = bpf_program::slot!(Stack, too_large);
//! ```

use std::fmt;
use std::marker::PhantomData;

use bpf_insn::{Addr, Reg, Size};

/// Bytes of a program's stack (`MAX_BPF_STACK` of `include/linux/filter.h`).
const STACK_BYTES: usize = 512;

/// Number that one instruction loads or stores.
pub trait Word {
    /// Size of the access.
    const SIZE: Size;
}

macro_rules! words {
    ($($ty:ty: $size:ident),*) => { $(impl Word for $ty { const SIZE: Size = Size::$size; })* };
}
words!(u8: B, u16: H, u32: W, i32: W, u64: DW, i64: DW);

/// Place of a value of the type `T` in memory: an address in a register, and a distance from it.
pub struct Place<T> {
    addr: Addr,
    ty: PhantomData<fn() -> T>,
}

/// Implements traits as `derive` does, but for every value type.
macro_rules! plain {
    ($type:ident, $field:ident) => {
        impl<T> Clone for $type<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $type<T> {}

        impl<T> PartialEq for $type<T> {
            fn eq(&self, other: &Self) -> bool {
                self.$field == other.$field
            }
        }

        impl<T> Eq for $type<T> {}

        impl<T> fmt::Debug for $type<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.$field.fmt(f)
            }
        }
    };
}
plain!(Place, addr);
plain!(Member, offset);

impl<T> From<Reg> for Place<T> {
    fn from(base: Reg) -> Self {
        Self::new(base.at(0))
    }
}

impl<T> Place<T> {
    /// Returns the place at this address.
    pub const fn new(addr: Addr) -> Self {
        Self {
            addr,
            ty: PhantomData,
        }
    }

    /// Returns the stack of a program, which ends at r10. A stack that is too large does not
    /// compile.
    pub const fn stack() -> Self {
        let size = const {
            let size = size_of::<T>().next_multiple_of(8);
            assert!(
                size <= STACK_BYTES,
                "this stack is larger than the kernel allows"
            );
            crate::wire::in_instruction(size)
        };
        Self::new(Addr {
            base: Reg::R10,
            off: -size,
        })
    }

    /// Returns the address.
    pub const fn addr(self) -> Addr {
        self.addr
    }

    /// Returns the place `bytes` further on, with another type.
    pub const fn plus<P>(self, bytes: i16) -> Place<P> {
        Place::new(Addr {
            base: self.addr.base,
            off: self.addr.off + bytes,
        })
    }

    /// Returns the place of a field, for [`field!`](crate::field); the function determines its
    /// type.
    pub const fn part<P>(self, offset: i16, _: fn(&T) -> &P) -> Place<P> {
        self.plus(offset)
    }
}

impl<T, const N: usize> Place<[T; N]> {
    /// Returns the place of an element.
    ///
    /// # Panics
    /// Panics if the array has no such element.
    pub const fn element(self, index: usize) -> Place<T> {
        assert!(index < N, "no such element");
        self.plus(crate::wire::in_instruction(index * size_of::<T>()))
    }
}

/// Returns the place of the argument `index`, from 0 on, for a program on a tracepoint's arguments.
pub const fn argument(context: Reg, index: i16) -> Place<u64> {
    Place::new(Addr {
        base: context,
        off: index * 8,
    })
}

/// Place of a field in a structure at a register or at a place: `field!(R7, Thread, mark)`.
#[macro_export]
macro_rules! field {
    ($at:expr, $of:ty, $($field:tt)+) => {
        $crate::Place::<$of>::from($at).part($crate::offset!($of, $($field)+), |of: &$of| &of.$($field)+)
    };
}

/// Member of a structure, independent of its place: `member!(Thread, mark)`.
#[macro_export]
macro_rules! member {
    ($of:ty, $field:ident) => {
        $crate::Member::part($crate::offset!($of, $field), |of: &$of| &of.$field)
    };
}

/// Place of a slot in a program's stack, which is a structure: `slot!(Stack, key)`.
#[macro_export]
macro_rules! slot {
    ($stack:ty, $($field:tt)+) => {
        $crate::field!($crate::Place::<$stack>::stack(), $stack, $($field)+)
    };
}

/// Member of a structure of ours, or of the kernel's with the offset from this kernel's types.
pub struct Member<T> {
    offset: i16,
    ty: PhantomData<fn() -> T>,
}

impl<T> Member<T> {
    /// Returns the member at this offset, in bytes.
    pub const fn new(offset: i16) -> Self {
        Self {
            offset,
            ty: PhantomData,
        }
    }

    /// Returns the member of a structure of ours, for [`member!`](crate::member).
    pub const fn part<S>(offset: i16, _: fn(&S) -> &T) -> Self {
        Self::new(offset)
    }

    /// Returns the member's place in the structure at an address.
    pub const fn at(self, base: Reg) -> Place<T> {
        Place::new(Addr {
            base,
            off: self.offset,
        })
    }

    /// Returns the offset in bytes.
    pub const fn offset(self) -> i16 {
        self.offset
    }
}
