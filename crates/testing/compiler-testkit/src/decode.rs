//! Values as text, in a short form for tests.

use bt_abi::bytes::{BufferHead, Inet, StackHead, UserStackHead, UserSymbol};
use bt_abi::map::{Average, Extreme, SeriesSlot};
use bt_abi::{
    Action, ActionKind, Aggregation, EventHead, FormatPiece, Layout, LayoutKind, MapValue, Script,
    ScriptMap, ValueType,
};
use zerocopy::FromBytes;

/// Returns the number in the first `size` bytes.
fn word(bytes: &[u8], size: usize, signed: bool) -> i128 {
    match (size, signed) {
        (1, false) => head::<u8>(bytes).into(),
        (2, false) => head::<u16>(bytes).into(),
        (4, false) => head::<u32>(bytes).into(),
        (8, false) => head::<u64>(bytes).into(),
        (1, true) => head::<i8>(bytes).into(),
        (2, true) => head::<i16>(bytes).into(),
        (4, true) => head::<i32>(bytes).into(),
        (8, true) => head::<i64>(bytes).into(),
        _ => panic!("no number has {size} bytes"),
    }
}

/// Returns the structure at the start of the bytes.
fn head<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes)
        .unwrap_or_else(|_| panic!("{} bytes are too few", bytes.len()))
        .0
}

