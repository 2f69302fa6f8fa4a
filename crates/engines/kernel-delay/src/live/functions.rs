//! Names of the functions that the kernel's workers ran.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use host::KernelSymbols;

use crate::layout::PreemptorKey;

/// Cache of names by address; `None` for a function without a name, or whose name the user may not
/// see.
#[derive(Default)]
pub(super) struct Functions(Mutex<HashMap<u64, Option<String>>>);

impl Functions {
    /// Returns the names of the functions of these keys. The kernel's list is read if one is new,
    /// in some 50 ms.
    pub(super) fn names(&self, preemptors: &[(PreemptorKey, u64)]) -> HashMap<u64, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted: BTreeSet<u64> = preemptors
            .iter()
            .map(|(key, _)| key.function)
            .filter(|&it| it != 0)
            .collect();
        let new: BTreeSet<u64> = wanted
            .iter()
            .copied()
            .filter(|address| !known.contains_key(address))
            .collect();
        if !new.is_empty() {
            // Without names the workers still have their own.
            let mut names = KernelSymbols::names_of(&new).unwrap_or_default();
            known.extend(
                new.into_iter()
                    .map(|address| (address, names.remove(&address))),
            );
        }
        wanted
            .into_iter()
            .filter_map(|address| Some((address, known.get(&address)?.clone()?)))
            .collect()
    }
}
