//! A type's number in the kernel's BTF, by its name: all that the trials need of it.
//!
//! The form is that of Documentation/bpf/btf.rst, sections 2.1 and 2.2.

use std::io;

/// Where the kernel shows its own types. Since Linux 5.4, with `CONFIG_DEBUG_INFO_BTF`.
const PATH: &str = "/sys/kernel/btf/vmlinux";
/// `BTF_MAGIC`.
const MAGIC: u16 = 0xeb9f;
/// The bytes in front of what a kind adds: name, info, size or type.
const TYPE_BYTES: usize = 12;

/// Which kind of type is looked for: `BTF_KIND_*` of `linux/btf.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Typedef = 8,
    Function = 12,
}

/// The kernel's types, unread.
pub(super) struct KernelBtf {
    bytes: Vec<u8>,
}

impl KernelBtf {
    pub(super) fn read() -> io::Result<Self> {
        let this = Self { bytes: std::fs::read(PATH)? };
        match this.sections() {
            Some(_) => Ok(this),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{PATH} has an unknown form"))),
        }
    }

    /// The number of the type with this name.
    pub(super) fn id(&self, kind: Kind, name: &str) -> Option<u32> {
        let (types, strings) = self.sections()?;
        let mut rest = types;
        let mut id = 1;
        while let Some((head, after)) = rest.split_at_checked(TYPE_BYTES) {
            let info = word(head, 4)?;
            let (found, count) = ((info >> 24 & 0x1f) as u8, (info & 0xffff) as usize);
            if found == kind as u8 && is_named(strings, word(head, 0)? as usize, name) {
                return Some(id);
            }
            rest = after.get(added_bytes(found, count)?..)?;
            id += 1;
        }
        None
    }

    /// The types and the names.
    fn sections(&self) -> Option<(&[u8], &[u8])> {
        let magic = self.bytes.first_chunk::<2>().map(|bytes| u16::from_ne_bytes(*bytes));
        if magic != Some(MAGIC) {
            return None;
        }
        let body = self.bytes.get(word(&self.bytes, 4)? as usize..)?;
        let section = |at| {
            let (start, length) = (word(&self.bytes, at)? as usize, word(&self.bytes, at + 4)? as usize);
            body.get(start..start.checked_add(length)?)
        };
        Some((section(8)?, section(16)?))
    }
}

/// How many bytes a kind has behind its head (`btf_type_size`). A kind that is not known ends the walk.
fn added_bytes(kind: u8, count: usize) -> Option<usize> {
    Some(match kind {
        // int, variable, declaration tag
        1 | 14 | 17 => 4,
        // array
        3 => 12,
        // structure, union, section, 64-bit enumeration
        4 | 5 | 15 | 19 => count * 12,
        // enumeration, function's type
        6 | 13 => count * 8,
        // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn is_named(strings: &[u8], at: usize, name: &str) -> bool {
    strings.get(at..).and_then(|text| text.strip_prefix(name.as_bytes())).is_some_and(|rest| rest.first() == Some(&0))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpf_insn::btf::{Btf, Linkage};

    #[test]
    fn types_are_found_by_kind_and_whole_name() {
        let mut btf = Btf::new();
        let int = btf.int("int", 4, true);
        btf.array(int, int, 4);
        btf.structure("wanted", 4, &[]);
        let proto = btf.prototype(int, &[bpf_insn::btf::Param { name: "a", ty: int }]);
        btf.function("wanted_not", proto, Linkage::Global);
        let function = btf.function("wanted", proto, Linkage::Global);
        let known = KernelBtf { bytes: btf.to_bytes() };
        assert_eq!(known.id(Kind::Function, "wanted"), Some(function.number()));
        assert_eq!(known.id(Kind::Function, "want"), None);
        assert_eq!(known.id(Kind::Typedef, "wanted"), None);
        for cut in 0..known.bytes.len() {
            let cut = KernelBtf { bytes: known.bytes[..cut].to_vec() };
            assert_eq!(cut.id(Kind::Function, "wanted"), None);
        }
    }
}
