//! The arguments of probes and the fields of structs, as declarations.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use typeinfo::{Arch, Btf, Dwarf, DwarfSections, NameKind, Param, SourceId, TypeRef, TypeStore};

use crate::facts::Facts;
use bt_compiler::TargetFacts as _;

/// Types of the kernel and of files, read on first use.
pub struct Declarations<'a> {
    facts: &'a Facts,
    kernel: OnceCell<Option<SourceTypes<'a>>>,
    files: RefCell<HashMap<String, Option<Rc<SourceTypes<'a>>>>>,
}

impl std::fmt::Debug for Declarations<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Declarations").finish_non_exhaustive()
    }
}

/// Types of one source.
struct SourceTypes<'a> {
    store: TypeStore<'a>,
    source: SourceId,
}

impl<'a> Declarations<'a> {
    /// Creates it; the types of the kernel and of files are read on first use.
    pub fn new(facts: &'a Facts) -> Self {
        Self {
            facts,
            kernel: OnceCell::new(),
            files: RefCell::default(),
        }
    }

    /// Returns the arguments of a probe, a declaration each.
    pub fn arguments(&self, kind: &str, probe: &str) -> Vec<String> {
        let (target, name) = probe.rsplit_once(':').unwrap_or(("", probe));
        match kind {
            "tracepoint" => {
                let format = self.facts.tracepoint(target, name);
                let fields = format.iter().flat_map(|format| format.own_fields());
                fields
                    .map(|field| declared(&field.type_text, &field.name))
                    .collect()
            }
            "rawtracepoint" => self.kernel().map_or_else(Vec::new, |known| {
                let found = known.store.raw_tracepoint(name).ok().flatten();
                found.map_or_else(Vec::new, |found| known.params(&found.params))
            }),
            "kprobe" | "kretprobe" | "fentry" | "fexit" => self
                .kernel()
                .map_or_else(Vec::new, |known| known.function(name, kind == "fexit")),
            "uprobe" | "uretprobe" => self
                .file(target)
                .map_or_else(Vec::new, |known| known.function(name, false)),
            _ => Vec::new(),
        }
    }

    /// Returns the definitions of a struct, each with its source: the kernel's, and that of the
    /// first of the process's files that has one.
    pub fn definitions(&self, kind: NameKind, name: &str) -> Vec<(String, String)> {
        let of_kernel = self.kernel().and_then(|known| known.definition(kind, name));
        let of_kernel = of_kernel.map(|definition| ("vmlinux".to_owned(), definition));
        let of_process = self.facts.file_names().into_iter().find_map(|file| {
            let definition = self.file(&file)?.definition(kind, name)?;
            Some((file, definition))
        });
        of_kernel.into_iter().chain(of_process).collect()
    }

    fn kernel(&self) -> Option<&SourceTypes<'a>> {
        let read = || {
            let mut store = TypeStore::new(Arch::HOST);
            let source = store
                .add_btf(Btf::parse(self.facts.kernel_btf()?).ok()?)
                .ok()?;
            Some(SourceTypes { store, source })
        };
        self.kernel.get_or_init(read).as_ref()
    }

    fn file(&self, path: &str) -> Option<Rc<SourceTypes<'a>>> {
        if let Some(known) = self.files.borrow().get(path) {
            return known.clone();
        }
        let read = || {
            let mut store = TypeStore::new(Arch::HOST);
            let sections = DwarfSections::from_elf(self.facts.debug_elf(path)?).ok()?;
            let source = store.add_dwarf(Dwarf::new(sections).ok()?).ok()?;
            Some(Rc::new(SourceTypes { store, source }))
        };
        let known = read();
        self.files
            .borrow_mut()
            .insert(path.to_owned(), known.clone());
        known
    }
}

impl SourceTypes<'_> {
    fn definition(&self, kind: NameKind, name: &str) -> Option<String> {
        let ty = self.store.find(kind, name).ok().flatten()?;
        self.store.definition(ty, false).ok()
    }

    fn function(&self, name: &str, returns: bool) -> Vec<String> {
        let Some(function) = self.store.function(self.source, name).ok().flatten() else {
            return Vec::new();
        };
        let mut all = self.params(&function.params);
        if returns {
            all.push(self.declare(function.returns, "retval"));
        }
        all
    }

    fn params(&self, params: &[Param<'_>]) -> Vec<String> {
        params
            .iter()
            .map(|param| self.declare(param.ty, param.name.unwrap_or("?")))
            .collect()
    }

    fn declare(&self, ty: TypeRef, name: &str) -> String {
        declared(&self.store.display(ty), name)
    }
}

/// Formats a declaration as bpftrace writes it: the stars follow the type directly.
fn declared(ty: &str, name: &str) -> String {
    format!("{} {name}", ty.replace(" *", "*"))
}
