//! Types as C writes them, for listings and messages.

use std::fmt::Write as _;

use crate::error::TypeError;
use crate::model::{Enumerator, Qualifier, Tag, Type, TypeKind, TypeRef};
use crate::store::{MAX_CHAIN, TypeStore};

/// Limit on the length of a listing in bytes: a broken file can describe exponentially long ones.
const MAX_TEXT: usize = 1 << 20;
/// Levels of anonymous structs that are written out.
const MAX_NESTED: usize = 16;
/// Levels of functions that take functions that are written out.
const MAX_FUNCTIONS: usize = 4;
/// Limit on written parameters, including parameters of parameters: a broken file can have
/// exponentially many.
const MAX_PARAMS: usize = 256;

impl TypeStore<'_> {
    /// Returns the type's name as C writes it: `struct task_struct *`, `const char [16]`. Broken
    /// parts become `?`.
    pub fn display(&self, ty: TypeRef) -> String {
        self.declare(ty, "")
    }

    /// Returns a declaration of a name with this type: `char comm[16]`, `int (*fn)(void *)`.
    pub fn declare(&self, ty: TypeRef, name: &str) -> String {
        self.declarator(ty, name.to_owned(), 0, &mut { MAX_PARAMS })
    }

    /// Returns the whole definition of a struct, union or enum without the final semicolon,
    /// including members of anonymous structs. Other types are formatted as by
    /// [`TypeStore::display`]. With `offsets`, each member is followed by its offset and size in
    /// bytes, a bit-field by its bits (`4:3` is bit 3 of byte 4).
    pub fn definition(&self, ty: TypeRef, offsets: bool) -> Result<String, TypeError> {
        let ty = self.strip(ty)?;
        let mut text = String::new();
        match self.get(ty)?.kind {
            TypeKind::Struct { .. } | TypeKind::Union { .. } => {
                self.write_record(&mut text, ty, 0, 0, offsets)?;
            }
            TypeKind::Enum { .. } => self.write_enum(&mut text, ty)?,
            _ => text = self.display(ty),
        }
        Ok(text)
    }

    /// Formats the type around the name from the inside out, as C writes it.
    fn declarator(
        &self,
        ty: TypeRef,
        mut name: String,
        level: usize,
        budget: &mut usize,
    ) -> String {
        let mut at = ty;
        for _ in 0..MAX_CHAIN {
            let Ok(Type { name: own, kind }) = self.get(at) else {
                return joined("?", &name);
            };
            match kind {
                TypeKind::Pointer { target, .. } => {
                    let around = matches!(
                        self.get(target).map(|target| target.kind),
                        Ok(TypeKind::Array { .. } | TypeKind::Func { .. })
                    );
                    name = if around {
                        format!("(*{name})")
                    } else {
                        format!("*{name}")
                    };
                    at = target;
                }
                TypeKind::Array { element, count } => {
                    let count = count.map_or_else(String::new, |count| count.to_string());
                    let _ = write!(name, "[{count}]");
                    at = element;
                }
                TypeKind::Func { returns, variadic } => {
                    let params = self.parameters(at, variadic, level, budget);
                    let known = if name.is_empty() {
                        own.unwrap_or_default()
                    } else {
                        name.as_str()
                    };
                    name = format!("{known}({params})");
                    at = returns;
                }
                TypeKind::Qualified { qualifier, target } => {
                    let pointer = matches!(
                        self.get(target).map(|t| t.kind),
                        Ok(TypeKind::Pointer { .. })
                    );
                    let word = word(qualifier);
                    if pointer && !word.is_empty() {
                        name = joined(word, &name);
                    } else if !word.is_empty() {
                        return joined(word, &self.declarator_of(target, name, level, budget));
                    }
                    at = target;
                }
                TypeKind::Typedef { target } if own.is_none() => at = target,
                _ => return joined(&plain(own, kind), &name),
            }
        }
        joined("?", &name)
    }

    /// Formats the type after a leading qualifier; stops at `MAX_CHAIN` levels.
    fn declarator_of(&self, ty: TypeRef, name: String, level: usize, budget: &mut usize) -> String {
        if level >= MAX_CHAIN {
            joined("?", &name)
        } else {
            self.declarator(ty, name, level + 1, budget)
        }
    }

    fn parameters(
        &self,
        func: TypeRef,
        variadic: bool,
        level: usize,
        budget: &mut usize,
    ) -> String {
        if level >= MAX_FUNCTIONS {
            return "...".to_owned();
        }
        let params = self.source(func.source()).params(func).unwrap_or_default();
        let mut list: Vec<String> = Vec::new();
        for param in params {
            if *budget == 0 {
                list.push("...".to_owned());
                break;
            }
            *budget -= 1;
            list.push(self.declarator(
                param.ty,
                param.name.unwrap_or_default().to_owned(),
                level + 1,
                budget,
            ));
        }
        if variadic {
            list.push("...".to_owned());
        }
        if list.is_empty() {
            "void".to_owned()
        } else {
            list.join(", ")
        }
    }

    fn write_record(
        &self,
        text: &mut String,
        ty: TypeRef,
        base: u64,
        depth: usize,
        offsets: bool,
    ) -> Result<(), TypeError> {
        let Type { name, kind } = self.get(ty)?;
        let indent = "    ".repeat(depth + 1);
        let _ = writeln!(
            text,
            "{} {{",
            plain(name, kind).trim_end_matches(" (anonymous)")
        );
        for member in self.members(ty)? {
            if text.len() > MAX_TEXT {
                return Err(TypeError::TooMany {
                    what: "bytes of a definition",
                    limit: MAX_TEXT as u64,
                });
            }
            let inner = self.strip(member.ty)?;
            let nested = self.get(inner)?;
            let open = nested.name.is_none()
                && matches!(
                    nested.kind,
                    TypeKind::Struct { .. } | TypeKind::Union { .. }
                );
            let bit_offset = base.saturating_add(member.bit_offset);
            text.push_str(&indent);
            if open && inner == member.ty && depth < MAX_NESTED {
                self.write_record(text, inner, bit_offset, depth + 1, offsets)?;
                if let Some(name) = member.name {
                    let _ = write!(text, " {name}");
                }
            } else {
                text.push_str(&self.declare(member.ty, member.name.unwrap_or_default()));
            }
            if let Some(bits) = member.bit_size {
                let _ = write!(text, " : {bits}");
            }
            text.push(';');
            if offsets {
                let at = bit_offset / 8;
                let _ = match member.bit_size {
                    Some(_) => write!(text, " /* {at}:{} */", bit_offset % 8),
                    None => write!(text, " /* {at} {} */", self.size_of(member.ty).unwrap_or(0)),
                };
            }
            text.push('\n');
        }
        let _ = write!(text, "{}}}", "    ".repeat(depth));
        Ok(())
    }

    fn write_enum(&self, text: &mut String, ty: TypeRef) -> Result<(), TypeError> {
        let Type { name, kind } = self.get(ty)?;
        let signed = matches!(kind, TypeKind::Enum { signed: true, .. });
        let _ = writeln!(
            text,
            "{} {{",
            plain(name, kind).trim_end_matches(" (anonymous)")
        );
        for Enumerator { name, value } in self.enumerators(ty)? {
            let _ = if signed {
                writeln!(text, "    {name} = {value},")
            } else {
                writeln!(text, "    {name} = {},", value as u64)
            };
        }
        text.push('}');
        Ok(())
    }
}

fn word(qualifier: Qualifier) -> &'static str {
    match qualifier {
        Qualifier::Const => "const",
        Qualifier::Volatile => "volatile",
        Qualifier::Restrict => "restrict",
        Qualifier::Atomic => "_Atomic",
        Qualifier::Tag => "",
    }
}

/// Formats a type that comes before the name.
fn plain(name: Option<&str>, kind: TypeKind) -> String {
    let tag = match kind {
        TypeKind::Struct { .. } => Tag::Struct,
        TypeKind::Union { .. } => Tag::Union,
        TypeKind::Enum { .. } => Tag::Enum,
        TypeKind::Forward { tag } => tag,
        TypeKind::Void => return "void".to_owned(),
        _ => return name.unwrap_or("?").to_owned(),
    };
    format!("{} {}", tag.word(), name.unwrap_or("(anonymous)"))
}

fn joined(ty: &str, name: &str) -> String {
    if name.is_empty() {
        ty.to_owned()
    } else {
        format!("{ty} {name}")
    }
}
