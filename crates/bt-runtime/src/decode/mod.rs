//! Decodes a value from its type and its bytes.

use bt_abi::{EnumNames, Field, Layout, LayoutKind, StackMode, ValueType};

use crate::lookups::{Lookups, timestamp};
use crate::stack;
use crate::value::Value;

/// Decodes values.
pub struct Decoder<'a> {
    lookups: &'a dyn Lookups,
    trailer: &'a str,
}

impl<'a> Decoder<'a> {
    /// A decoder; `trailer` is what cut strings end with.
    pub fn new(lookups: &'a dyn Lookups, trailer: &'a str) -> Self {
        Self { lookups, trailer }
    }

    pub(crate) fn lookups(&self) -> &dyn Lookups {
        self.lookups
    }

    /// The values of an event's fields; `bytes` is the event.
    pub fn fields(&self, fields: &[Field], bytes: &[u8]) -> Vec<Value> {
        fields.iter().map(|field| self.field(field, bytes)).collect()
    }

    /// The value of a field of `bytes`.
    pub fn field(&self, field: &Field, bytes: &[u8]) -> Value {
        let bytes = part(bytes, field.offset as usize, field.ty.size() as usize);
        let Some((shift, width)) = field.bits else { return self.value(&field.ty, &bytes) };
        let whole = word(&bytes, 0) >> shift.min(63);
        let unused = 64 - u32::from(width.clamp(1, 64));
        let high = whole << unused;
        let kept = if is_signed(&field.ty) { (high.cast_signed() >> unused).cast_unsigned() } else { high >> unused };
        self.value(&field.ty, &kept.to_le_bytes())
    }

    /// A value. Bytes that are missing count as 0.
    pub fn value(&self, ty: &ValueType, bytes: &[u8]) -> Value {
        match ty {
            ValueType::None => Value::Nothing,
            ValueType::Int { size, signed } => integer(bytes, *size, *signed),
            ValueType::Bool => Value::Bool(bytes.first().is_some_and(|&byte| byte != 0)),
            ValueType::Enum { size, signed, names } => enumerator(bytes, *size, *signed, names),
            ValueType::Float { size: 4 } => Value::Float(format!("{:?}", f32::from_bits(word(bytes, 0) as u32))),
            ValueType::Float { .. } => Value::Float(format!("{:?}", f64::from_bits(word(bytes, 0)))),
            ValueType::Pointer => {
                let address = word(bytes, 0);
                Value::Symbol { text: format!("0x{address:x}"), number: i128::from(address) }
            }
            ValueType::Str { size } => self.string(&part(bytes, 0, *size as usize)),
            ValueType::Buffer { size } => {
                let length = (word(bytes, 0) as u32).min(*size) as usize;
                Value::Buffer(part(bytes, 4, length).into_owned())
            }
            ValueType::Array { element, count } => self.array(element, *count, bytes),
            ValueType::Tuple(layout) => self.layout(layout, bytes),
            ValueType::KernelStack { mode, .. } => stack_of(bytes, 0, *mode, |address| self.lookups.kernel(address)),
            ValueType::UserStack { mode, .. } => {
                let pid = word(bytes, 0) as u32;
                stack_of(bytes, 8, *mode, |address| self.lookups.user(pid, address))
            }
            ValueType::KernelSymbol => symbol(word(bytes, 0), |address| self.lookups.kernel(address)),
            ValueType::UserSymbol => {
                symbol(word(bytes, 0), |address| self.lookups.user(word(bytes, 8) as u32, address))
            }
            ValueType::Inet => inet(bytes),
            ValueType::MacAddress => {
                let parts: Vec<String> = part(bytes, 0, 6).iter().map(|byte| format!("{byte:02X}")).collect();
                Value::text(parts.join(":"))
            }
            ValueType::CgroupPath { hierarchy } => {
                let paths = self.lookups.cgroup_paths(word(bytes, 0), hierarchy);
                let shown: Vec<String> = paths.into_iter().map(|(name, path)| format!("{name}:{path}")).collect();
                Value::text(shown.join(","))
            }
            ValueType::Username => Value::text(self.lookups.user_name(word(bytes, 0) as u32).unwrap_or_default()),
            ValueType::ErrorText => Value::text(self.lookups.error_text((word(bytes, 0) as u32).cast_signed())),
            ValueType::SignalText => {
                Value::text(bt_abi::signals::text(i64::from((word(bytes, 0) as u32).cast_signed())))
            }
            ValueType::Timestamp { clock, format } => {
                let nanos = word(bytes, 0).cast_signed().wrapping_add(self.lookups.since_epoch(*clock));
                Value::text(timestamp(self.lookups, nanos, format).unwrap_or_else(|| "(?)".into()))
            }
        }
    }

