//! What the passes hand on: each part is written by one pass and read by those behind it.
//!
//! | part | written by | read by |
//! |---|---|---|
//! | [`Inputs`] | the caller, and the pass on settings | all |
//! | [`Types`] | definitions; all that look a name up (what is known of types grows, and is cached) | resolve, check, build |
//! | [`Tables`] | check | emit, build |
//! | [`Diagnostics`] | all | the caller |
//!
//! A pass takes those parts that it needs, and no more: the resolver has no tables, the emitter no types.

use bt_abi::{Action, Config};

use super::diagnostics::Diagnostics;
use super::facts::TargetFacts;
use super::map::MapInfo;
use super::types::Types;

/// The whole context. Only `compile` and the checker, which is begun once for each body, have all of it.
pub(crate) struct CompileCtx<'f> {
    pub(crate) inputs: Inputs<'f>,
    pub(crate) types: Types<'f>,
    pub(crate) tables: Tables,
    pub(crate) diagnostics: Diagnostics,
}

/// What no pass changes.
pub(crate) struct Inputs<'f> {
    /// The machine and the target.
    pub(crate) facts: &'f dyn TargetFacts,
    /// The script's settings, with those of the environment.
    pub(crate) config: Config,
}

/// What the checker finds out beside the bodies.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// The script's maps, by number.
    pub(crate) maps: Vec<MapInfo>,
    /// What events ask for, by number.
    pub(crate) actions: Vec<Action>,
    /// The options that the script asks for, and what it says of them.
    pub(crate) options: Vec<(String, Option<String>)>,
    /// Whether a probe is not there, so that maps may lack what it would have given them. The resolver finds this out.
    pub(crate) lacks_probes: bool,
}
