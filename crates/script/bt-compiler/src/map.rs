//! Facts about a script's maps, which the checker collects and the emitter relies on.

use bt_lang::Span;

use super::ty::Ty;
use bt_abi::Aggregation;

/// Facts about a map.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct MapInfo {
    pub(crate) name: String,
    /// Type of the key: [`Ty::Void`] if the map has none, `None` while it is unknown.
    pub(crate) key: Option<Ty>,
    pub(crate) value: Option<MapValueKind>,
    /// Kind and number of entries of `let @map = kind(entries)`.
    pub(crate) declared: Option<(DeclaredKind, u32)>,
    /// Place where it first gets a value.
    pub(crate) span: Span,
    /// True if the script deletes single keys. Keys that are set are then mostly new.
    pub(crate) deletes: bool,
    /// True if a value of unknown type is assigned.
    pub(crate) given: bool,
    /// True if the map's own value takes part in a value that it is given (`@a = @a + 1`).
    pub(crate) feeds_itself: bool,
    /// True if it was read while nothing was known of its value.
    pub(crate) read_open: bool,
}

/// Value type of a map.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum MapValueKind {
    Scalar(Ty),
    Agg(Aggregation),
}

/// Kind of map that a script can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeclaredKind {
    Hash,
    LruHash,
    PercpuHash,
    PercpuLruHash,
    PercpuArray,
}

impl DeclaredKind {
    /// Kinds by the names that scripts use.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("hash", Self::Hash),
        ("lruhash", Self::LruHash),
        ("percpuhash", Self::PercpuHash),
        ("percpulruhash", Self::PercpuLruHash),
        ("percpuarray", Self::PercpuArray),
    ];
}
