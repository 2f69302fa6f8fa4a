//! The files that the target of a probe means, and a search in them.

use std::collections::HashMap;
use std::path::Path;

use bt_compiler::NotFound;
use host::FilePlace;

/// A file that a target means.
#[derive(Clone)]
pub(super) struct TargetFile {
    pub(super) place: FilePlace,
    /// Name for display.
    pub(super) shown: String,
}

/// The files that a target means.
pub(super) struct Targets {
    pub(super) files: Vec<TargetFile>,
    /// Files of each process, if only the first with a match counts; else nothing.
    pub(super) first_of: Vec<Vec<TargetFile>>,
}

impl From<Vec<TargetFile>> for Targets {
    fn from(files: Vec<TargetFile>) -> Self {
        Self {
            files,
            first_of: Vec::new(),
        }
    }
}

impl Targets {
    /// Looks into each file, once; errors count only if there is one file.
    pub(super) fn each<T>(
        &self,
        mut look: impl FnMut(&TargetFile) -> Result<Vec<T>, NotFound>,
    ) -> Result<Vec<T>, NotFound> {
        let mut all = Vec::new();
        let mut into = |found: &TargetFile| -> Result<bool, NotFound> {
            match look(found) {
                Ok(some) => {
                    let before = all.len();
                    all.extend(some);
                    Ok(all.len() > before)
                }
                Err(error) if self.files.len() == 1 => Err(error),
                Err(_) => Ok(false),
            }
        };
        if self.first_of.is_empty() {
            self.files
                .iter()
                .try_for_each(|found| into(found).map(drop))?;
        }
        let mut known: HashMap<&Path, bool> = HashMap::new();
        for files in &self.first_of {
            for found in files {
                let has = match known.get(found.place.path()) {
                    Some(has) => *has,
                    None => into(found)?,
                };
                known.insert(found.place.path(), has);
                if has {
                    break;
                }
            }
        }
        Ok(all)
    }
}
