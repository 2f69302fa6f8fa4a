//! Tracepoints selected by patterns of their names, as typed.

use errors::usage;
use glob::Pattern;
use spdk_trace::{Tpoint, TpointSet};

/// Adds the tracepoints whose names match a glob; returns whether there are any.
pub fn add_matching<'t>(
    wanted: &mut TpointSet,
    glob: &str,
    tpoints: impl Iterator<Item = &'t Tpoint>,
) -> anyhow::Result<bool> {
    let pattern = pattern(glob)?;
    let mut is_any = false;
    for tpoint in tpoints.filter(|tpoint| pattern.matches(&tpoint.name)) {
        wanted.insert(tpoint.id);
        is_any = true;
    }
    Ok(is_any)
}

/// Parses a glob.
pub fn pattern(text: &str) -> anyhow::Result<Pattern> {
    Pattern::new(text).map_err(|e| {
        usage(format!(
            "the glob {text:?} is wrong at character {}: {}",
            e.pos + 1,
            e.msg
        ))
    })
}
