//! The ELF object: programs by section, subprograms, maps, global data, and the symbols that
//! connect them.
//!
//! aya 0.14 (`EbpfLoader::load`) and libbpf 1.x (`bpftool prog load`) can load the object. It
//! follows libbpf's conventions: the name of a program's section is its kind (`uprobe`,
//! `tp_btf/sched_switch`); maps are variables in `.maps`, described in `.BTF` (libbpf 1.0 removed
//! the older `maps` section); subprograms are in `.text`; and the relocations are those of
//! `Documentation/bpf/llvm_reloc.rst`. Comments on instructions become line information, so that
//! the verifier prints them in its log.
//!
//! ```
//! use bpf_insn::{Asm, Helper, MapDef, ObjectBuilder, Reg::*, Size};
//!
//! let mut asm = Asm::new();
//! asm.call(Helper::KTIME_GET_NS).store(Size::DW, R10.at(-8), R0);
//! asm.load_map(R1, "events").mov(R2, R10).add(R2, -8).mov(R3, 8).mov(R4, 0);
//! asm.call(Helper::RINGBUF_OUTPUT).mov(R0, 0).exit();
//!
//! let mut object = ObjectBuilder::new("GPL");
//! object.map(MapDef::ring_buffer("events", 1 << 16)).program("uprobe", "on_hit", asm.finish()?);
//! let bytes = object.build()?;
//! assert_eq!(&bytes[..4], b"\x7fELF");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod elf;
mod error;
mod maps;

pub use error::ObjectError;
pub use maps::MapDef;

use crate::asm::Code;
use crate::insn::INSN_BYTES;

/// Section of subprograms.
const TEXT: &str = ".text";
/// Section of map definitions.
const MAPS: &str = ".maps";

/// Section of global data; the loader makes one array map of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DataSection {
    /// Constants: programs can't write them.
    Rodata,
    /// Variables with an initial value.
    Data,
    /// Variables that start as zeros.
    Bss,
}

/// Piece of global data.
#[derive(Debug, Clone)]
struct Data {
    name: String,
    section: DataSection,
    bytes: Vec<u8>,
}

/// Program or subprogram.
#[derive(Debug, Clone)]
struct Function {
    section: String,
    name: String,
    code: Code,
}

impl Function {
    fn is_subprogram(&self) -> bool {
        self.section == TEXT
    }

    fn byte_len(&self) -> u64 {
        u64::from(self.code.slots()) * INSN_BYTES as u64
    }
}

/// Object in the making. Order does not matter: names are looked up by [`ObjectBuilder::build`].
#[derive(Debug, Clone)]
pub struct ObjectBuilder {
    license: String,
    maps: Vec<MapDef>,
    data: Vec<Data>,
    functions: Vec<Function>,
}

impl ObjectBuilder {
    /// Creates an empty object with this licence: most helpers of a tracer are for GPL-compatible
    /// programs only (`license_is_gpl_compatible` of `linux/license.h`).
    pub fn new(license: &str) -> Self {
        Self {
            license: license.to_owned(),
            maps: Vec::new(),
            data: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Adds a map.
    pub fn map(&mut self, map: MapDef) -> &mut Self {
        self.maps.push(map);
        self
    }

    /// Adds a constant (`.rodata`). Since Linux 5.2.
    pub fn constant(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.add_data(name, DataSection::Rodata, bytes.to_vec())
    }

    /// Adds a variable with an initial value (`.data`). Since Linux 5.2.
    pub fn variable(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.add_data(name, DataSection::Data, bytes.to_vec())
    }

    /// Adds a variable of this many zeros (`.bss`). Since Linux 5.2.
    pub fn zeroed(&mut self, name: &str, bytes: usize) -> &mut Self {
        self.add_data(name, DataSection::Bss, vec![0; bytes])
    }

    fn add_data(&mut self, name: &str, section: DataSection, bytes: Vec<u8>) -> &mut Self {
        self.data.push(Data {
            name: name.to_owned(),
            section,
            bytes,
        });
        self
    }

    /// Adds a program. Several may share a section, whose name determines their kind.
    pub fn program(&mut self, section: &str, name: &str, code: Code) -> &mut Self {
        self.functions.push(Function {
            section: section.to_owned(),
            name: name.to_owned(),
            code,
        });
        self
    }

    /// Adds a function that programs and other subprograms call by its name. Since Linux 4.16.
    pub fn subprogram(&mut self, name: &str, code: Code) -> &mut Self {
        self.functions.push(Function {
            section: TEXT.to_owned(),
            name: name.to_owned(),
            code,
        });
        self
    }

    /// Returns the object's bytes.
    pub fn build(&self) -> Result<Vec<u8>, ObjectError> {
        check::check(self)?;
        elf::write(self)
    }
}
