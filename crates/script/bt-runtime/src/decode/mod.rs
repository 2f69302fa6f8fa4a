//! Decoding of a value from its type and its bytes.

use bt_abi::bytes::{BufferHead, Inet, StackHead, UserStackHead, UserSymbol};
use bt_abi::wire::WrongSize;
use bt_abi::{Action, EnumNames, Field, Layout, LayoutKind, StackMode, ValueType};
use zerocopy::FromBytes;

use crate::lookups::{Frame, Lookups, timestamp};
use crate::stack;
use crate::value::Value;

/// Decoder of values.
pub struct Decoder<'a> {
    lookups: &'a dyn Lookups,
    trailer: &'a str,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder that ends cut strings with `trailer`.
    pub fn new(lookups: &'a dyn Lookups, trailer: &'a str) -> Self {
        Self { lookups, trailer }
    }

    pub(crate) fn lookups(&self) -> &dyn Lookups {
        self.lookups
    }

    /// Decodes the fields of an event; `bytes` is the event.
    ///
    /// # Errors
    /// [`WrongSize`] if the event's size differs from that of its action's events.
    pub fn event(&self, action: &Action, bytes: &[u8]) -> Result<Vec<Value>, WrongSize> {
        if bytes.len() != action.size as usize {
            return Err(WrongSize::event(bytes.len(), action.size as usize));
        }
        action
            .fields
            .iter()
            .map(|field| self.field(field, bytes))
            .collect()
    }

    /// Decodes a field of `bytes`.
    fn field(&self, field: &Field, bytes: &[u8]) -> Result<Value, WrongSize> {
        let start = field.offset as usize;
        let end = start.saturating_add(field.ty.size() as usize);
        let own = bytes
            .get(start..end)
            .ok_or_else(|| wrong(&field.ty, bytes.len(), end))?;
        let Some((shift, width)) = field.bits else {
            return self.value(&field.ty, own);
        };
        let whole = unsigned(&field.ty, own)? >> shift.min(63);
        let unused = 64 - u32::from(width.clamp(1, 64));
        let high = whole << unused;
        let kept = if is_signed(&field.ty) {
            (high.cast_signed() >> unused).cast_unsigned()
        } else {
            high >> unused
        };
        Ok(numeral(&field.ty, kept))
    }

    fn kernel_stack(
        &self,
        ty: &ValueType,
        mode: StackMode,
        bytes: &[u8],
    ) -> Result<Value, WrongSize> {
        let (stack, frames): (StackHead, _) = head(ty, bytes)?;
        let is_tracer = |address| stack::is_tracer(&self.kernel(address), mode);
        Ok(stack_text(stack, frames, mode, is_tracer, |address, _| {
            self.kernel(address)
        }))
    }

    fn user_stack(
        &self,
        ty: &ValueType,
        mode: StackMode,
        bytes: &[u8],
    ) -> Result<Value, WrongSize> {
        let (UserStackHead { task, stack }, frames) = head(ty, bytes)?;
        Ok(stack_text(
            stack,
            frames,
            mode,
            |_| false,
            |address, caller| self.lookups.user(task.pid, address, caller),
        ))
    }

    fn cgroup_path(&self, id: u64, hierarchy: &str) -> Value {
        let paths = self.lookups.cgroup_paths(id, hierarchy);
        let shown: Vec<String> = paths
            .into_iter()
            .map(|(name, path)| format!("{name}:{path}"))
            .collect();
        Value::text(shown.join(","))
    }

    /// Decodes a value that fills `bytes`.
    ///
    /// # Errors
    /// [`WrongSize`] if a value of the type has another size.
    pub fn value(&self, ty: &ValueType, bytes: &[u8]) -> Result<Value, WrongSize> {
        Ok(match ty {
            ValueType::None => Value::Nothing,
            ValueType::Int { size, signed } | ValueType::Enum { size, signed, .. } => {
                integer(ty, *size, *signed, bytes)?
            }
            ValueType::Bool => numeral(ty, unsigned(ty, bytes)?),
            ValueType::Float { size: 4 } => Value::Float(format!("{:?}", read::<f32>(ty, bytes)?)),
            ValueType::Float { .. } => Value::Float(format!("{:?}", read::<f64>(ty, bytes)?)),
            ValueType::Pointer => {
                let address: u64 = read(ty, bytes)?;
                Value::Symbol {
                    text: format!("0x{address:x}"),
                    number: i128::from(address),
                }
            }
            ValueType::Str { .. } => self.string(sized(ty, bytes)?),
            ValueType::Buffer { size } => {
                let (head, room): (BufferHead, _) = head(ty, bytes)?;
                // A length out of range is cut to the room.
                Value::Buffer(room[..(head.length.min(*size) as usize).min(room.len())].to_vec())
            }
            ValueType::Array { element, .. } => self.array(element, sized(ty, bytes)?)?,
            ValueType::Tuple(layout) => self.layout(layout, sized(ty, bytes)?)?,
            ValueType::KernelStack { mode, .. } => self.kernel_stack(ty, *mode, bytes)?,
            ValueType::UserStack { mode, .. } => self.user_stack(ty, *mode, bytes)?,
            ValueType::KernelSymbol => {
                let address = read(ty, bytes)?;
                symbol(address, self.kernel(address))
            }
            ValueType::UserSymbol => {
                let UserSymbol { address, task } = read(ty, bytes)?;
                symbol(address, self.lookups.user(task.pid, address, false))
            }
            ValueType::Inet => inet(read(ty, bytes)?),
            ValueType::MacAddress => mac_address(sized(ty, bytes)?),
            ValueType::CgroupPath { hierarchy } => self.cgroup_path(read(ty, bytes)?, hierarchy),
            ValueType::Username => {
                Value::text(self.lookups.user_name(read(ty, bytes)?).unwrap_or_default())
            }
            ValueType::ErrorText => Value::text(self.lookups.error_text(read(ty, bytes)?)),
            ValueType::SignalText => {
                Value::text(bt_abi::signals::text(i64::from(read::<i32>(ty, bytes)?)))
            }
            ValueType::Timestamp { clock, format } => {
                let nanos = read::<i64>(ty, bytes)?.wrapping_add(self.lookups.since_epoch(*clock));
                Value::text(timestamp(self.lookups, nanos, format).unwrap_or_else(|| "(?)".into()))
            }
        })
    }

    /// Returns the frame at an address of the kernel.
    fn kernel(&self, address: u64) -> Frame {
        match self.lookups.kernel(address) {
            functions if functions.is_empty() => Frame::Unnamed(format!("{address:#x}")),
            functions => Frame::Functions(functions),
        }
    }

    fn string(&self, bytes: &[u8]) -> Value {
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            return Value::Text(bytes[..end].to_vec());
        }
        // No NUL in all the room: the rest did not fit.
        Value::Text([bytes, self.trailer.as_bytes()].concat())
    }

    fn array(&self, element: &ValueType, bytes: &[u8]) -> Result<Value, WrongSize> {
        // C allows elements of no bytes; they count as none.
        let elements = bytes.chunks((element.size() as usize).max(1));
        Ok(Value::Array(
            elements
                .map(|bytes| self.value(element, bytes))
                .collect::<Result<_, _>>()?,
        ))
    }

    fn layout(&self, layout: &Layout, bytes: &[u8]) -> Result<Value, WrongSize> {
        let values = layout.fields.iter().map(|field| self.field(field, bytes));
        if layout.kind == LayoutKind::Tuple {
            return Ok(Value::Tuple(values.collect::<Result<_, _>>()?));
        }
        let named = layout.fields.iter().zip(values);
        let named =
            named.map(|(field, value)| Ok((field.name.clone().unwrap_or_default(), value?)));
        Ok(Value::Record(named.collect::<Result<_, _>>()?))
    }
}

