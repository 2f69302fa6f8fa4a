use std::sync::Arc;

use bt_abi::ActionKind;
use bt_lang::Span;

use super::*;
use crate::lookups::tests::EmptyLookups;
use crate::text;

fn shown(ty: &ValueType, bytes: &[u8]) -> String {
    text::value(&Decoder::new(&EmptyLookups, "..").value(ty, bytes).unwrap())
}

fn field(name: Option<&str>, offset: u32, ty: ValueType, bits: Option<(u8, u8)>) -> Field {
    Field {
        name: name.map(str::to_owned),
        offset,
        ty,
        bits,
    }
}

const I32: ValueType = ValueType::Int {
    size: 4,
    signed: true,
};

#[test]
fn numbers() {
    let bytes = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let of = |size, signed| {
        shown(
            &ValueType::Int { size, signed },
            &bytes[..usize::from(size)],
        )
    };
    assert_eq!(
        [1, 2, 4, 8].map(|size| of(size, true)),
        ["-2", "-2", "-2", "-2"]
    );
    assert_eq!(
        [1, 2, 4, 8].map(|size| of(size, false)),
        ["254", "65534", "4294967294", "18446744073709551614"]
    );
    assert_eq!(shown(&ValueType::Bool, &[2]), "true");
    assert_eq!(shown(&ValueType::Pointer, &0x32_u64.to_ne_bytes()), "0x32");
    assert_eq!(shown(&ValueType::None, &[]), "null");
}

#[test]
fn enumerators_have_names() {
    let names = Arc::new(EnumNames {
        name: "Foo".into(),
        values: vec![(1, "ONE".into()), (-1, "NEG".into())],
    });
    let ty = |signed| ValueType::Enum {
        size: 4,
        signed,
        names: Arc::clone(&names),
    };
    assert_eq!(shown(&ty(false), &[1, 0, 0, 0]), "ONE");
    assert_eq!(shown(&ty(true), &[0xff; 4]), "NEG");
    assert_eq!(shown(&ty(false), &[100, 0, 0, 0]), "100");
}

#[test]
fn strings_end_at_their_zero_and_say_when_they_were_cut() {
    let decoder = Decoder::new(&EmptyLookups, "..");
    assert_eq!(
        decoder.value(&ValueType::Str { size: 4 }, b"ab\0d"),
        Ok(Value::text("ab"))
    );
    assert_eq!(
        decoder.value(&ValueType::Str { size: 3 }, b"abc"),
        Ok(Value::text("abc.."))
    );
    assert_eq!(
        shown(&ValueType::Str { size: 8 }, b"a\x1b[31m\xff\0"),
        "a\\x1b[31m\\xff"
    );
    assert_eq!(
        shown(
            &ValueType::Buffer { size: 4 },
            &[2, 0, 0, 0, 0, b'a', b'b', 0]
        ),
        "\\x00a"
    );
    // A length out of range is cut to the room.
    assert_eq!(
        shown(
            &ValueType::Buffer { size: 1 },
            &[0xff, 0xff, 0xff, 0xff, b'a', b'b', 0, 0]
        ),
        "a"
    );
}

