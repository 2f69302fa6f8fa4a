//! Marks of programs that were hit.

/// Name of the map of the kind `array` whose only value is a [`HitMark`] for each program. It
/// exists if the runner of the script asked for marks.
pub const HITS: &str = "hits";

/// Mark of a program: not 0 once it has run for a process that is traced.
pub type HitMark = u32;