/// Builds the error for bytes that are no value of a type.
fn wrong(ty: &ValueType, found: usize, wanted: usize) -> WrongSize {
    WrongSize::new("a value of the type", format!("{ty:?}"), found, wanted)
}

/// Returns the bytes if they have the size of the type's values.
fn sized<'b>(ty: &ValueType, bytes: &'b [u8]) -> Result<&'b [u8], WrongSize> {
    let wanted = ty.size() as usize;
    if bytes.len() == wanted {
        Ok(bytes)
    } else {
        Err(wrong(ty, bytes.len(), wanted))
    }
}

/// Reads a value of the type as a structure.
fn read<T: FromBytes>(ty: &ValueType, bytes: &[u8]) -> Result<T, WrongSize> {
    T::read_from_bytes(bytes).map_err(|_| wrong(ty, bytes.len(), size_of::<T>()))
}

/// Reads the structure at the start of a value of the type; returns it and the rest.
fn head<'b, T: FromBytes>(ty: &ValueType, bytes: &'b [u8]) -> Result<(T, &'b [u8]), WrongSize> {
    T::read_from_prefix(sized(ty, bytes)?).map_err(|_| wrong(ty, bytes.len(), size_of::<T>()))
}

/// Reads a number of 1, 2, 4 or 8 bytes, without sign extension.
fn unsigned(ty: &ValueType, bytes: &[u8]) -> Result<u64, WrongSize> {
    Ok(match ty.size() {
        1 => u64::from(read::<u8>(ty, bytes)?),
        2 => u64::from(read::<u16>(ty, bytes)?),
        4 => u64::from(read::<u32>(ty, bytes)?),
        _ => read(ty, bytes)?,
    })
}

