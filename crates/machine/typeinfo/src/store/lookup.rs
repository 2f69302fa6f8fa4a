//! Look-up of functions, tracepoints and enumerators by name, and of similar names.

use super::TypeStore;
use crate::error::TypeError;
use crate::model::{Function, NameKind, RawTracepoint, SourceId, TypeKind, TypeRef, Variable};
use crate::names::NearestNames;

/// Limit on near names in a message.
const HINTS: usize = 3;
/// Prefixes of kernel functions that exist for each tracepoint and name its parameters, unlike
/// `btf_trace_NAME` (`include/linux/tracepoint.h` and `include/trace/bpf_probe.h`); the first
/// exists since Linux 6.4.
const NAMING: [&str; 3] = ["__probestub_", "__bpf_trace_", "__traceiter_"];

impl TypeStore<'_> {
    /// Finds a definition like [`TypeStore::find`], but returns an error with the nearest names if
    /// there is none.
    pub fn require(&self, kind: NameKind, name: &str) -> Result<TypeRef, TypeError> {
        match self.find(kind, name)? {
            Some(ty) => Ok(ty),
            None => Err(TypeError::NoName {
                kind: kind.words(),
                name: name.to_owned(),
                nearest: self.nearest(kind, name),
            }),
        }
    }

    /// Announces names of types for later queries. Large debug information that is read in parts is
    /// then searched for all of them in one pass; nothing else changes.
    pub fn prepare(&self, names: &[&str]) {
        self.ids().for_each(|id| self.source(id).prepare(names));
    }

    /// Returns the names of this kind that are most like the given one, nearest first.
    pub fn nearest(&self, kind: NameKind, name: &str) -> Vec<String> {
        let mut nearest = NearestNames::new(name, HINTS);
        for id in self.ids() {
            // A malformed source has no hints; looking up the type itself has reported the error.
            let _ = self.each_name(id, kind, &mut |known, _| {
                nearest.offer(known);
                true
            });
        }
        nearest.names()
    }

    /// Visits every named definition of this kind in a source; the function returns false to stop.
    pub fn each_name<'s>(
        &'s self,
        source: SourceId,
        kind: NameKind,
        look: &mut dyn FnMut(&'s str, TypeRef) -> bool,
    ) -> Result<(), TypeError> {
        self.source(source).visit(kind, look)
    }

    /// Finds a function of a source by its name, in DWARF also by its linkage name.
    pub fn function<'s>(
        &'s self,
        source: SourceId,
        name: &'s str,
    ) -> Result<Option<Function<'s>>, TypeError> {
        let Some(ty) = self.find_in(source, NameKind::Func, name)? else {
            return Ok(None);
        };
        let TypeKind::Func { returns, variadic } = self.get(ty)?.kind else {
            return Ok(None);
        };
        Ok(Some(Function {
            ty,
            name,
            params: self.params(ty)?,
            returns,
            variadic,
        }))
    }

    /// Returns the variables of a source with this name (DWARF only): several units may each have
    /// one of their own. For C++, `namespace::name` or the linkage name.
    pub fn variables(&self, source: SourceId, name: &str) -> Result<Vec<Variable<'_>>, TypeError> {
        self.source(source).variables(name)
    }

    /// Finds a tracepoint of the kernel, or of a module, as `raw_tp` and `tp_btf` programs see it.
    pub fn raw_tracepoint(&self, name: &str) -> Result<Option<RawTracepoint<'_>>, TypeError> {
        let Some(ty) = self.find(NameKind::Typedef, &format!("btf_trace_{name}"))? else {
            return Ok(None);
        };
        let mut params = self.params(ty)?;
        for prefix in NAMING {
            let Some(function) =
                self.find_in(ty.source, NameKind::Func, &format!("{prefix}{name}"))?
            else {
                continue;
            };
            let named = self.params(function)?;
            if named.len() == params.len() {
                params
                    .iter_mut()
                    .zip(named)
                    .for_each(|(param, named)| param.name = named.name);
                break;
            }
        }
        if !params.is_empty() {
            params.remove(0);
        }
        Ok(Some(RawTracepoint { ty, params }))
    }

    /// Returns the value of an enumerator by its name.
    pub fn enum_value(&self, ty: TypeRef, name: &str) -> Result<Option<i64>, TypeError> {
        Ok(self
            .enumerators(ty)?
            .iter()
            .find(|e| e.name == name)
            .map(|e| e.value))
    }

    /// Returns the first enumerator's name that has this value.
    pub fn enum_name(&self, ty: TypeRef, value: i64) -> Result<Option<&str>, TypeError> {
        Ok(self
            .enumerators(ty)?
            .iter()
            .find(|e| e.value == value)
            .map(|e| e.name))
    }

    /// Finds an enumerator by its name alone, as C scripts use it; returns the enumeration and the
    /// value.
    pub fn find_enumerator(&self, name: &str) -> Result<Option<(TypeRef, i64)>, TypeError> {
        for id in self.ids() {
            if let Some(found) = self.source(id).find_enumerator(name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