    fn string(&self, bytes: &[u8]) -> Value {
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            return Value::Text(bytes[..end].to_vec());
        }
        // No end in all its room: the rest did not fit.
        Value::Text([bytes, self.trailer.as_bytes()].concat())
    }

    fn array(&self, element: &ValueType, count: u32, bytes: &[u8]) -> Value {
        let size = element.size() as usize;
        let values = (0..count as usize).map_while(|index| {
            let start = index * size;
            (start < bytes.len()).then(|| self.value(element, &bytes[start..(start + size).min(bytes.len())]))
        });
        Value::Array(values.collect())
    }

    fn layout(&self, layout: &Layout, bytes: &[u8]) -> Value {
        let values = layout.fields.iter().map(|field| self.field(field, bytes));
        if layout.kind == LayoutKind::Tuple {
            return Value::Tuple(values.collect());
        }
        let names = layout.fields.iter().map(|field| field.name.clone().unwrap_or_default());
        Value::Record(names.zip(values).collect())
    }
}

/// Whether numbers of a type can be negative.
fn is_signed(ty: &ValueType) -> bool {
    matches!(ty, ValueType::Int { signed: true, .. } | ValueType::Enum { signed: true, .. })
}

/// A stack whose length stands at `at`.
fn stack_of(bytes: &[u8], at: usize, mode: StackMode, symbols: impl Fn(u64) -> Vec<crate::lookups::Symbol>) -> Value {
    let length = word(bytes, at).cast_signed();
    let frames = part(bytes, at + 8, usize::try_from(length).unwrap_or(0).min(bytes.len()));
    if mode == StackMode::BuildId {
        return Value::text(stack::build_ids(&frames));
    }
    let addresses = frames.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    Value::text(stack::text(addresses, mode, symbols))
}

/// `length` bytes from `at` on, as many as there are.
fn part(bytes: &[u8], at: usize, length: usize) -> std::borrow::Cow<'_, [u8]> {
    let start = at.min(bytes.len());
    std::borrow::Cow::Borrowed(&bytes[start..start.saturating_add(length).min(bytes.len())])
}

/// The 8 bytes at `at` as a number; those that are missing are 0.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// The number of `size` bytes, its sign spread.
fn raw(bytes: &[u8], size: u8, signed: bool) -> i64 {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    let high = word(bytes, 0) << unused;
    if signed { high.cast_signed() >> unused } else { (high >> unused).cast_signed() }
}

fn integer(bytes: &[u8], size: u8, signed: bool) -> Value {
    let number = raw(bytes, size, signed);
    if signed { Value::Int(number) } else { Value::Uint(number.cast_unsigned()) }
}

fn enumerator(bytes: &[u8], size: u8, signed: bool, names: &EnumNames) -> Value {
    let raw = raw(bytes, size, signed);
    let number = if signed { i128::from(raw) } else { i128::from(raw.cast_unsigned()) };
    let text = names.get(raw).map_or_else(|| number.to_string(), str::to_owned);
    Value::Symbol { text, number }
}

/// The name of the function at an address, or the address.
fn symbol(address: u64, symbols: impl Fn(u64) -> Vec<crate::lookups::Symbol>) -> Value {
    let found = symbols(address).pop();
    Value::text(found.map_or_else(|| format!("0x{address:x}"), |symbol| symbol.name))
}

fn inet(bytes: &[u8]) -> Value {
    let address = part(bytes, 4, 16);
    Value::text(match (word(bytes, 0) as u32, address.first_chunk::<4>(), address.first_chunk::<16>()) {
        (4, Some(four), _) => std::net::Ipv4Addr::from(*four).to_string(),
        (6, _, Some(sixteen)) => std::net::Ipv6Addr::from(*sixteen).to_string(),
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests;
