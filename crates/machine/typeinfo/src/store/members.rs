//! Look-up of members by name and by path, also through anonymous structs.

use super::{MAX_CHAIN, TypeStore};
use crate::error::TypeError;
use crate::model::{Field, TypeKind, TypeRef};
use crate::names::NearestNames;

/// Limit on members visited by one search: a broken file can nest exponentially many.
const MAX_VISITED: usize = 1 << 16;
/// Limit on near names in a message.
const HINTS: usize = 3;

impl TypeStore<'_> {
    /// Finds a member by its name. The error for an unknown one has the nearest names.
    pub fn member(&self, ty: TypeRef, name: &str) -> Result<Field, TypeError> {
        if let Some(field) = self.find_member(ty, name)? {
            return Ok(field);
        }
        let mut nearest = NearestNames::new(name, HINTS);
        self.each_member(ty, &mut |known, _| {
            nearest.offer(known);
            true
        })?;
        Err(TypeError::NoMember {
            name: self.display(ty),
            member: name.to_owned(),
            nearest: nearest.names(),
        })
    }

    /// Finds a member by its name, if there is one. The type must be a struct or union.
    pub fn find_member(&self, ty: TypeRef, name: &str) -> Result<Option<Field>, TypeError> {
        let mut found = None;
        self.each_member(ty, &mut |known, field| {
            found = (known == name).then_some(field);
            found.is_none()
        })?;
        Ok(found)
    }

    /// Visits every member that a name reaches, including those of anonymous structs and unions, in
    /// order. The function returns false to stop.
    pub fn each_member<'s>(
        &'s self,
        ty: TypeRef,
        look: &mut dyn FnMut(&'s str, Field) -> bool,
    ) -> Result<(), TypeError> {
        match self.kind(ty)? {
            TypeKind::Struct { .. } | TypeKind::Union { .. } => {}
            TypeKind::Forward { .. } => {
                return Err(TypeError::Incomplete {
                    name: self.display(ty),
                });
            }
            _ => {
                return Err(TypeError::WrongKind {
                    name: self.display(ty),
                    expected: "a struct or union",
                });
            }
        }
        let mut budget = MAX_VISITED;
        self.walk(ty, 0, &mut budget, MAX_CHAIN, look).map(|_| ())
    }

    fn walk<'s>(
        &'s self,
        ty: TypeRef,
        base: u64,
        budget: &mut usize,
        depth: usize,
        look: &mut dyn FnMut(&'s str, Field) -> bool,
    ) -> Result<bool, TypeError> {
        let members = self.members(ty)?;
        *budget = budget.saturating_sub(members.len().max(1));
        if *budget == 0 || depth == 0 {
            return Err(self.too_deep(ty));
        }
        for member in members {
            let bit_offset = base
                .checked_add(member.bit_offset)
                .ok_or_else(|| self.too_deep(ty))?;
            let go_on = match member.name {
                Some(name) => look(
                    name,
                    Field {
                        ty: member.ty,
                        bit_offset,
                        bit_size: member.bit_size,
                    },
                ),
                None => self.walk(member.ty, bit_offset, budget, depth - 1, look)?,
            };
            if !go_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the byte offset of a member from the beginning of its structure, as a BPF
    /// instruction holds it; see [`Self::path`].
    ///
    /// # Errors
    /// Returns an error if there is no such member, or if it is more than 32 KiB away.
    pub fn short_offset(&self, ty: TypeRef, path: &str) -> Result<i16, TypeError> {
        let field = self.path(ty, path)?;
        i16::try_from(field.byte_offset()).map_err(|_| TypeError::TooFar {
            path: path.to_owned(),
        })
    }

    /// Finds a member of a member, or of an array's element: `sas_ss_flags`, `thread_info.flags`,
    /// `comm[3]`, `a.b[1][2].c`. Does not follow pointers, since that takes a load, and does not
    /// check an index against the array's length.
    pub fn path(&self, ty: TypeRef, path: &str) -> Result<Field, TypeError> {
        let mut at = Field {
            ty,
            bit_offset: 0,
            bit_size: None,
        };
        let broken = |rest: &str, expected| {
            let column = path.len() - rest.len() + 1;
            TypeError::Path {
                path: path.to_owned(),
                column,
                expected,
            }
        };
        let mut rest = path;
        let mut first = true;
        while first || !rest.is_empty() {
            let step = if let Some(index) = rest.strip_prefix('[') {
                let (digits, behind) = index
                    .split_once(']')
                    .ok_or_else(|| broken(rest, "a number and ]"))?;
                let number = digits.parse().map_err(|_| broken(index, "a number"))?;
                rest = behind;
                self.element(at.ty, number)?
            } else {
                let name = if first {
                    rest
                } else {
                    rest.strip_prefix('.')
                        .ok_or_else(|| broken(rest, ". or ["))?
                };
                let end = name.find(['.', '[']).unwrap_or(name.len());
                if end == 0 {
                    return Err(broken(name, "a member's name"));
                }
                rest = &name[end..];
                self.member(at.ty, &name[..end])?
            };
            let bit_offset = at
                .bit_offset
                .checked_add(step.bit_offset)
                .ok_or_else(|| self.too_deep(ty))?;
            at = Field { bit_offset, ..step };
            first = false;
        }
        Ok(at)
    }

    /// Returns an element of an array, as a field of it.
    pub fn element(&self, array: TypeRef, index: u64) -> Result<Field, TypeError> {
        let TypeKind::Array { element, .. } = self.kind(array)? else {
            return Err(TypeError::WrongKind {
                name: self.display(array),
                expected: "an array",
            });
        };
        let bits = self
            .size_of(element)?
            .checked_mul(index)
            .and_then(|bytes| bytes.checked_mul(8));
        Ok(Field {
            ty: element,
            bit_offset: bits.ok_or_else(|| self.too_deep(array))?,
            bit_size: None,
        })
    }
}
