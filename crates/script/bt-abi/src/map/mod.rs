//! The maps of a script, and the layout of their values in the kernel's.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::value::ValueType;

/// A map of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptMap {
    /// Name in the script, with its `@`.
    pub name: String,
    /// Name of the kernel map in the [`Module`](bpf_program::Module).
    pub bpf_name: String,
    /// Type of the key: a [`ValueType::Tuple`] for several, [`ValueType::None`] for none (then the
    /// kernel's key is a `u64` 0).
    pub key: ValueType,
    /// Length of the kernel map's key in bytes; the bytes behind the key's own are 0.
    pub key_size: u32,
    /// Type of the values.
    pub value: MapValue,
    /// True if each CPU has its own value; the values are merged as described at [`MapValue`].
    pub per_cpu: bool,
    /// Map of its keys, if it has one.
    pub key_table: Option<KeyTable>,
}

/// A kernel map beside a per-CPU one that has each of its keys, and for each a value that all CPUs
/// share. Its memory is allocated when it is created, so that a key finds room until the map is
/// full; the kernel can't allocate memory for the per-CPU values everywhere (not if interrupts are
/// off). The value here counts as that of one more CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyTable {
    /// Name of the kernel map in the [`Module`](bpf_program::Module).
    pub bpf_name: String,
    /// Number of bytes before the value: a [`Lock`] if the value
    /// [`takes_steps`](Aggregation::takes_steps).
    pub value_offset: u32,
}

/// Bytes of a number in a map.
const WORD: u32 = size_of::<u64>() as u32;

/// Key of a map that the script uses without keys: 0.
pub type NoKey = u64;

/// Key of [`Script::followed`](super::Script::followed): a process.
pub type FollowedProcess = u64;
/// Value of each process in that map.
pub const IS_FOLLOWED: u64 = 1;

/// Lock before a value that all CPUs share and that changes in several steps.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Lock {
    /// 1 while a program changes the value.
    pub taken: u64,
}

/// A CPU's value of `min` and `max`. The extreme of all CPUs is taken over those that are set.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Extreme {
    /// The least or the greatest number; an `i64` if numbers are signed.
    pub value: u64,
    /// 1 once there was a number, 0 before.
    pub is_set: u64,
}

/// A CPU's value of `avg` and `stats`. The values of all CPUs are added.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Average {
    /// Sum of all numbers, which wraps; an `i64` if numbers are signed.
    pub total: u64,
    /// Count of the numbers.
    pub count: u64,
}

/// A slot of a CPU's time series. Epoch N is in slot `N % buckets`.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SeriesSlot {
    /// Combined values of the epoch, by [`SeriesOp`]; an `i64` if they are signed.
    pub value: u64,
    /// Additional number of [`SeriesOp`]. The slot is empty while this is 0: the epoch can't show
    /// that, since it begins at 0 itself.
    pub meta: u64,
    /// Number of the epoch: `CLOCK_BOOTTIME / interval`.
    pub epoch: u64,
}

/// Type of a map's values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MapValue {
    /// One value.
    Scalar(ValueType),
    /// Result of an aggregation, on each CPU for itself.
    Aggregation(Aggregation),
}

/// Functions with which a map gathers numbers, and the rules that combine the values of all CPUs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Aggregation {
    /// `count()`: a `u64`. The counts of all CPUs are added.
    Count,
    /// `sum(n)`: a `u64`, or an `i64` if it is signed. The sums of all CPUs are added.
    Sum {
        /// True if it can be negative.
        signed: bool,
    },
    /// `min(n)`: an [`Extreme`].
    Min {
        /// True if it can be negative.
        signed: bool,
    },
    /// `max(n)`: an [`Extreme`].
    Max {
        /// True if it can be negative.
        signed: bool,
    },
    /// `avg(n)`: an [`Average`]. The quotient is printed.
    Avg {
        /// True if it can be negative.
        signed: bool,
    },
    /// `stats(n)`: an [`Average`]. Count, average and total are printed.
    Stats {
        /// True if it can be negative.
        signed: bool,
    },
    /// `hist(n, bits)`: [`hist_buckets`] counts of `u64`. The counts of all CPUs are added bucket
    /// by bucket. [`hist_bucket`] gives the first number of a bucket.
    Hist {
        /// Bits of precision of a power of two: it is cut into `2^bits` buckets.
        bits: u8,
    },
    /// `lhist(n, min, max, step)`: [`lhist_buckets`] counts of `u64`: first that of the numbers
    /// below `min`, then one for each step, then that of the numbers from `max` on.
    Lhist {
        /// Beginning of the first bucket.
        min: i64,
        /// End of the last bucket.
        max: i64,
        /// Width of a bucket.
        step: u64,
    },
    /// `tseries(n, interval, buckets, op)`: a [`SeriesSlot`] for each of `buckets`. The slots of
    /// all CPUs for one epoch are combined by [`SeriesOp`]. The last `buckets` epochs up to the
    /// newest are printed.
    Series {
        /// Nanoseconds of a bucket.
        interval: u64,
        /// Number of buckets.
        buckets: u32,
        /// Rule that combines the values of one bucket.
        op: SeriesOp,
        /// True if values can be negative.
        signed: bool,
    },
}

/// Rule that combines the values of one bucket of a time series.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SeriesOp {
    /// The latest value: meta is its time of `CLOCK_BOOTTIME` plus one, since a clock may be at 0.
    Last,
    /// The sum: meta is the count of the values.
    Sum,
    /// The least value; meta is the count of the values.
    Min,
    /// The greatest value; meta is the count of the values.
    Max,
    /// The sum divided by meta.
    Avg,
}

