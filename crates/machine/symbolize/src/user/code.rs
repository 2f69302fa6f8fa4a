//! Code at an address: from the mappings of the process, or from the files that probes are in.

use std::path::Path;

use elf::{ElfKind, ElfVaddr, ProcAddr};
use host::{FilePlace, Process, VDSO};
use kernel_text::maps::Backing;

use super::{Table, UserSymbols, is_vdso};
use crate::{CodeAt, UnnamedCode};

/// Address of position-independent programs of x86-64 that are not randomized: two thirds of the
/// address space, `ELF_ET_DYN_BASE` of `arch/x86/include/asm/elf.h`.
const PLAIN_BASE: u64 = 0x5555_5555_4000;

impl UserSymbols {
    /// Returns the code at an address of an ended process, from the files with probes. These must
    /// have fixed addresses, by themselves or because addresses are not randomized.
    pub(super) fn in_probed(&self, address: u64, caller: bool) -> CodeAt {
        let exact = |address| {
            let mut found = self
                .options
                .probed
                .iter()
                .filter_map(|path| self.in_file(path, address));
            found.next().unwrap_or(CodeAt::Unknown)
        };
        code_of_frame(address, caller, exact)
    }

    fn in_file(&self, path: &Path, address: u64) -> Option<CodeAt> {
        let file = FilePlace::at(path);
        let loaded = file.load_notes().ok()?;
        let image = loaded.image().ok()?;
        let base = if image.kind() == ElfKind::Fixed {
            0
        } else {
            PLAIN_BASE
        };
        let vaddr = ElfVaddr(address.checked_sub(base)?);
        let table = self.table_of(path, 0, || Table::read(&file, &self.options.folders));
        let offset = image.address_map().to_offset(vaddr).ok()?;
        self.symbol(&table, offset.0, path).map(CodeAt::Functions)
    }

    /// Returns the code at an address, from the mappings of a process.
    pub(super) fn in_process(&self, process: &Process, address: u64, caller: bool) -> CodeAt {
        code_of_frame(address, caller, |address| {
            self.in_mappings(process, address)
        })
    }

    fn in_mappings(&self, process: &Process, address: u64) -> CodeAt {
        let mapping = process.maps().at(ProcAddr(address));
        let Some(mapping) = mapping.filter(|mapping| mapping.permissions.execute) else {
            return CodeAt::NotCode;
        };
        let unnamed = |name: String, offset| {
            let module = Some((name, offset));
            CodeAt::Unnamed(UnnamedCode { address, module })
        };
        let distance = address - mapping.start.0;
        match &mapping.backing {
            Backing::Special(name) if is_vdso(mapping) => {
                let path = Path::new(VDSO);
                let found = self.symbol(&self.table_of(path, 0, Table::vdso), distance, path);
                found.map_or_else(|| unnamed(name.clone(), distance), CodeAt::Functions)
            }
            Backing::Special(name) if !is_memory(name) => unnamed(name.clone(), distance),
            Backing::File { path, .. } if !is_made_of_memory(path) => {
                let offset = mapping.offset.0.saturating_add(distance);
                let table = self.table(process, path, mapping.inode);
                let found = self.symbol(&table, offset, path);
                if found.is_none() && table.is_stripped {
                    self.stripped.borrow_mut().insert(path.clone());
                }
                found.map_or_else(|| unnamed(file_name(path), offset), CodeAt::Functions)
            }
            _ => self.jit(process, address),
        }
    }
}

/// Returns true if a mapping of this name is memory of the process's own (`arch_vma_name` and
/// `get_vma_name` of the kernel's `fs/proc/task_mmu.c`): code there was made at run time.
fn is_memory(name: &str) -> bool {
    name.starts_with("[anon") || name.starts_with("[heap]") || name.starts_with("[stack")
}

