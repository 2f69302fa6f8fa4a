//! Numbers for names, which are sent once.

use crate::proto::InternedName;
use std::collections::HashMap;

/// Numbers of names, from 1.
#[derive(Debug, Default)]
pub(super) struct Interner(HashMap<String, u64>);

impl Interner {
    /// Returns the number of a name, and adds a new one to `unsent`.
    pub(super) fn number(&mut self, name: &str, unsent: &mut Vec<InternedName>) -> u64 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(name.to_owned(), number);
        unsent.push(InternedName {
            iid: Some(number),
            name: Some(name.to_owned()),
        });
        number
    }
}