#[test]
fn parts_of_structs() {
    let layout = |kind, names: [Option<&str>; 2]| {
        let fields = vec![field(names[0], 0, I32, None), field(names[1], 4, I32, None)];
        ValueType::Tuple(Arc::new(Layout {
            kind,
            size: 8,
            fields,
        }))
    };
    let bytes = [2, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(
        shown(&layout(LayoutKind::Tuple, [None, None]), &bytes),
        "(2, 3)"
    );
    assert_eq!(
        shown(&layout(LayoutKind::Struct, [Some("m"), Some("n")]), &bytes),
        "{ .m = 2, .n = 3 }"
    );
    let array = ValueType::Array {
        element: Box::new(I32),
        count: 2,
    };
    assert_eq!(shown(&array, &bytes), "[2,3]");
    let bits = |signed, bits| {
        let ty = ValueType::Int { size: 4, signed };
        Decoder::new(&EmptyLookups, "")
            .field(&field(None, 0, ty, Some(bits)), &[0b1011_0110, 0, 0, 0])
            .unwrap()
    };
    assert_eq!(bits(false, (1, 3)), Value::Uint(3));
    assert_eq!(bits(true, (4, 4)), Value::Int(-5));
}

#[test]
fn addresses_of_the_net() {
    let mut bytes = [0; 20];
    (bytes[0], bytes[4], bytes[7]) = (4, 127, 1);
    assert_eq!(shown(&ValueType::Inet, &bytes), "127.0.0.1");
    let mut bytes = [0; 20];
    (bytes[0], bytes[19]) = (6, 1);
    assert_eq!(shown(&ValueType::Inet, &bytes), "::1");
    assert_eq!(
        shown(&ValueType::MacAddress, &[5, 4, 3, 2, 1, 0xab]),
        "05:04:03:02:01:AB"
    );
}

#[test]
fn symbols_and_stacks() {
    let mut bytes = 16_i64.to_ne_bytes().to_vec();
    bytes.extend(0x1004_u64.to_ne_bytes());
    bytes.extend(7_u64.to_ne_bytes());
    let kernel = |mode| shown(&ValueType::KernelStack { mode, depth: 2 }, &bytes);
    assert_eq!(
        kernel(StackMode::Bpftrace),
        "\n        known+4\n        0x7\n"
    );
    assert_eq!(
        kernel(StackMode::Perf),
        "\n\t1004 known+4\n\t7 0x7 ([unknown])\n"
    );
    assert_eq!(kernel(StackMode::Raw), "\n1004\n7\n");
    assert_eq!(kernel(StackMode::Folded), ";0x7;known");
    assert_eq!(
        shown(&ValueType::KernelSymbol, &0x1004_u64.to_ne_bytes()),
        "known"
    );
    assert_eq!(shown(&ValueType::KernelSymbol, &7_u64.to_ne_bytes()), "0x7");
    assert_eq!(
        shown(
            &ValueType::UserSymbol,
            &[&0x1004_u64.to_ne_bytes()[..], &[9, 0, 0, 0, 9, 0, 0, 0]].concat()
        ),
        "own9"
    );
    // A negative length is an error.
    let decoder = Decoder::new(&EmptyLookups, "");
    let bytes = [(-14_i64).to_ne_bytes(), [0; 8], [0; 8]].concat();
    let missing = decoder.value(
        &ValueType::KernelStack {
            mode: StackMode::Raw,
            depth: 2,
        },
        &bytes,
    );
    assert_eq!(missing, Ok(Value::text("\n")));
}

#[test]
fn a_stack_of_a_process_ends_where_there_is_no_code() {
    let addresses = [0x1004_u64, 0x1000, 0x2001, 7, 0x1004];
    let stack = |addresses: &[u64], mode| {
        let length = (8 * i64::try_from(addresses.len()).unwrap()).to_ne_bytes();
        let mut bytes = [&[9, 0, 0, 0, 9, 0, 0, 0], length.as_slice()].concat();
        bytes.extend(addresses.iter().flat_map(|address| address.to_ne_bytes()));
        shown(
            &ValueType::UserStack {
                mode,
                depth: addresses.len() as u32,
            },
            &bytes,
        )
    };
    // The second address is looked up at its call, one byte lower, which is in no function.
    assert_eq!(
        stack(&addresses, StackMode::Bpftrace),
        "\n        own9+4\n        a+0x1000\n        a+0x2001\n        ... (0x7: no code here: built without frame pointers?)\n"
    );
    assert_eq!(
        stack(&addresses, StackMode::Perf),
        "\n\t1004 own9+4 (/bin/a)\n\t1000 a+0x1000 ([unknown])\n\t2001 a+0x2001 ([unknown])\n\
         \t7 ... (no code here: built without frame pointers?) ([unknown])\n"
    );
    assert_eq!(
        stack(&addresses, StackMode::Raw),
        "\n1004\n1000\n2001\n7\n1004\n"
    );
    // The innermost frame is always code: the thread ran there.
    assert_eq!(
        stack(&[7, 0x1004], StackMode::Bpftrace),
        "\n        0x7\n        own9+3\n"
    );
}

#[test]
fn another_size_is_an_internal_error() {
    let types = [
        I32,
        ValueType::Bool,
        ValueType::Float { size: 8 },
        ValueType::Str { size: 9 },
        ValueType::Buffer { size: 9 },
        ValueType::Inet,
        ValueType::KernelStack {
            mode: StackMode::Raw,
            depth: 3,
        },
        ValueType::UserStack {
            mode: StackMode::BuildId,
            depth: 3,
        },
        ValueType::UserSymbol,
        ValueType::Array {
            element: Box::new(I32),
            count: u32::MAX,
        },
        ValueType::MacAddress,
        ValueType::Username,
    ];
    for ty in types {
        for bytes in [&[][..], &[0xff; 21]] {
            let error = Decoder::new(&EmptyLookups, "")
                .value(&ty, bytes)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!(
                    "has {} bytes, expected {}",
                    bytes.len(),
                    ty.size()
                )),
                "{error}"
            );
        }
    }
}

#[test]
fn an_event_has_the_size_of_its_action() {
    let action = Action::new(ActionKind::PrintValue, &[I32], Span::default());
    let decoder = Decoder::new(&EmptyLookups, "");
    let event = [[0; 16].as_slice(), &[5, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(decoder.event(&action, &event), Ok(vec![Value::Int(5)]));
    let error = decoder
        .event(&action, &event[..20])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "an event of the ring events has 20 bytes, expected 24: an internal error, please report it"
    );
}

/// C has structures without members.
#[test]
fn values_of_no_bytes_are_there() {
    let nothing = ValueType::Tuple(Arc::new(Layout {
        kind: LayoutKind::Struct,
        size: 0,
        fields: Vec::new(),
    }));
    assert_eq!(shown(&nothing, &[]), "{}");
    assert_eq!(
        shown(
            &ValueType::Array {
                element: Box::new(nothing),
                count: 3
            },
            &[]
        ),
        "[]"
    );
    assert_eq!(
        shown(
            &ValueType::Array {
                element: Box::new(I32),
                count: 0
            },
            &[]
        ),
        "[]"
    );
}

#[test]
fn times_have_parts_of_seconds() {
    let ty = ValueType::Timestamp {
        clock: bt_abi::Clock::Boot,
        format: "%S %f %l %k %%f%".into(),
    };
    assert_eq!(
        shown(&ty, &1_002_003_004_u64.to_ne_bytes()),
        "%S 002003 002 002003004 %%f%%"
    );
}
