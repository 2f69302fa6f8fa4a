//! Struct layouts, member paths, enum names and function parameters, from kernel BTF, from DWARF and from C definitions.
//!
//! This crate opens no file: bytes come in, data goes out. Malformed bytes give a [`TypeError`], never a panic, and both time
//! and memory are bounded by the size of the input.
//!
//! All queries go to a [`TypeStore`]. It looks names up in its own definitions first, and then in its sources, in the order in
//! which they were added:
//!
//! ```
//! use typeinfo::{Arch, Btf, Dwarf, DwarfSections, NameKind, TypeError, TypeKind, TypeStore};
//!
//! fn look(kernel_btf: &[u8], elf: &[u8]) -> Result<(), TypeError> {
//!     let mut types = TypeStore::new(Arch::X86_64);
//!     let kernel = types.add_btf(Btf::parse(kernel_btf)?)?;
//!     let program = types.add_dwarf(Dwarf::new(DwarfSections::from_elf(elf)?)?)?;
//!
//!     // `curtask->mm->pgd`: one member after the other, through any anonymous structs between.
//!     let task = types.require(NameKind::Struct, "task_struct")?;
//!     let mm = types.member(task, "mm")?;
//!     println!("at {} in {}", mm.byte_offset(), types.display(task));
//!     if let TypeKind::Pointer { target, .. } = types.get(types.strip(mm.ty)?)?.kind {
//!         println!("a pointer to {}", types.display(target));
//!     }
//!     // Members of members and of array elements in one go, as in `offsetof`.
//!     let field = types.path(task, "thread_info.flags")?;
//!     println!("{} bytes at {}", types.size_of(field.ty)?, field.byte_offset());
//!
//!     // Arguments by name, and the id that an fentry or tp_btf program attaches to.
//!     if let Some(open) = types.function(kernel, "vfs_open")? {
//!         println!("{:?} {:?}", types.btf_id(open.ty), open.params);
//!     }
//!     if let Some(switch) = types.raw_tracepoint("sched_switch")? {
//!         println!("{:?} {:?}", types.btf_id(switch.ty), switch.params);
//!     }
//!
//!     // Names of an enumeration that the traced program has.
//!     if let Some(state) = types.find_in(program, NameKind::Enum, "nvmf_tgt_state")? {
//!         println!("{:?} {:?}", types.enum_name(state, 3)?, types.enumerators(state)?);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Definitions in scripts are given with [`TypeStore::define_record`], [`TypeStore::define_enum`] and
//! [`TypeStore::define_typedef`], their member types with [`TypeStore::base`], [`TypeStore::pointer_to`],
//! [`TypeStore::array_of`]; the [`layout`] engine finds the offsets.
#![forbid(unsafe_code)]

mod btf;
mod declare;
mod dwarf;
mod error;
mod frames;
mod inflate;
pub mod layout;
mod model;
mod names;
mod own;
mod source;
mod store;

pub use btf::Btf;
pub use dwarf::{
    DebugSection, Dwarf, DwarfSections, LazyInfo, LineBounds, ReadSection, SectionFormat,
    SourceLine,
};
pub use error::{FrameFault, TypeError};
pub use frames::{FrameSection, FrameSections, FrameTable};
pub use inflate::{InflateBudget, inflate, inflated};
pub use model::{
    BitAccess, BtfId, Enumerator, Field, Function, IntClass, Member, NameKind, Param, Qualifier,
    RawTracepoint, SourceId, Tag, Type, TypeKind, TypeRef, Variable,
};
pub use own::{EnumDef, MemberDef, RecordDef};
pub use store::TypeStore;
pub use uapi::Arch;
