//! Values from the bytes of a place.

use bt_lang::Span;
use typeinfo::{Field, TypeKind, TypeRef};

use super::Evaluator;
use super::error::{EvalError, Fault};
use super::value::{Operand, Place, Value};

/// Limit below which addresses are behind NULL: the first pages of a process are not mapped
/// (`vm.mmap_min_addr`).
pub(crate) const NEAR_NULL: u64 = 4096;

impl Evaluator<'_> {
    /// Returns the value of a place, as C would compute with it, or the place itself if it has no
    /// single value.
    pub fn load(&self, place: Place, span: Span) -> Result<Value, EvalError> {
        let kind = self.kind(place.ty, span)?;
        let size = match kind {
            TypeKind::Int { size, .. }
            | TypeKind::Float { size }
            | TypeKind::Pointer { size, .. }
            | TypeKind::Enum { size, .. } => u64::from(size),
            TypeKind::Void => return Err(self.untyped(place, span)),
            _ => return Ok(Value::Place(place)),
        };
        let (address, length) = match access(place, span)? {
            Some(access) => (
                place.address.wrapping_add(access.byte_offset),
                u64::from(access.load_size),
            ),
            None => (place.address, size),
        };
        let mut bytes = [0; 16];
        let Some(into) = bytes.get_mut(..length as usize) else {
            return Err(EvalError::other(
                span,
                format!(
                    "{} has {size} bytes, which is not the size of a number",
                    self.display(place.ty)
                ),
            ));
        };
        self.read(address, into, place.ty, span)?;
        self.decode(place, into, span)
    }

    /// Decodes the bytes of a place. For a bit-field these are the bytes of its load.
    pub(crate) fn decode(
        &self,
        place: Place,
        bytes: &[u8],
        span: Span,
    ) -> Result<Value, EvalError> {
        let mut word = [0; 16];
        word[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
        let raw = u128::from_le_bytes(word);
        let ty = place.ty;
        let kind = self.kind(ty, span)?;
        if let TypeKind::Float { size } = kind {
            // On other machines 16 bytes are IEEE 754's binary128.
            let known = size < 16 || self.types.store().abi() == typeinfo::Arch::X86_64;
            return float(raw, size, ty).filter(|_| known).ok_or_else(|| {
                EvalError::other(
                    span,
                    format!(
                        "{} has {size} bytes, which can't be shown",
                        self.display(ty)
                    ),
                )
            });
        }
        let signed = is_signed(kind);
        let value = match access(place, span)? {
            Some(access) => extend(raw >> access.shift, access.bits, signed),
            None => extend(raw, bytes.len() as u32 * 8, signed),
        };
        Ok(Value::Int { value, ty })
    }

    /// Reads bytes that should hold something of a type.
    pub(crate) fn read(
        &self,
        address: u64,
        into: &mut [u8],
        ty: TypeRef,
        span: Span,
    ) -> Result<(), EvalError> {
        self.memory.read(address, into).map_err(|source| {
            let what = self.display(ty);
            let is_null = address < NEAR_NULL && !source.cause.is_final();
            let fault = if is_null {
                Fault::Null { what, address }
            } else {
                Fault::Unreadable { what, source }
            };
            EvalError::new(span, fault)
        })
    }

    /// Returns the value of an operand.
    pub(crate) fn value(&self, operand: Operand, span: Span) -> Result<Value, EvalError> {
        match operand {
            Operand::Place(place) => self.load(place, span),
            Operand::Value(value) => Ok(value),
        }
    }

    /// Returns the error for a place with a known address and no type.
    fn untyped(&self, place: Place, span: Span) -> EvalError {
        let message = format!("the value at {:#x} has no type", place.address);
        let error = EvalError::other(span, message)
            .with_hint("cast its address: *(struct x *)uaddr(\"NAME\")");
        self.globals
            .no_types()
            .into_iter()
            .fold(error, EvalError::with_hint)
    }
}

/// Returns how to read a bit-field, from its address on; `None` for another place.
fn access(place: Place, span: Span) -> Result<Option<typeinfo::BitAccess>, EvalError> {
    let Some((first, bits)) = place.bits else {
        return Ok(None);
    };
    let field = Field {
        ty: place.ty,
        bit_offset: first.into(),
        bit_size: Some(bits),
    };
    let access = field.bit_access();
    access
        .map(Some)
        .ok_or_else(|| EvalError::other(span, format!("a bit-field of {bits} bits can't be read")))
}

/// Returns true if numbers of this kind can be negative.
pub(crate) fn is_signed(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Int { signed: true, .. } | TypeKind::Enum { signed: true, .. }
    )
}

/// Returns the low bits of a number, with their sign.
pub(crate) fn extend(raw: u128, bits: u32, signed: bool) -> i128 {
    if bits == 0 || bits >= 128 {
        return if bits == 0 { 0 } else { raw.cast_signed() };
    }
    let low = raw & ((1 << bits) - 1);
    let negative = signed && low >> (bits - 1) != 0;
    if negative {
        low.cast_signed() - (1_i128 << bits)
    } else {
        low.cast_signed()
    }
}

/// Decodes a floating-point number of C, by its size in bytes. The 80 bits of x86's `long double`
/// become the nearest `double`.
fn float(raw: u128, size: u32, ty: TypeRef) -> Option<Value> {
    let value = match size {
        4 => f64::from(f32::from_bits(raw as u32)),
        8 => f64::from_bits(raw as u64),
        16 => {
            let (mantissa, exponent) = (raw as u64, (raw >> 64) as u16);
            let sign = if exponent >> 15 == 0 { 1.0 } else { -1.0 };
            let exponent = i32::from(exponent & 0x7fff);
            if exponent == 0x7fff {
                sign * if mantissa << 1 == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            } else {
                // In two steps, since the first alone can be too large for a number that fits.
                sign * mantissa as f64 * 2_f64.powi(-63) * 2_f64.powi(exponent - 16_383)
            }
        }
        _ => return None,
    };
    Some(Value::Float { value, ty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_their_sign() {
        assert_eq!(extend(0xff, 8, true), -1);
        assert_eq!(extend(0xff, 8, false), 255);
        assert_eq!(extend(0b1101, 3, true), -3);
        assert_eq!(extend(u128::MAX, 128, true), -1);
        assert_eq!(extend(7, 0, true), 0);
    }

    #[test]
    fn a_long_double_is_near_its_value() {
        // 1.5 and -2: mantissa with its leading one, exponent with its bias.
        let one_and_half = 0xc000_0000_0000_0000_u128 | 0x3fff << 64;
        let minus_two = 0x8000_0000_0000_0000_u128 | 0xc000 << 64;
        let value = |raw| match float(raw, 16, TypeRef::VOID) {
            Some(Value::Float { value, .. }) => value,
            _ => f64::NAN,
        };
        assert!(
            (value(one_and_half) - 1.5).abs() < f64::EPSILON
                && (value(minus_two) + 2.0).abs() < f64::EPSILON
        );
    }
}
