//! One note's descriptor, and the place that it describes.

use std::sync::Arc;

use super::{ProbeLocation, Semaphore};
use crate::args::ArgSpec;
use crate::error::NoteFault;
use elf::Code;
use elf::ElfVaddr;
use elf::notes::RawNote;
use elf::{AddressMap, ElfImage};

/// Owner of the notes (`_SDT_NOTE_NAME` of `sdt.h`).
pub(super) const OWNER: &[u8] = b"stapsdt";
/// Type of the notes (`_SDT_NOTE_TYPE` of `sdt.h`).
const KIND: u32 = 3;
/// Least length of a descriptor in bytes: three addresses and three empty strings.
const MIN_DESCRIPTOR: usize = 27;

/// Contents of a note.
pub(super) struct Note<'data> {
    pub(super) provider: &'data str,
    pub(super) name: &'data str,
    pub(super) args: &'data [u8],
    probe: ElfVaddr,
    /// Address of `.stapsdt.base` when the file was linked; 0 if it had none.
    base: ElfVaddr,
    /// Address of the semaphore; 0 if there is none.
    semaphore: ElfVaddr,
}

impl<'data> Note<'data> {
    pub(super) fn parse(raw: &RawNote<'data>) -> Result<Self, NoteFault> {
        if raw.kind != KIND {
            return Err(NoteFault::Type { found: raw.kind });
        }
        let found = raw.descriptor.len();
        let short = NoteFault::Descriptor { found };
        let rest = raw.descriptor;
        let (probe, rest) = word(rest).ok_or(short)?;
        let (base, rest) = word(rest).ok_or(short)?;
        let (semaphore, rest) = word(rest).ok_or(short)?;
        if found < MIN_DESCRIPTOR {
            return Err(short);
        }
        let (provider, rest) = string(rest, "provider")?;
        let (name, rest) = string(rest, "name")?;
        let (args, _) = string(rest, "arguments")?;
        if name.is_empty() {
            return Err(NoteFault::NoName);
        }
        Ok(Self {
            provider: text(provider, "provider")?,
            name: text(name, "name")?,
            args,
            probe,
            base,
            semaphore,
        })
    }

    /// Returns the place of the probe. `base` is the present address of the file's section
    /// `.stapsdt.base`.
    pub(super) fn place(
        &self,
        image: &ElfImage<'_>,
        code: &Code<'_>,
        base: Option<ElfVaddr>,
        args: Arc<[ArgSpec]>,
    ) -> Result<ProbeLocation, NoteFault> {
        // Prelink moves the loaded parts, and with them the section, but not the notes: all parts
        // move as far as the section (systemtap wiki, UserSpaceProbeImplementation).
        let shift = match base {
            Some(now) if self.base.0 != 0 => now.0.wrapping_sub(self.base.0),
            _ => 0,
        };
        let vaddr = ElfVaddr(self.probe.0.wrapping_add(shift));
        let map = image.address_map();
        map.to_offset(vaddr)
            .map_err(|_| NoteFault::ProbeUnmapped { vaddr })?;
        if !map.segment(vaddr).is_some_and(|segment| segment.executable) {
            return Err(NoteFault::ProbeNotExecutable { vaddr });
        }
        let semaphore = match self.semaphore.0 {
            0 => None,
            address => Some(semaphore(map, ElfVaddr(address.wrapping_add(shift)))?),
        };
        let at = code
            .usdt(vaddr)
            .map_err(|fault| NoteFault::ProbePlace { fault })?;
        Ok(ProbeLocation {
            vaddr,
            at,
            semaphore,
            args,
        })
    }
}

/// Returns a semaphore that is writable. The kernel counts only in private writable memory
/// (`valid_ref_ctr_vma` in `kernel/events/uprobes.c`), and without the count the probe would never
/// be hit.
fn semaphore(map: &AddressMap, vaddr: ElfVaddr) -> Result<Semaphore, NoteFault> {
    let offset = map
        .to_offset(vaddr)
        .map_err(|_| NoteFault::SemaphoreUnmapped { vaddr })?;
    if !map.segment(vaddr).is_some_and(|segment| segment.writable) {
        return Err(NoteFault::SemaphoreNotWritable { vaddr });
    }
    Ok(Semaphore { vaddr, offset })
}

fn word(bytes: &[u8]) -> Option<(ElfVaddr, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((ElfVaddr(u64::from_le_bytes(*word)), rest))
}

fn string<'data>(
    bytes: &'data [u8],
    which: &'static str,
) -> Result<(&'data [u8], &'data [u8]), NoteFault> {
    let end = memchr::memchr(0, bytes).ok_or(NoteFault::Unterminated { which })?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

/// Returns text that can be shown: names end up on terminals and in patterns.
fn text<'data>(bytes: &'data [u8], which: &'static str) -> Result<&'data str, NoteFault> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.chars().any(char::is_control));
    text.ok_or(NoteFault::NotText { which })
}
