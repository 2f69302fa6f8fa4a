//! Code of a process: its ranges, and the sections of its files.

use elf::{ElfImage, FileOffset};
use framehop::ExplicitModuleSectionInfo;
use host::Process;
use std::ops::Range;
use std::sync::Arc;
use typeinfo::FrameTable;

/// Returns a process's mappings of code, in order: the places, and the inodes of their files.
pub(super) fn code_of(process: &Process) -> (Vec<Range<u64>>, Vec<u64>) {
    let code = process
        .maps()
        .all()
        .iter()
        .filter(|mapping| mapping.permissions.execute);
    code.map(|mapping| (mapping.start.0..mapping.end.0, mapping.inode))
        .unzip()
}

/// Returns the address of the file's address 0 in the process, if code of the file is mapped here.
pub(super) fn code_base(image: &ElfImage<'_>, range: &Range<u64>, offset: u64) -> Option<u64> {
    // A mapping begins at a page, which the end of the segment before may share: only the segment
    // of code counts.
    let end = FileOffset(offset.saturating_add(range.end - range.start));
    let segments = image.address_map().segments().iter();
    let segment = segments.filter(|it| it.executable).find(|it| {
        let last = it.offset.0.saturating_add(it.file_size);
        it.offset < end && offset < last
    })?;
    let start = range
        .start
        .wrapping_sub(offset)
        .wrapping_add(segment.offset.0);
    Some(start.wrapping_sub(segment.vaddr.0))
}

/// Converts a table to the unwinder's form.
pub(super) fn sections(table: &FrameTable<Arc<[u8]>>) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
    let (frames, index) = (table.frames(), table.index());
    let span = |address: u64| Some(address..address);
    let (text, got) = table.text_and_got();
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: span(text),
        eh_frame_svma: span(frames.address),
        eh_frame: Some(Arc::clone(&frames.data)),
        eh_frame_hdr_svma: span(index.address),
        eh_frame_hdr: Some(Arc::clone(&index.data)),
        got_svma: span(got),
        ..Default::default()
    }
}
