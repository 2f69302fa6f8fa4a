//! Data that the passes hand on: each part is written by one pass and read by later ones.
//!
//! | part | written by | read by |
//! |---|---|---|
//! | [`Inputs`] | the caller, and the pass on settings | all |
//! | [`Types`] | definitions; every pass that looks a name up (results are cached) | resolve, check, build |
//! | [`Tables`] | check | emit, build |
//! | [`Diagnostics`] | all | the caller |
//!
//! A pass takes only the parts that it needs: the resolver has no tables, the emitter no types.

use bt_abi::{Action, Config};

use super::diagnostics::Diagnostics;
use super::facts::TargetFacts;
use super::map::MapInfo;
use super::types::Types;

/// Context of a compilation. Only `compile` and the checker, which starts anew for each body, have
/// all of it.
pub(crate) struct CompileCtx<'f> {
    pub(crate) inputs: Inputs<'f>,
    pub(crate) types: Types<'f>,
    pub(crate) tables: Tables,
    pub(crate) diagnostics: Diagnostics,
}

/// Inputs that no pass changes.
pub(crate) struct Inputs<'f> {
    /// Facts about the machine and the target.
    pub(crate) facts: &'f dyn TargetFacts,
    /// Settings of the script and the environment.
    pub(crate) config: Config,
}

/// Results of the checker beside the bodies.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Maps of the script, by number.
    pub(crate) maps: Vec<MapInfo>,
    /// Actions that events ask for, by number.
    pub(crate) actions: Vec<Action>,
    /// Options that the script asks for, each with its text on them, if any.
    pub(crate) options: Vec<(String, Option<String>)>,
    /// True if a probe is missing, so that maps may lack its values. The resolver sets it.
    pub(crate) lacks_probes: bool,
}
