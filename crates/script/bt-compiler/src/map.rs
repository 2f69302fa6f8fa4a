//! What is known of a script's maps: the checker finds it out, the emitter relies on it.

use bt_lang::Span;

use super::ty::Ty;
use bt_abi::Aggregation;

/// What is known of a map.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct MapInfo {
    pub(crate) name: String,
    /// [`Ty::Void`] where there is none; nothing while it is not known.
    pub(crate) key: Option<Ty>,
    pub(crate) value: Option<MapHolds>,
    /// Of `let @map = kind(entries)`.
    pub(crate) declared: Option<(DeclaredKind, u32)>,
    /// Where it was first given a value.
    pub(crate) span: Span,
    /// Whether the script takes keys out one by one: then those that are set are mostly new.
    pub(crate) deletes: bool,
    /// Whether a value is assigned whose type is not known.
    pub(crate) given: bool,
    /// Whether the map's own value takes part in a value that it is given (`@a = @a + 1`).
    pub(crate) feeds_itself: bool,
    /// Whether it was read while nothing was known of its value.
    pub(crate) read_open: bool,
}

/// What a map holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum MapHolds {
    Scalar(Ty),
    Agg(Aggregation),
}

/// The kinds of map that a script can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeclaredKind {
    Hash,
    LruHash,
    PercpuHash,
    PercpuLruHash,
    PercpuArray,
}

impl DeclaredKind {
    /// By the names that scripts use.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("hash", Self::Hash),
        ("lruhash", Self::LruHash),
        ("percpuhash", Self::PercpuHash),
        ("percpulruhash", Self::PercpuLruHash),
        ("percpuarray", Self::PercpuArray),
    ];
}