/// Returns each CPU's value.
fn each<T: FromBytes>(cpus: &[&[u8]]) -> Vec<T> {
    cpus.iter()
        .map(|cpu| {
            T::read_from_bytes(cpu).unwrap_or_else(|_| panic!("a value has {} bytes", cpu.len()))
        })
        .collect()
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Formats a value of a type.
pub fn value(ty: &ValueType, bytes: &[u8]) -> String {
    match ty {
        ValueType::None => String::new(),
        ValueType::Int { size, signed } => word(bytes, usize::from(*size), *signed).to_string(),
        ValueType::Bool => (bytes[0] != 0).to_string(),
        ValueType::Enum {
            size,
            signed,
            names,
        } => {
            let number = word(bytes, usize::from(*size), *signed);
            names
                .get(number as i64)
                .map_or_else(|| number.to_string(), str::to_owned)
        }
        ValueType::Float { size } => format!("{:?}", &bytes[..usize::from(*size)]),
        ValueType::Pointer | ValueType::KernelSymbol => format!("{:#x}", word(bytes, 8, false)),
        ValueType::Str { size } => text(&bytes[..*size as usize]),
        ValueType::Buffer { .. } => {
            let length = head::<BufferHead>(bytes).length as usize;
            bytes[size_of::<BufferHead>()..][..length]
                .escape_ascii()
                .to_string()
        }
        ValueType::Array { element, count } => {
            let size = element.size() as usize;
            let items = (0..*count as usize).map(|index| value(element, &bytes[index * size..]));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        ValueType::Tuple(layout) => tuple(layout, bytes),
        ValueType::KernelStack { .. } => format!("{} frames", head::<StackHead>(bytes).length / 8),
        ValueType::UserStack { .. } => {
            format!("{} frames", head::<UserStackHead>(bytes).stack.length / 8)
        }
        ValueType::UserSymbol => {
            let UserSymbol { address, task } = head(bytes);
            format!("{address:#x}@{}", task.pid)
        }
        ValueType::Inet => inet(&head(bytes)),
        ValueType::MacAddress => bytes[..6]
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect::<Vec<_>>()
            .join(":"),
        ValueType::CgroupPath { .. } | ValueType::Timestamp { .. } => {
            word(bytes, 8, false).to_string()
        }
        ValueType::Username | ValueType::ErrorText | ValueType::SignalText => {
            word(bytes, 4, true).to_string()
        }
    }
}

/// Formats a tuple or a struct.
fn tuple(layout: &Layout, bytes: &[u8]) -> String {
    let fields = layout.fields.iter().map(|field| {
        let mut inner = value(&field.ty, &bytes[field.offset as usize..]);
        if let Some((shift, bits)) = field.bits {
            let number = word(
                &bytes[field.offset as usize..],
                field.ty.size() as usize,
                false,
            ) as u64;
            let number = number >> shift & ((1 << bits) - 1);
            let negative = matches!(field.ty, ValueType::Int { signed: true, .. })
                && number >> (bits - 1) == 1;
            inner = (i128::from(number) - if negative { 1 << bits } else { 0 }).to_string();
        }
        match &field.name {
            Some(name) => format!("{name}={inner}"),
            None => inner,
        }
    });
    let fields = fields.collect::<Vec<_>>().join(", ");
    if layout.kind == LayoutKind::Struct {
        format!("{{{fields}}}")
    } else {
        format!("({fields})")
    }
}

/// Formats an address of version 4 or 6.
fn inet(Inet { version, address }: &Inet) -> String {
    let [a, b, c, d, ..] = *address;
    if *version == Inet::V4 {
        std::net::Ipv4Addr::new(a, b, c, d).to_string()
    } else {
        std::net::Ipv6Addr::from(*address).to_string()
    }
}

/// Formats an event as `printf` text, or as the action's name and its fields.
pub fn event(script: &Script, bytes: &[u8]) -> String {
    let action: &Action = &script.actions[head::<EventHead>(bytes).action as usize];
    assert!(bytes.len() >= action.size as usize);
    let mut fields = action
        .fields
        .iter()
        .map(|field| value(&field.ty, &bytes[field.offset as usize..]));
    match &action.kind {
        ActionKind::Printf { format, .. } => {
            let pieces = format.iter().map(|piece| match piece {
                FormatPiece::Text(text) => String::from_utf8_lossy(text).into_owned(),
                FormatPiece::Value(_) => fields.next().unwrap(),
            });
            pieces.collect()
        }
        ActionKind::PrintValue => fields.next().unwrap(),
        ActionKind::PrintElement { map } => {
            format!(
                "{}[{}]: {}",
                script.maps[*map].name,
                fields.next().unwrap(),
                fields.collect::<Vec<_>>().join(",")
            )
        }
        ActionKind::PrintMap { map } => {
            format!(
                "print {} {}",
                script.maps[*map].name,
                fields.collect::<Vec<_>>().join(",")
            )
        }
        ActionKind::Clear { map } => format!("clear {}", script.maps[*map].name),
        ActionKind::Zero { map } => format!("zero {}", script.maps[*map].name),
        ActionKind::Exit => format!("exit {}", fields.next().unwrap()),
        other => format!("{other:?}: {}", fields.collect::<Vec<_>>().join(",")),
    }
}

/// Formats a map's entry as `[key]: value`; per-CPU values are combined.
pub fn entry(map: &ScriptMap, key: &[u8], cpus: &[&[u8]]) -> String {
    let extremes = || {
        each::<Extreme>(cpus)
            .into_iter()
            .filter(|cpu| cpu.is_set != 0)
            .map(|cpu| cpu.value.cast_signed())
    };
    let average = || {
        let cpus: Vec<Average> = each(cpus);
        let total: i64 = cpus.iter().map(|cpu| cpu.total.cast_signed()).sum();
        (
            total,
            cpus.iter().map(|cpu| cpu.count.cast_signed()).sum::<i64>(),
        )
    };
    let aggregation = match &map.value {
        MapValue::Scalar(ty) => {
            return format!("[{}]: {}", value(&map.key, key), value(ty, cpus[0]));
        }
        MapValue::Aggregation(aggregation) => aggregation,
    };
    let shown = match aggregation {
        Aggregation::Count | Aggregation::Sum { .. } => {
            each::<i64>(cpus).into_iter().sum::<i64>().to_string()
        }
        Aggregation::Min { .. } => extremes().min().unwrap().to_string(),
        Aggregation::Max { .. } => extremes().max().unwrap().to_string(),
        Aggregation::Avg { .. } => {
            let (total, count) = average();
            (total / count).to_string()
        }
        Aggregation::Stats { .. } => {
            let (total, count) = average();
            format!("{count} {} {total}", total / count)
        }
        Aggregation::Hist { .. } | Aggregation::Lhist { .. } => {
            let sum = |index: usize| {
                cpus.iter()
                    .map(|cpu| head::<u64>(&cpu[index * size_of::<u64>()..]))
                    .sum::<u64>()
            };
            let buckets =
                (0..map.value.size() as usize / size_of::<u64>()).map(|index| (index, sum(index)));
            let buckets = buckets.filter(|bucket| bucket.1 != 0);
            buckets
                .map(|(index, count)| format!("{index}x{count}"))
                .collect::<Vec<_>>()
                .join(" ")
        }
        Aggregation::Series { .. } => {
            let slots = cpus
                .iter()
                .flat_map(|cpu| cpu.chunks_exact(size_of::<SeriesSlot>()))
                .map(head::<SeriesSlot>);
            let slots = slots
                .filter(|slot| slot.meta != 0)
                .map(|slot| slot.value.cast_signed().to_string());
            slots.collect::<Vec<_>>().join(" ")
        }
    };
    format!("[{}]: {shown}", value(&map.key, key))
}
