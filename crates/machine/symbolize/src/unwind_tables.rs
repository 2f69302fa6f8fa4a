//! Cache of unwind tables: one copy for all processes that run the same file, and a limit on all
//! bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use typeinfo::{FrameSections, FrameTable};

use crate::{Warn, Warning};

/// Limit on the bytes of cached unwind tables. LLVM's library, the largest that we know, has 8 MB.
const MAX_BYTES: usize = 256 << 20;

/// Id of a table, which is kept as long as there are copies of its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TableId(Arc<u64>);

struct CachedTable {
    table: FrameTable<Arc<[u8]>>,
    id: TableId,
    bytes: usize,
}

/// Tables of all processes.
pub(crate) struct UnwindTables {
    kept: BTreeMap<u64, CachedTable>,
    next: u64,
    bytes: usize,
    warn: Warn,
}

impl UnwindTables {
    pub(crate) fn new(warn: Warn) -> Self {
        Self {
            kept: BTreeMap::new(),
            next: 0,
            bytes: 0,
            warn,
        }
    }

    /// Reports an omission.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is made where it is given"
    )]
    pub(crate) fn report(&self, warning: Warning) {
        (self.warn)(&warning);
    }

    /// Returns the table of a file with these sections, if it can be used and there is room for it.
    pub(crate) fn add(&mut self, name: &str, sections: &FrameSections<'_>) -> Option<TableId> {
        if let Some(same) = self
            .kept
            .values()
            .find(|kept| is_same(&kept.table, sections))
        {
            return Some(same.id.clone());
        }
        let bytes = sections.frames.data.len().saturating_mul(2);
        if bytes > MAX_BYTES.saturating_sub(self.bytes) {
            self.report(Warning::NoRoom {
                file: name.to_owned(),
                bytes,
            });
            return None;
        }
        match FrameTable::new(sections) {
            Ok(table) => {
                let id = TableId(Arc::new(self.next));
                self.kept.insert(
                    self.next,
                    CachedTable {
                        table,
                        id: id.clone(),
                        bytes,
                    },
                );
                self.next += 1;
                self.bytes += bytes;
                Some(id)
            }
            Err(source) => {
                self.report(Warning::Table {
                    file: name.to_owned(),
                    source,
                });
                None
            }
        }
    }

    pub(crate) fn get(&mut self, id: &TableId) -> Option<&mut FrameTable<Arc<[u8]>>> {
        self.kept.get_mut(&id.0).map(|kept| &mut kept.table)
    }

    /// Drops the tables whose ids are no longer held.
    pub(crate) fn drop_unused(&mut self) {
        // One copy of the id is the table's own.
        self.kept
            .retain(|_, kept| Arc::strong_count(&kept.id.0) > 1);
        self.bytes = self.kept.values().map(|kept| kept.bytes).sum();
    }

    /// Returns true if there is little room left.
    pub(crate) fn are_many(&self) -> bool {
        self.bytes > MAX_BYTES / 2
    }

    /// Returns the number of tables.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }
}

/// Returns true if a table was made of sections with these bytes at these addresses.
fn is_same(table: &FrameTable<Arc<[u8]>>, sections: &FrameSections<'_>) -> bool {
    let (frames, index) = (table.frames(), table.index());
    let is_own_index = index.address == frames.address;
    table.text_and_got() == (sections.text, sections.got)
        && frames.address == sections.frames.address
        && *frames.data == *sections.frames.data
        && match &sections.index {
            None => is_own_index,
            Some(given) => given.address == index.address && *given.data == *index.data,
        }
}