impl MapValue {
    /// Returns the size of a value in bytes; for an aggregation that of one CPU.
    pub fn size(&self) -> u32 {
        match self {
            // The kernel refuses values of no bytes.
            Self::Scalar(ty) => ty.size().next_multiple_of(WORD).max(WORD),
            Self::Aggregation(aggregation) => aggregation.size(),
        }
    }

    /// Returns true if it is an aggregation that [takes steps](Aggregation::takes_steps). A single
    /// value is written at once.
    pub fn takes_steps(&self) -> bool {
        matches!(self, Self::Aggregation(aggregation) if aggregation.takes_steps())
    }
}

impl From<Aggregation> for MapValue {
    fn from(aggregation: Aggregation) -> Self {
        Self::Aggregation(aggregation)
    }
}

impl Aggregation {
    /// Returns the size of one CPU's value in bytes.
    pub fn size(&self) -> u32 {
        match self {
            Self::Count | Self::Sum { .. } => WORD,
            Self::Min { .. } | Self::Max { .. } => size_of::<Extreme>() as u32,
            Self::Avg { .. } | Self::Stats { .. } => size_of::<Average>() as u32,
            Self::Hist { bits } => WORD * hist_buckets(*bits),
            Self::Lhist { min, max, step } => WORD * lhist_buckets(*min, *max, *step),
            Self::Series { buckets, .. } => size_of::<SeriesSlot>() as u32 * buckets,
        }
    }

    /// Returns true if a new number changes a value in several steps, which no other CPU may
    /// interrupt. All other kinds are added.
    pub fn takes_steps(&self) -> bool {
        matches!(
            self,
            Self::Min { .. } | Self::Max { .. } | Self::Series { .. }
        )
    }

    /// Returns true if the number that a script reads from the map is signed; `None` if there is no
    /// single number. A count is read as `int64`.
    pub fn number_is_signed(&self) -> Option<bool> {
        match self {
            Self::Count => Some(true),
            Self::Sum { signed }
            | Self::Min { signed }
            | Self::Max { signed }
            | Self::Avg { signed } => Some(*signed),
            Self::Stats { .. } | Self::Hist { .. } | Self::Lhist { .. } | Self::Series { .. } => {
                None
            }
        }
    }

    /// Returns the name of the type in scripts and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Count => "count_t",
            Self::Sum { signed: true } => "sum_t",
            Self::Sum { signed: false } => "usum_t",
            Self::Min { signed: true } => "min_t",
            Self::Min { signed: false } => "umin_t",
            Self::Max { signed: true } => "max_t",
            Self::Max { signed: false } => "umax_t",
            Self::Avg { signed: true } => "avg_t",
            Self::Avg { signed: false } => "uavg_t",
            Self::Stats { signed: true } => "stats_t",
            Self::Stats { signed: false } => "ustats_t",
            Self::Hist { .. } => "hist_t",
            Self::Lhist { .. } => "lhist_t",
            Self::Series { .. } => "tseries_t",
        }
    }

    /// Returns one aggregation for two uses of a map, which may differ only in their signs; `None`
    /// if they differ otherwise.
    #[must_use]
    pub fn join(&self, other: &Self) -> Option<Self> {
        let either = |a: &bool, b: &bool| *a || *b;
        Some(match (self, other) {
            (a, b) if a == b => a.clone(),
            (Self::Sum { signed: a }, Self::Sum { signed: b }) => Self::Sum {
                signed: either(a, b),
            },
            (Self::Min { signed: a }, Self::Min { signed: b }) => Self::Min {
                signed: either(a, b),
            },
            (Self::Max { signed: a }, Self::Max { signed: b }) => Self::Max {
                signed: either(a, b),
            },
            (Self::Avg { signed: a }, Self::Avg { signed: b }) => Self::Avg {
                signed: either(a, b),
            },
            (Self::Stats { signed: a }, Self::Stats { signed: b }) => Self::Stats {
                signed: either(a, b),
            },
            _ => return None,
        })
    }
}

/// Returns the number of buckets of `hist(n, bits)`: one for negative numbers, one for each number
/// below `2^bits`, then `2^bits` for each power of two from there to 2^63.
pub fn hist_buckets(bits: u8) -> u32 {
    let bits = u32::from(bits);
    1 + (1 << bits) + ((64 - bits) << bits)
}

/// Returns the first number of a bucket; `None` for bucket 0, that of the negative numbers. With
/// `n` from `2^k` to `2^(k+1)`, `k` at least `bits`, the bucket is `1 + ((k - bits + 1) << bits) +
/// ((n >> (k - bits)) - 2^bits)`; a smaller `n` has `1 + n`.
pub fn hist_bucket(bits: u8, bucket: u32) -> Option<u64> {
    let index = bucket.checked_sub(1)?;
    let (octave, within) = (index >> bits, u64::from(index & ((1 << bits) - 1)));
    let first = 1_u64 << bits;
    Some(if octave == 0 {
        within
    } else {
        (first + within) << (octave - 1)
    })
}

/// Returns the number of buckets of `lhist(n, min, max, step)`.
pub fn lhist_buckets(min: i64, max: i64, step: u64) -> u32 {
    let steps = (i128::from(max) - i128::from(min)).max(0) as u128;
    u32::try_from(steps.div_ceil(u128::from(step.max(1)))).unwrap_or(u32::MAX - 2) + 2
}

#[cfg(test)]
mod tests;
