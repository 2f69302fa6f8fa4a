//! The header of BTF (`struct btf_header`).

use std::ops::Range;

use crate::error::TypeError;

/// `BTF_MAGIC`, 0xeb9f, in little-endian order.
const MAGIC: [u8; 2] = [0x9f, 0xeb];
/// `BTF_VERSION`
const VERSION: u8 = 1;
/// Length of the header of version 1 in bytes. Later ones may be longer; the fields that we know
/// stay where they are.
const HEADER: usize = 24;

/// Ranges of the parts, in bytes from the beginning.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) types: Range<usize>,
    pub(super) strings: Range<usize>,
}

pub(super) fn word(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// Reads and checks the header.
pub(super) fn read(data: &[u8]) -> Result<Header, TypeError> {
    if data.get(..2) != Some(&MAGIC) {
        let found: Vec<String> = data
            .iter()
            .take(2)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let found = if found.is_empty() {
            "no bytes".to_owned()
        } else {
            found.join(" ")
        };
        return Err(TypeError::NotBtf { found });
    }
    let broken = |offset, expected| TypeError::Btf { offset, expected };
    if data.get(2) != Some(&VERSION) {
        return Err(broken(2, "version 1"));
    }
    if u32::try_from(data.len()).is_err() {
        return Err(broken(0, "less than 4 GiB"));
    }
    let field = |at| {
        word(data, at)
            .map(|word| word as usize)
            .ok_or_else(|| broken(at, "a header of 24 bytes"))
    };
    let end = field(4)?;
    if end < HEADER || end > data.len() {
        return Err(broken(
            4,
            "a header length from 24 to the length of the data",
        ));
    }
    let part = |at: usize| {
        let start = field(at)?.checked_add(end);
        let range =
            start.and_then(|start| Some(start..start.checked_add(word(data, at + 4)? as usize)?));
        range
            .filter(|range| range.end <= data.len())
            .ok_or_else(|| broken(at, "a part that lies within the data"))
    };
    Ok(Header {
        types: part(8)?,
        strings: part(16)?,
    })
}
