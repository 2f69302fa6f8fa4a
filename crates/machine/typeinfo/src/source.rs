//! The queries that every source of types answers.

use crate::error::TypeError;
use crate::model::{Enumerator, Member, NameKind, Param, SourceId, Type, TypeRef, Variable};

/// Called with each name that a source has; it returns false to stop.
pub(crate) type Visit<'v, 's> = &'v mut dyn FnMut(&'s str, TypeRef) -> bool;

/// A reader of types. It answers from the bytes at once and keeps no copy.
pub(crate) trait Source: Send + Sync {
    /// A type.
    fn get(&self, ty: TypeRef) -> Result<Type<'_>, TypeError>;
    /// The members of a struct or union, none of any other type.
    fn members(&self, ty: TypeRef) -> Result<Vec<Member<'_>>, TypeError>;
    /// The names of an enumeration, none of any other type.
    fn enumerators(&self, ty: TypeRef) -> Result<Vec<Enumerator<'_>>, TypeError>;
    /// The parameters of a function or of its type, none of any other type.
    fn params(&self, ty: TypeRef) -> Result<Vec<Param<'_>>, TypeError>;
    /// The first definition with this name.
    fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError>;
    /// Every definition of this kind that has a name.
    fn visit<'s>(&'s self, kind: NameKind, visit: Visit<'_, 's>) -> Result<(), TypeError>;
    /// The enumeration, and the value in it, that has an enumerator of this name.
    fn find_enumerator(&self, name: &str) -> Result<Option<(TypeRef, i64)>, TypeError>;
    /// The variables of this name that are defined outside of functions.
    fn variables(&self, _name: &str) -> Result<Vec<Variable<'_>>, TypeError> {
        Ok(Vec::new())
    }
    /// Names that will be asked for: a source that is searched for names looks for all of them in one pass.
    fn prepare(&self, _names: &[&str]) {}
    /// The id of a type in the kernel's or a module's BTF.
    fn btf_id(&self, _ty: TypeRef) -> Option<(SourceId, u32)> {
        None
    }
}
