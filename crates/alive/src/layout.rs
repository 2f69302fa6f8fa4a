//! Layouts of a program's structs as C text, for programs without debug information.

use bt_lang::ast::{CField, CRecord, ExprKind, ItemKind, RecordKind, Type, TypeKind};
use thiserror::Error;
use typeinfo::{MemberDef, NameKind, RecordDef, Tag, TypeError, TypeRef, TypeStore};

/// What is wrong with a layout.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// It is no C.
    #[error("{0}")]
    Syntax(String),
    /// A member's type is of a kind that layouts don't have.
    #[error("the type of {0} is not possible in a layout")]
    Type(String),
    /// The definitions contradict each other.
    #[error(transparent)]
    Types(#[from] TypeError),
}

/// Adds the structs and unions of a C text to the types, in their order: what is contained is defined before.
///
/// # Errors
/// The text is no C, has types other than numbers, pointers, arrays, structs and unions, or defines something twice.
pub fn define(text: &str, types: &mut TypeStore<'_>) -> Result<(), LayoutError> {
    let parsed = bt_lang::parse(text);
    if let Some(wrong) = parsed.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        return Err(LayoutError::Syntax(wrong.message.clone()));
    }
    for item in &parsed.program.items {
        match &item.kind {
            ItemKind::Record(definition) => drop(record(definition, types)?),
            _ => return Err(LayoutError::Syntax("expected struct definitions only".to_owned())),
        }
    }
    Ok(())
}

fn record(definition: &CRecord, types: &mut TypeStore<'_>) -> Result<TypeRef, LayoutError> {
    let name = definition.name.as_ref().map(|name| name.text.clone());
    let fields = definition.fields.as_deref().unwrap_or_default();
    let members = fields.iter().map(|field| member(field, types)).collect::<Result<Vec<_>, _>>()?;
    let union = definition.kind == RecordKind::Union;
    Ok(types.define_record(RecordDef { union, name, members, packed: definition.packed, align: None })?)
}

fn member(field: &CField, types: &mut TypeStore<'_>) -> Result<MemberDef, LayoutError> {
    let name = field.name.as_ref().map(|name| name.text.clone());
    let unknown = || LayoutError::Type(name.clone().unwrap_or_default());
    if field.bits.is_some() {
        return Err(unknown());
    }
    let ty = member_type(&field.ty, types)?.ok_or_else(unknown)?;
    Ok(MemberDef { name, ty, bits: None, align: None })
}

fn member_type(ty: &Type, types: &mut TypeStore<'_>) -> Result<Option<TypeRef>, LayoutError> {
    Ok(match &ty.kind {
        TypeKind::Name(name) => types.base(name)?,
        TypeKind::Inline(definition) => Some(record(definition, types)?),
        TypeKind::Tagged(RecordKind::Struct, name) => types.find(NameKind::Struct, &name.text)?,
        TypeKind::Tagged(RecordKind::Union, name) => types.find(NameKind::Union, &name.text)?,
        TypeKind::Pointer(target) => {
            let target = match &target.kind {
                // What is only pointed to may be defined later, or nowhere.
                TypeKind::Tagged(RecordKind::Struct, name) => Some(types.forward(Tag::Struct, &name.text)?),
                TypeKind::Tagged(RecordKind::Union, name) => Some(types.forward(Tag::Union, &name.text)?),
                TypeKind::Function => Some(TypeRef::VOID),
                _ => member_type(target, types)?,
            };
            target.map(|target| types.pointer_to(target)).transpose()?
        }
        TypeKind::Array(element, count) => {
            let count = match count.as_deref().map(|count| &count.kind) {
                Some(ExprKind::Int(literal)) => Some(literal.value),
                None => None,
                _ => return Ok(None),
            };
            let element = member_type(element, types)?;
            element.map(|element| types.array_of(element, count)).transpose()?
        }
        _ => None,
    })
}