/// Returns true if a file is memory that has a name: memfd_create(2), `MAP_SHARED` without a file,
/// huge pages (mmap(2)).
fn is_made_of_memory(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    [b"/memfd:".as_slice(), b"/dev/zero", b"/anon_hugepage"]
        .iter()
        .any(|start| path.starts_with(start))
}

/// Returns the code of a frame of a stack. A `caller` is at its call, one byte before the address
/// where it goes on. A frame that goes on without a call is a signal's, whose address can be the
/// first byte of a function.
fn code_of_frame(address: u64, caller: bool, exact: impl Fn(u64) -> CodeAt) -> CodeAt {
    if !caller || address == 0 {
        return exact(address);
    }
    match exact(address - 1) {
        CodeAt::Functions(mut functions) => {
            if let Some(outer) = functions.last_mut() {
                outer.offset += 1;
            }
            CodeAt::Functions(functions)
        }
        CodeAt::Unnamed(UnnamedCode { module, .. }) => {
            let found = exact(address);
            if matches!(found, CodeAt::Functions(_)) {
                return found;
            }
            // Also if the call is the mapping's last instruction.
            let module = module.map(|(name, offset)| (name, offset.saturating_add(1)));
            CodeAt::Unnamed(UnnamedCode { address, module })
        }
        _ => exact(address),
    }
}

/// Returns a path's last part. The kernel's names of files without a path (`/memfd:name`) have no
/// other.
fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;

    /// Returns code from 0x100 to 0x130: `first` in its first 16 bytes, `second` in the next, no
    /// name in the last.
    fn exact(address: u64) -> CodeAt {
        let function = |name: &str, start| {
            let symbol = Symbol {
                name: name.to_owned(),
                offset: address - start,
                ..Symbol::default()
            };
            CodeAt::Functions(vec![symbol])
        };
        match address {
            0x100..0x110 => function("first", 0x100),
            0x110..0x120 => function("second", 0x110),
            0x120..0x130 => CodeAt::Unnamed(UnnamedCode {
                address,
                module: Some(("lib.so".to_owned(), address - 0x100)),
            }),
            _ => CodeAt::NotCode,
        }
    }

    fn shown(address: u64, caller: bool) -> String {
        match code_of_frame(address, caller, exact) {
            CodeAt::Functions(functions) => {
                format!("{}+{}", functions[0].name, functions[0].offset)
            }
            CodeAt::Unnamed(code) => code.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_caller_is_named_by_its_call() {
        assert_eq!(shown(0x110, false), "second+0");
        // The last instruction of `first` is a call that does not return.
        assert_eq!(shown(0x110, true), "first+16");
        assert_eq!(shown(0x111, true), "second+1");
        assert_eq!(shown(0x121, true), "lib.so+0x21");
        assert_eq!(shown(0x130, true), "lib.so+0x30");
        assert_eq!(shown(0x130, false), "NotCode");
        // A signal's frame goes on at the first byte of a function.
        assert_eq!(shown(0x100, true), "first+0");
        assert_eq!(shown(0, true), "NotCode");
    }

    #[test]
    fn code_without_a_file_is_shown_by_its_address() {
        assert_eq!(
            UnnamedCode {
                address: 0x7f00,
                module: None
            }
            .to_string(),
            "0x7f00"
        );
    }

    #[test]
    fn data_of_this_process_is_no_code() {
        static DATA: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);
        let symbols = UserSymbols::new(crate::SymbolOptions::default(), crate::ignore());
        let at = |address| symbols.code(std::process::id(), address, false);
        assert_eq!(
            at(std::ptr::from_ref(&DATA) as usize as u64),
            CodeAt::NotCode
        );
        assert_eq!(at(1), CodeAt::NotCode);
        let own = data_of_this_process_is_no_code as fn() as usize as u64;
        assert!(matches!(at(own), CodeAt::Functions(_)), "{:?}", at(own));
        assert_eq!(symbols.code(u32::MAX, own, false), CodeAt::Unknown);
    }
}
