//! Iterates over a document's entries, with a window of the text in memory.

use super::entry::{EntryReader, NoRecord, OwnerColumn};
use super::lexer::Lexer;
use crate::header::TpointTable;
use crate::problems::{Problem, Problems};
use crate::record::RecordSink;
use crate::units::FileOffset;

/// A token cut off by the end of the window is reported at most this far before the end: `false` is
/// the longest one compared as a whole.
const TOKEN: usize = 16;

/// The part of the text that a walk expects next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The first entry, or the end of an empty list.
    First,
    Entry,
    /// A comma, or the end of the list.
    Separator,
}

/// A walk through the entries, a window at a time.
pub(super) struct Walk<'a> {
    tpoints: &'a TpointTable,
    column: OwnerColumn,
    reader: EntryReader,
    expected: Expected,
    pub(super) problems: Problems,
}

/// Result of skipping an entry that is not a record.
enum SkipResult {
    /// The entry was skipped and reported.
    Over,
    /// The document ends within the entry.
    Cut(usize),
    /// More text is needed to decide.
    More,
}

impl<'a> Walk<'a> {
    pub(super) fn new(tpoints: &'a TpointTable, column: OwnerColumn) -> Self {
        let (reader, problems) = (EntryReader::default(), Problems::default());
        Self {
            tpoints,
            column,
            reader,
            expected: Expected::First,
            problems,
        }
    }

    /// Continues at `pos` in a window that begins at offset `base` of the document. Returns the
    /// position at which to continue with more text, or `None` at the end. `is_end` is set if there
    /// is no more text.
    pub(super) fn through(
        &mut self,
        text: &[u8],
        pos: usize,
        base: usize,
        is_end: bool,
        each: &mut RecordSink<'_>,
    ) -> Option<usize> {
        let mut lexer = Lexer::new(text, pos);
        // An apparent error close to the window's end may only be a cut.
        let is_cut = |at: usize| !is_end && at + TOKEN >= text.len();
        loop {
            let start = lexer.peek().map_or(lexer.pos, |_| lexer.pos);
            if is_cut(start) {
                return Some(start);
            }
            if self.expected == Expected::Separator {
                match lexer.more(b']') {
                    Ok(true) => self.expected = Expected::Entry,
                    Ok(false) => return None,
                    Err(cut) => return self.cut(base + cut.at),
                }
                continue;
            }
            if self.expected == Expected::First && lexer.take(b']') {
                return None;
            }
            self.expected = Expected::Separator;
            match self.reader.read(&mut lexer, self.tpoints, self.column) {
                Ok(record) => {
                    if each(&record).is_break() {
                        return None;
                    }
                }
                Err(why) => {
                    lexer.pos = start;
                    match self.pass_over(&why, &mut lexer, base, is_cut) {
                        SkipResult::Over => {}
                        SkipResult::Cut(at) => return self.cut(at),
                        SkipResult::More => {
                            self.expected = Expected::Entry;
                            return Some(start);
                        }
                    }
                }
            }
        }
    }

    fn pass_over(
        &mut self,
        why: &NoRecord,
        lexer: &mut Lexer<'_>,
        base: usize,
        is_cut: impl Fn(usize) -> bool,
    ) -> SkipResult {
        let start = lexer.pos;
        let broke = if let NoRecord::Broken(broken) = why {
            broken.at
        } else {
            start
        };
        match lexer.skip() {
            Ok(_) if !is_cut(broke) => report(why, base + start, &mut self.problems),
            Err(cut) if !is_cut(cut.at) => return SkipResult::Cut(base + cut.at),
            _ => return SkipResult::More,
        }
        SkipResult::Over
    }

    fn cut(&mut self, at: usize) -> Option<usize> {
        self.problems
            .add(Problem::DocumentCut, None, FileOffset(at as u64));
        None
    }
}

fn report(why: &NoRecord, start: usize, problems: &mut Problems) {
    let at = FileOffset(start as u64);
    match why {
        NoRecord::Shape(what) => problems.add(Problem::BrokenEntry(what), None, at),
        NoRecord::UnknownTpoint => problems.add(Problem::UnknownTpoint, None, at),
        NoRecord::Broken(broken) => problems.add(Problem::BrokenEntry(broken.expected), None, at),
    }
}
