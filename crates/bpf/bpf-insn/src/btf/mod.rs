//! BTF, the type information of BPF objects: an encoder of the parts that our objects need.
//!
//! Map definitions are written as types (a loader reads a map's size from an array's length), and
//! the kernel requires the type of each function that a helper calls back. Layout and names: "BPF
//! Type Format (BTF)" in the kernel's documentation (`Documentation/bpf/btf.rst`), section 2, and
//! `linux/btf.h`.

mod ext;
mod types;

pub use ext::{FunctionInfo, LineInfo, ext_section};
pub use types::{Linkage, Member, Param, SectionVar, TypeId};

use std::collections::HashMap;
use types::{Kind, info};

/// `BTF_MAGIC` of `linux/btf.h`.
const MAGIC: u16 = 0xeb9f;
/// `BTF_VERSION` of `linux/btf.h`.
const VERSION: u8 = 1;
/// `BTF_INT_SIGNED` of `linux/btf.h`.
const INT_SIGNED: u32 = 1;

/// BTF in the making: each method appends one type and returns its id.
#[derive(Debug, Default)]
pub struct Btf {
    types: Vec<u8>,
    count: u32,
    strings: Vec<u8>,
    offsets: HashMap<String, u32>,
}

impl Btf {
    /// Creates BTF without types, with the empty string that string tables start with.
    pub fn new() -> Self {
        Self {
            strings: vec![0],
            ..Self::default()
        }
    }

    /// Returns the offset of this string in the string table; it is entered once. Text after a NUL
    /// is left out.
    pub fn string(&mut self, text: &str) -> u32 {
        let text = text.split('\0').next().unwrap_or_default();
        if text.is_empty() {
            return 0;
        }
        if let Some(&offset) = self.offsets.get(text) {
            return offset;
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        self.offsets.insert(text.to_owned(), offset);
        offset
    }

    /// Adds an integer of this number of bytes (`BTF_KIND_INT`).
    pub fn int(&mut self, name: &str, bytes: u32, signed: bool) -> TypeId {
        let encoding = if signed { INT_SIGNED } else { 0 };
        let id = self.start(name, info(Kind::Int, 0), bytes);
        self.words(&[(encoding << 24) | (bytes * 8)]);
        id
    }

    /// Adds a pointer (`BTF_KIND_PTR`).
    pub fn pointer(&mut self, to: TypeId) -> TypeId {
        self.start("", info(Kind::Ptr, 0), to.0)
    }

    /// Adds an array (`BTF_KIND_ARRAY`).
    pub fn array(&mut self, element: TypeId, index: TypeId, length: u32) -> TypeId {
        let id = self.start("", info(Kind::Array, 0), 0);
        self.words(&[element.0, index.0, length]);
        id
    }

    /// Adds a structure of this number of bytes (`BTF_KIND_STRUCT`).
    pub fn structure(&mut self, name: &str, bytes: u32, members: &[Member<'_>]) -> TypeId {
        let id = self.start(name, info(Kind::Struct, members.len()), bytes);
        for member in members {
            let name = self.string(member.name);
            self.words(&[name, member.ty.0, member.byte_offset * 8]);
        }
        id
    }

    /// Adds a variable (`BTF_KIND_VAR`).
    pub fn variable(&mut self, name: &str, ty: TypeId, linkage: Linkage) -> TypeId {
        let id = self.start(name, info(Kind::Var, 0), ty.0);
        self.words(&[linkage as u32]);
        id
    }

    /// Adds a section with the variables in it (`BTF_KIND_DATASEC`).
    pub fn section(&mut self, name: &str, bytes: u32, variables: &[SectionVar]) -> TypeId {
        let id = self.start(name, info(Kind::Datasec, variables.len()), bytes);
        for variable in variables {
            self.words(&[variable.ty.0, variable.offset, variable.bytes]);
        }
        id
    }

    /// Adds a function's type (`BTF_KIND_FUNC_PROTO`).
    pub fn prototype(&mut self, returns: TypeId, params: &[Param<'_>]) -> TypeId {
        let id = self.start("", info(Kind::FuncProto, params.len()), returns.0);
        for param in params {
            let name = self.string(param.name);
            self.words(&[name, param.ty.0]);
        }
        id
    }

    /// Adds a function (`BTF_KIND_FUNC`, whose length field holds the linkage).
    pub fn function(&mut self, name: &str, prototype: TypeId, linkage: Linkage) -> TypeId {
        self.start(name, info(Kind::Func, linkage as usize), prototype.0)
    }

    /// Returns the bytes of the `.BTF` section: header, types, strings.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = header(&[0, types, types, strings]);
        bytes.extend_from_slice(&self.types);
        bytes.extend_from_slice(&self.strings);
        bytes
    }

    fn start(&mut self, name: &str, info: u32, size_or_type: u32) -> TypeId {
        let name = self.string(name);
        self.words(&[name, info, size_or_type]);
        self.count += 1;
        TypeId(self.count)
    }

    fn words(&mut self, words: &[u32]) {
        push_words(&mut self.types, words);
    }
}

/// Returns the start that `.BTF` and `.BTF.ext` share: magic number, version, flags, the header's
/// length, and then its offsets and lengths.
fn header(fields: &[u32]) -> Vec<u8> {
    let length = 8 + fields.len() as u32 * 4;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&MAGIC.to_le_bytes());
    bytes.extend_from_slice(&[VERSION, 0]);
    push_words(&mut bytes, &[length]);
    push_words(&mut bytes, fields);
    bytes
}

fn push_words(bytes: &mut Vec<u8>, words: &[u32]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

#[cfg(test)]
mod tests;
