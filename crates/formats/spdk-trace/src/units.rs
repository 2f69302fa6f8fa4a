//! The units that other crates see, each as its own type, so that a tick cannot be added to an
//! offset.

use std::fmt;

/// A time or a span, in ticks of the traced machine's time stamp counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// SPDK's number of the CPU, or the user thread's slot, that wrote a history (0 to 1,023).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lcore(pub u16);

/// A position in a trace file, in bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileOffset(pub u64);

impl fmt::Display for Lcore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for FileOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Formats microseconds with three decimals.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Ticks per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRate(u64);

/// A span in thousandths of a microsecond, rounded as it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl TickRate {
    /// Creates a rate in ticks per second; `None` for zero.
    pub const fn new(ticks_per_second: u64) -> Option<Self> {
        if ticks_per_second == 0 {
            None
        } else {
            Some(Self(ticks_per_second))
        }
    }

    /// Returns the rate at which one tick is one microsecond, for files without a rate.
    pub const fn ticks_as_micros() -> Self {
        Self(1_000_000)
    }

    /// Returns the ticks per second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Converts nanoseconds to ticks, rounded down; saturates at the maximum of [`Ticks`].
    pub fn ticks(self, nanos: u64) -> Ticks {
        let ticks = u128::from(nanos) * u128::from(self.0) / 1_000_000_000;
        Ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// Converts a span to microseconds with three decimals, as the SPDK annotation script prints
    /// it.
    ///
    /// The script divides two integers into the nearest double and rounds that to three decimals,
    /// half to even. Next to a tie the double may lie on the other side of it than the true
    /// quotient, and the script's digit follows the double. This function always returns the
    /// script's digit, and needs the double only next to a tie.
    pub fn nanos(self, span: Ticks) -> Nanos {
        const BILLION: u64 = 1_000_000_000;
        let (seconds, rest) = (span.0 / self.0, span.0 % self.0);
        let Some(scaled) = rest.checked_mul(BILLION) else {
            return self.nanos_by_double(span);
        };
        let Some(whole) = seconds
            .checked_mul(BILLION)
            .and_then(|s| s.checked_add(scaled / self.0))
        else {
            return self.nanos_by_double(span);
        };
        let remainder = u128::from(scaled % self.0);
        // In units of 1/(2*rate): the distance of the quotient from the tie, and the maximum error
        // of the double (a double has 53 bits, so it is off by at most the value divided by 2^53).
        let from_tie = (2 * remainder).abs_diff(u128::from(self.0));
        let doubt = (u128::from(self.0) * (u128::from(whole) + 1)) >> 52;
        if from_tie <= doubt + 1 {
            return self.nanos_by_double(span);
        }
        Nanos(whole + u64::from(2 * remainder > u128::from(self.0)))
    }

    /// Rounds the nearest double of the quotient half to even, in integers.
    fn nanos_by_double(self, span: Ticks) -> Nanos {
        let (mantissa, exponent) =
            nearest_double(u128::from(span.0) * 1_000_000, u128::from(self.0));
        let thousandths = mantissa * 1000;
        if exponent >= 0 {
            let shifted = thousandths
                .checked_shl(exponent.unsigned_abs())
                .unwrap_or(u128::MAX);
            return Nanos(u64::try_from(shifted).unwrap_or(u64::MAX));
        }
        Nanos(
            u64::try_from(shift_half_even(thousandths, exponent.unsigned_abs()))
                .unwrap_or(u64::MAX),
        )
    }
}

/// Returns the double nearest to `numerator / denominator`, as (mantissa of at most 53 bits, power
/// of two). `numerator` is below 2^84 and `denominator` below 2^64, so a shift to the left keeps 63
/// bits of quotient.
fn nearest_double(numerator: u128, denominator: u128) -> (u128, i32) {
    if numerator == 0 {
        return (0, 0);
    }
    let lead = numerator.leading_zeros();
    let shifted = numerator << lead;
    // The lowest bit is set if there is a remainder, which is all that rounding needs of it.
    let quotient = (shifted / denominator) | u128::from(!shifted.is_multiple_of(denominator));
    let drop = (128 - quotient.leading_zeros()).saturating_sub(53);
    (
        shift_half_even(quotient, drop),
        drop.cast_signed() - lead.cast_signed(),
    )
}

/// Returns `value / 2^shift`, rounded half to even.
fn shift_half_even(value: u128, shift: u32) -> u128 {
    if shift == 0 {
        return value;
    }
    if shift >= 128 {
        return 0;
    }
    let (kept, dropped) = (value >> shift, value & ((1 << shift) - 1));
    let half = 1 << (shift - 1);
    kept + u128::from(dropped > half || (dropped == half && kept & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rate: u64, span: u64) -> String {
        TickRate::new(rate).unwrap().nanos(Ticks(span)).to_string()
    }

    /// Compares with Python's `f"{span * 10**6 / rate:.3f}"`; a naive implementation differs at the
    /// ties.
    #[test]
    fn same_digits_as_python() {
        for (rate, span, python) in [
            (2_600_000_000, 0, "0.000"),
            (2_600_000_000, 9698, "3.730"),
            (2_600_000_000, 54_308_000_000, "20887692.308"),
            (2_000_000_000, 1, "0.001"),
            (2_000_000_000, 3, "0.002"),
            (2_000_000_000, 5, "0.003"),
            (2_000_000_000, 9, "0.004"),
            (2_000_000_000, 17, "0.009"),
            (16_000_000_000, 1000, "0.062"),
            (16_000_000_000, 3000, "0.188"),
        ] {
            assert_eq!(text(rate, span), python, "{span} ticks at {rate}/s");
        }
    }

    #[test]
    fn zero_is_no_rate() {
        assert_eq!(TickRate::new(0), None);
    }
}
