//! Conversion of the compiler's types to the runtime's.

use std::sync::Arc;

use typeinfo::TypeRef;

use super::{ShownLayout, Types};
use crate::ty::{Space, Ty};
use bt_abi::{EnumNames, Field, Layout, LayoutKind, ValueType};

/// Limit on the depth to which nested structs are described.
const MAX_NESTING: u32 = 8;
/// Limit on the fields of a struct, those of nested structs included. A struct with more shows
/// none.
const MAX_SHOWN: usize = 1 << 16;

impl Types<'_> {
    /// Returns the same type for the runtime.
    pub(crate) fn value_type(&self, ty: &Ty) -> ValueType {
        self.value_type_within(ty, MAX_NESTING)
    }

    fn value_type_within(&self, ty: &Ty, depth: u32) -> ValueType {
        match ty {
            Ty::Enum { ty, size, signed } => ValueType::Enum {
                size: *size,
                signed: *signed,
                names: self.enum_names(*ty),
            },
            Ty::Array { elem, count } => ValueType::Array {
                element: Box::new(self.value_type_within(elem, depth)),
                count: *count,
            },
            Ty::Tuple(_) | Ty::Record(_) => {
                let kind = if matches!(ty, Ty::Tuple(_)) {
                    LayoutKind::Tuple
                } else {
                    LayoutKind::Record
                };
                let fields = ty.parts().into_iter().map(|(name, offset, ty)| Field {
                    name: name.map(str::to_owned),
                    offset,
                    ty: self.value_type_within(ty, depth),
                    bits: None,
                });
                ValueType::Tuple(Arc::new(Layout {
                    kind,
                    size: ty.size(),
                    fields: fields.collect(),
                }))
            }
            Ty::C { ty, size } => ValueType::Tuple(self.layout(*ty, *size, depth).0),
            _ => ty.in_memory().into_owned(),
        }
    }

    fn enum_names(&self, ty: TypeRef) -> Arc<EnumNames> {
        let mut known = self.enums.borrow_mut();
        let names = known.entry(ty).or_insert_with(|| {
            let name = self
                .store
                .get(ty)
                .ok()
                .and_then(|ty| ty.name)
                .unwrap_or_default()
                .to_owned();
            let values = self.store.enumerators(ty).unwrap_or_default();
            let values = values
                .iter()
                .map(|known| (known.value, known.name.to_owned()))
                .collect();
            Arc::new(EnumNames { name, values })
        });
        Arc::clone(names)
    }

    /// Returns a struct's layout, and the number of fields shown. Each layout is built once;
    /// otherwise nested structs would double again and again.
    fn layout(&self, ty: TypeRef, size: u32, depth: u32) -> ShownLayout {
        let known = self.layouts.borrow().get(&(ty, depth)).cloned();
        known.unwrap_or_else(|| {
            let made = self.make_layout(ty, size, depth);
            self.layouts.borrow_mut().insert((ty, depth), made.clone());
            made
        })
    }

    fn make_layout(&self, ty: TypeRef, size: u32, depth: u32) -> ShownLayout {
        let mut fields = Vec::new();
        let mut shown = 1_usize;
        if depth > 0 {
            let _ = self.store.each_member(ty, &mut |name, field| {
                let (offset, bits) = match field.bit_access() {
                    Some(bits) => (bits.byte_offset, Some((bits.shift as u8, bits.bits as u8))),
                    None => (field.byte_offset(), None),
                };
                let inner = self.ty_in(field.ty, Space::Any);
                shown = shown.saturating_add(self.shown(&inner, depth - 1));
                let inner = self.value_type_within(&inner, depth - 1);
                if offset + u64::from(inner.size()) <= u64::from(size) {
                    fields.push(Field {
                        name: Some(name.to_owned()),
                        offset: offset as u32,
                        ty: inner,
                        bits,
                    });
                }
                shown <= MAX_SHOWN
            });
        }
        if shown > MAX_SHOWN {
            fields.clear();
        }
        (
            Arc::new(Layout {
                kind: LayoutKind::Struct,
                size,
                fields,
            }),
            shown.min(MAX_SHOWN),
        )
    }

    /// Returns the number of values shown for one value of the type.
    fn shown(&self, ty: &Ty, depth: u32) -> usize {
        match ty {
            Ty::C { ty, size } => self.layout(*ty, *size, depth).1,
            Ty::Array { elem, count } => self.shown(elem, depth).saturating_mul(*count as usize),
            _ => 1,
        }
    }
}
