//! Names that a fake target has.

use bt_compiler::NotFound;

/// Existing names.
#[derive(Clone, Debug)]
pub enum Names {
    /// Only these names.
    These(Vec<String>),
    /// Any name.
    Any,
}

impl Names {
    /// Creates a list of names.
    pub fn these(names: &[&str]) -> Self {
        Self::These(names.iter().map(|name| (*name).to_owned()).collect())
    }

    pub(super) fn fitting(&self, pattern: &str, what: &str) -> Result<Vec<String>, NotFound> {
        match self {
            Self::These(names) => {
                fitting(names.iter().cloned(), what, |name| wanted(pattern, name))
            }
            Self::Any => Ok(vec![pattern.to_owned()]),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::These(names) => names.iter().any(|known| known == name),
            Self::Any => true,
        }
    }
}

/// Returns whether a name matches a pattern, which may have stars.
pub(super) fn wanted(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| tail.contains('*') || rest.ends_with(tail)),
    }
}

pub(super) fn not_found(what: &str) -> NotFound {
    NotFound {
        message: format!("there is no {what}"),
        absent: true,
        hints: vec!["did you mean main?".to_owned()],
    }
}

/// Returns the items that fit; an error if none does.
pub(super) fn fitting<T>(
    all: impl IntoIterator<Item = T>,
    what: &str,
    fits: impl Fn(&T) -> bool,
) -> Result<Vec<T>, NotFound> {
    let found: Vec<T> = all.into_iter().filter(fits).collect();
    if found.is_empty() {
        Err(not_found(what))
    } else {
        Ok(found)
    }
}
