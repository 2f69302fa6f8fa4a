//! Values as text, in a short form of the tests' own.

use bt_abi::{Action, ActionKind, FormatPiece, LayoutKind, MapValue, Script, ScriptMap, ValueType, action};

fn word(bytes: &[u8], size: usize, signed: bool) -> i128 {
    let mut whole = [0; 8];
    whole[..size].copy_from_slice(&bytes[..size]);
    let value = u64::from_le_bytes(whole);
    let unused = 64 - 8 * size as u32;
    if signed { i128::from((value << unused).cast_signed() >> unused) } else { i128::from(value) }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A value of a type.
pub fn value(ty: &ValueType, bytes: &[u8]) -> String {
    match ty {
        ValueType::None => String::new(),
        ValueType::Int { size, signed } => word(bytes, usize::from(*size), *signed).to_string(),
        ValueType::Bool => (bytes[0] != 0).to_string(),
        ValueType::Enum { size, signed, names } => {
            let number = word(bytes, usize::from(*size), *signed);
            names.get(number as i64).map_or_else(|| number.to_string(), str::to_owned)
        }
        ValueType::Float { size } => format!("{:?}", &bytes[..usize::from(*size)]),
        ValueType::Pointer | ValueType::KernelSymbol => format!("{:#x}", word(bytes, 8, false)),
        ValueType::Str { size } => text(&bytes[..*size as usize]),
        ValueType::Buffer { .. } => {
            let length = word(bytes, 4, false) as usize;
            bytes[4..4 + length].escape_ascii().to_string()
        }
        ValueType::Array { element, count } => {
            let size = element.size() as usize;
            let items = (0..*count as usize).map(|index| value(element, &bytes[index * size..]));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        ValueType::Tuple(layout) => {
            let fields = layout.fields.iter().map(|field| {
                let mut inner = value(&field.ty, &bytes[field.offset as usize..]);
                if let Some((shift, bits)) = field.bits {
                    let number = word(&bytes[field.offset as usize..], field.ty.size() as usize, false) as u64;
                    let number = number >> shift & ((1 << bits) - 1);
                    let negative = matches!(field.ty, ValueType::Int { signed: true, .. }) && number >> (bits - 1) == 1;
                    inner = (i128::from(number) - if negative { 1 << bits } else { 0 }).to_string();
                }
                match &field.name {
                    Some(name) => format!("{name}={inner}"),
                    None => inner,
                }
            });
            let fields = fields.collect::<Vec<_>>().join(", ");
            if layout.kind == LayoutKind::Struct { format!("{{{fields}}}") } else { format!("({fields})") }
        }
        ValueType::KernelStack { .. } => format!("{} frames", word(bytes, 8, true) / 8),
        ValueType::UserStack { .. } => format!("{} frames", word(&bytes[8..], 8, true) / 8),
        ValueType::UserSymbol => format!("{:#x}@{}", word(bytes, 8, false), word(&bytes[8..], 4, false)),
        ValueType::Inet => {
            let bytes = &bytes[..20];
            if bytes[0] == 4 {
                std::net::Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[4..8]).unwrap()).to_string()
            } else {
                std::net::Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[4..20]).unwrap()).to_string()
            }
        }
        ValueType::MacAddress => bytes[..6].iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"),
        ValueType::CgroupPath { .. } | ValueType::Timestamp { .. } => word(bytes, 8, false).to_string(),
        ValueType::Username | ValueType::ErrorText | ValueType::SignalText => word(bytes, 4, true).to_string(),
    }
}

/// An event as `printf` text, or as the action's name and its fields.
pub fn event(script: &Script, bytes: &[u8]) -> String {
    let number = word(&bytes[action::ACTION..], 4, false) as usize;
    let action: &Action = &script.actions[number];
    assert!(bytes.len() >= action.size as usize);
    let mut fields = action.fields.iter().map(|field| value(&field.ty, &bytes[field.offset as usize..]));
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
            format!("{}[{}]: {}", script.maps[*map].name, fields.next().unwrap(), fields.collect::<Vec<_>>().join(","))
        }
        ActionKind::PrintMap { map } => {
            format!("print {} {}", script.maps[*map].name, fields.collect::<Vec<_>>().join(","))
        }
        ActionKind::Clear { map } => format!("clear {}", script.maps[*map].name),
        ActionKind::Zero { map } => format!("zero {}", script.maps[*map].name),
        ActionKind::Exit => format!("exit {}", fields.next().unwrap()),
        other => format!("{other:?}: {}", fields.collect::<Vec<_>>().join(",")),
    }
}

/// A map's entry, `[key]: value`; of a map with a value for each CPU, all of them.
pub fn entry(map: &ScriptMap, key: &[u8], cpus: &[&[u8]]) -> String {
    let words = |index: usize| cpus.iter().map(move |cpu| word(&cpu[index * 8..], 8, true)).sum::<i128>();
    let held = |cpu: &&&[u8]| word(&cpu[8..], 8, false) != 0;
    let extremes: Vec<i128> = if map.value.size() >= 16 {
        cpus.iter().filter(held).map(|cpu| word(cpu, 8, true)).collect()
    } else {
        Vec::new()
    };
    let shown = match &map.value {
        MapValue::Scalar(ty) => value(ty, cpus[0]),
        MapValue::Count | MapValue::Sum { .. } => words(0).to_string(),
        MapValue::Min { .. } => extremes.iter().min().unwrap().to_string(),
        MapValue::Max { .. } => extremes.iter().max().unwrap().to_string(),
        MapValue::Avg { .. } => (words(0) / words(1)).to_string(),
        MapValue::Stats { .. } => format!("{} {} {}", words(1), words(0) / words(1), words(0)),
        MapValue::Hist { .. } | MapValue::Lhist { .. } => {
            let count = map.value.size() as usize / 8;
            let buckets = (0..count).map(|index| (index, words(index))).filter(|bucket| bucket.1 != 0);
            buckets.map(|(index, count)| format!("{index}x{count}")).collect::<Vec<_>>().join(" ")
        }
        MapValue::Series { .. } => {
            let slots = cpus.iter().flat_map(|cpu| cpu.chunks(24)).filter(|slot| slot.len() == 24);
            let slots = slots.filter(|slot| word(&slot[8..], 8, false) != 0);
            slots.map(|slot| word(slot, 8, true).to_string()).collect::<Vec<_>>().join(" ")
        }
    };
    format!("[{}]: {shown}", value(&map.key, key))
}
