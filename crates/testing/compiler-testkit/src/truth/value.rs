//! Numbers and operators: the language's rules, implemented a second time, on numbers of unlimited
//! width.
//!
//! The rules are those of bpftrace 0.26's manual ("Integers", "Arithmetic Operators"): operations
//! use 64 bits, signed if either side is, and a difference is always signed. Cases that the manual
//! leaves undefined (division and right shift of negative numbers) follow C. A shift distance
//! counts by its low six bits, as on the machine.

/// Type of an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IntTy {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

pub(crate) const I64: IntTy = IntTy {
    bits: 64,
    signed: true,
};
pub(crate) const U64: IntTy = IntTy {
    bits: 64,
    signed: false,
};

impl IntTy {
    pub(crate) const ALL: [Self; 8] = {
        const fn int_ty(bits: u32, signed: bool) -> IntTy {
            IntTy { bits, signed }
        }
        [
            int_ty(8, false),
            int_ty(16, false),
            int_ty(32, false),
            U64,
            int_ty(8, true),
            int_ty(16, true),
            int_ty(32, true),
            I64,
        ]
    };

    pub(crate) fn name(self) -> String {
        format!("{}int{}", if self.signed { "" } else { "u" }, self.bits)
    }

    /// Returns the number of this type with the same low bits.
    pub(crate) fn wrap(self, number: i128) -> i128 {
        let whole = 1_i128 << self.bits;
        let low = number.rem_euclid(whole);
        if self.signed && low >= whole / 2 {
            low - whole
        } else {
            low
        }
    }

    fn holds(self, number: i128) -> bool {
        self.wrap(number) == number
    }

    /// Returns the smallest type that holds a literal.
    pub(crate) fn for_literal(number: i128) -> Self {
        let signed = number < 0;
        let fits = |bits: &u32| {
            Self {
                bits: *bits,
                signed,
            }
            .holds(number)
        };
        Self {
            bits: [8, 16, 32].into_iter().find(fits).unwrap_or(64),
            signed,
        }
    }

    /// Returns the type for a value of either type.
    fn join(self, other: Self) -> Self {
        if self.signed == other.signed {
            return Self {
                bits: self.bits.max(other.bits),
                ..self
            };
        }
        let (signed, unsigned) = if self.signed {
            (self, other)
        } else {
            (other, self)
        };
        Self {
            bits: signed.bits.max(unsigned.bits * 2).min(64),
            signed: true,
        }
    }
}

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) number: i128,
    /// Type; `None` for a boolean.
    pub(crate) ty: Option<IntTy>,
}

impl Value {
    pub(crate) fn int(number: i128, ty: IntTy) -> Self {
        Self {
            number: ty.wrap(number),
            ty: Some(ty),
        }
    }

    pub(crate) fn truth(is: bool) -> Self {
        Self {
            number: i128::from(is),
            ty: None,
        }
    }

    pub(crate) fn is_true(self) -> bool {
        self.number != 0
    }

    fn signed(self) -> bool {
        self.ty.is_some_and(|ty| ty.signed)
    }

    /// Returns the type of a choice between this value and another; `None` for booleans.
    pub(crate) fn joined(self, other: Self) -> Option<IntTy> {
        match (self.ty, other.ty) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (one, other) => one.or(other),
        }
    }

    pub(crate) fn shown(self) -> String {
        if self.ty.is_none() {
            self.is_true().to_string()
        } else {
            self.number.to_string()
        }
    }
}

/// The operators on two numbers.
pub(crate) const OPERATORS: [&str; 16] = [
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=",
];

/// Applies an operator to two numbers.
pub(crate) fn binary(op: &str, left: Value, right: Value) -> Value {
    let signed = left.signed() || right.signed() || op == "-";
    // Both sides as numbers of one 64-bit type.
    let ty = IntTy { bits: 64, signed };
    let (l, r) = (ty.wrap(left.number), ty.wrap(right.number));
    let own = IntTy {
        bits: 64,
        signed: left.signed(),
    };
    let distance = U64.wrap(right.number) % 64;
    match op {
        "+" => Value::int(l + r, ty),
        "-" => Value::int(l - r, ty),
        "*" => Value::int(l.wrapping_mul(r), ty),
        "/" | "%" if r == 0 => Value::int(1, ty),
        "/" => Value::int(l / r, ty),
        "%" => Value::int(l % r, ty),
        "&" => Value::int(l & r, ty),
        "|" => Value::int(l | r, ty),
        "^" => Value::int(l ^ r, ty),
        "<<" => Value::int(own.wrap(left.number) << distance, own),
        ">>" => Value::int(own.wrap(left.number) >> distance, own),
        "==" => Value::truth(l == r),
        "!=" => Value::truth(l != r),
        "<" => Value::truth(l < r),
        "<=" => Value::truth(l <= r),
        ">" => Value::truth(l > r),
        ">=" => Value::truth(l >= r),
        _ => unreachable!("{op}"),
    }
}

/// Applies `-` or `~`. The result of `~` on a literal is unsigned.
pub(crate) fn unary(op: &str, value: Value, known: bool) -> Value {
    match op {
        "-" if known => {
            let number = I64.wrap(-value.number);
            let smallest = [8, 16, 32]
                .into_iter()
                .map(|bits| IntTy { bits, signed: true });
            Value::int(
                number,
                smallest
                    .into_iter()
                    .find(|ty| ty.holds(number))
                    .unwrap_or(I64),
            )
        }
        "-" => Value::int(-value.number, I64),
        "~" if known => Value::int(!value.number, U64),
        _ => Value::int(
            !value.number,
            IntTy {
                bits: 64,
                signed: value.signed(),
            },
        ),
    }
}