/// Returns true if numbers of the type can be negative.
fn is_signed(ty: &ValueType) -> bool {
    matches!(
        ty,
        ValueType::Int { signed: true, .. } | ValueType::Enum { signed: true, .. }
    )
}

/// Builds a value of a number type from its bits, sign-extended to 64.
fn numeral(ty: &ValueType, bits: u64) -> Value {
    match ty {
        ValueType::Bool => Value::Bool(bits != 0),
        ValueType::Enum { signed, names, .. } => enumerator(bits.cast_signed(), *signed, names),
        _ if is_signed(ty) => Value::Int(bits.cast_signed()),
        _ => Value::Uint(bits),
    }
}

fn enumerator(raw: i64, signed: bool, names: &EnumNames) -> Value {
    let number = if signed {
        i128::from(raw)
    } else {
        i128::from(raw.cast_unsigned())
    };
    let text = names
        .get(raw)
        .map_or_else(|| number.to_string(), str::to_owned);
    Value::Symbol { text, number }
}

/// Formats a stack. One that could not be read has an error in place of its length, and no frames.
fn stack_text(
    head: StackHead,
    frames: &[u8],
    mode: StackMode,
    is_left_out: impl Fn(u64) -> bool,
    frame: impl Fn(u64, bool) -> Frame,
) -> Value {
    let length = usize::try_from(head.length).unwrap_or(0).min(frames.len());
    let frames = &frames[..length];
    if mode == StackMode::BuildId {
        return Value::text(stack::build_ids(whole(frames)));
    }
    Value::text(stack::text(
        whole(frames).skip_while(|&address| is_left_out(address)),
        mode,
        frame,
    ))
}

/// Reads structures one behind the other; a partial one at the end is skipped.
fn whole<T: FromBytes>(bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
    bytes
        .chunks_exact(size_of::<T>())
        .filter_map(|part| T::read_from_bytes(part).ok())
}

/// Formats an address as its function's name, or as an offset in its module, or as a number.
fn symbol(address: u64, found: Frame) -> Value {
    let plain = || format!("{address:#x}");
    Value::text(match found {
        Frame::Functions(mut functions) => functions.pop().map_or_else(plain, |symbol| symbol.name),
        Frame::Unnamed(text) => text,
        Frame::NotCode => plain(),
    })
}

fn inet(inet: Inet) -> Value {
    let [a, b, c, d, ..] = inet.address;
    Value::text(match inet.version {
        Inet::V4 => std::net::Ipv4Addr::new(a, b, c, d).to_string(),
        Inet::V6 => std::net::Ipv6Addr::from(inet.address).to_string(),
        _ => String::new(),
    })
}

/// Decodes a number of `size` bytes, with its sign.
fn integer(ty: &ValueType, size: u8, signed: bool, bytes: &[u8]) -> Result<Value, WrongSize> {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    let high = unsigned(ty, bytes)? << unused;
    let number = if signed {
        (high.cast_signed() >> unused).cast_unsigned()
    } else {
        high >> unused
    };
    Ok(numeral(ty, number))
}

fn mac_address(bytes: &[u8]) -> Value {
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    Value::text(parts.join(":"))
}

#[cfg(test)]
mod tests;
