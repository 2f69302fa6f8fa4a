//! The built-in types of C and of the scripting language.

use crate::model::{IntClass, TypeKind};
use uapi::Arch;

const fn number(size: u32, signed: bool) -> TypeKind {
    TypeKind::Int {
        size,
        signed,
        class: IntClass::Number,
    }
}

/// Names of one word, besides those that C's rules for several words give: `<stdint.h>`, the
/// kernel's (`include/uapi/asm-generic/int-ll64.h`) and bpftrace's.
const WORDS: &[(&str, TypeKind)] = &[
    ("int8", number(1, true)),
    ("int16", number(2, true)),
    ("int32", number(4, true)),
    ("int64", number(8, true)),
    ("uint8", number(1, false)),
    ("uint16", number(2, false)),
    ("uint32", number(4, false)),
    ("uint64", number(8, false)),
    ("int8_t", number(1, true)),
    ("int16_t", number(2, true)),
    ("int32_t", number(4, true)),
    ("int64_t", number(8, true)),
    ("uint8_t", number(1, false)),
    ("uint16_t", number(2, false)),
    ("uint32_t", number(4, false)),
    ("uint64_t", number(8, false)),
    ("intptr_t", number(8, true)),
    ("uintptr_t", number(8, false)),
    ("size_t", number(8, false)),
    ("ssize_t", number(8, true)),
    ("s8", number(1, true)),
    ("s16", number(2, true)),
    ("s32", number(4, true)),
    ("s64", number(8, true)),
    ("u8", number(1, false)),
    ("u16", number(2, false)),
    ("u32", number(4, false)),
    ("u64", number(8, false)),
    ("__s8", number(1, true)),
    ("__s16", number(2, true)),
    ("__s32", number(4, true)),
    ("__s64", number(8, true)),
    ("__u8", number(1, false)),
    ("__u16", number(2, false)),
    ("__u32", number(4, false)),
    ("__u64", number(8, false)),
    (
        "bool",
        TypeKind::Int {
            size: 1,
            signed: false,
            class: IntClass::Bool,
        },
    ),
    (
        "_Bool",
        TypeKind::Int {
            size: 1,
            signed: false,
            class: IntClass::Bool,
        },
    ),
    ("void", TypeKind::Void),
    ("float", TypeKind::Float { size: 4 }),
    ("double", TypeKind::Float { size: 8 }),
    ("__int128", number(16, true)),
];

/// Returns the kind of a C type by its words in any order (C11 6.7.2), for 64-bit Linux (`long` has
/// 64 bits).
pub(super) fn base_type(name: &str, abi: Arch) -> Option<TypeKind> {
    if let Some((_, kind)) = WORDS.iter().find(|(word, _)| *word == name) {
        return Some(*kind);
    }
    let mut words: Vec<&str> = name.split_ascii_whitespace().collect();
    words.sort_unstable();
    let mut take = |word: &str| {
        let at = words.iter().position(|known| *known == word)?;
        Some(words.remove(at))
    };
    let (unsigned, signed) = (take("unsigned").is_some(), take("signed").is_some());
    let (long, longer) = (take("long").is_some(), take("long").is_some());
    let (short, int, char) = (
        take("short").is_some(),
        take("int").is_some(),
        take("char").is_some(),
    );
    let (wide, double) = (take("__int128").is_some(), take("double").is_some());
    let sized = long || short;
    let known = unsigned || signed || sized || int || char;
    let clash = (unsigned && signed)
        || (long && short)
        || (char && (sized || int))
        || (wide && (sized || int || char));
    if !words.is_empty() || clash || !(known || wide) {
        return None;
    }
    if double {
        let plain = !(unsigned || signed || longer || short || int || char || wide);
        return (plain && long).then_some(TypeKind::Float { size: 16 });
    }
    if char {
        let signed = if unsigned || signed {
            signed
        } else {
            abi.char_is_signed()
        };
        return Some(TypeKind::Int {
            size: 1,
            signed,
            class: IntClass::Char,
        });
    }
    let size = if wide {
        16
    } else if long {
        8
    } else if short {
        2
    } else {
        4
    };
    Some(number(size, !unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_order() {
        let base = |name| base_type(name, Arch::X86_64);
        for name in [
            "unsigned long",
            "long unsigned int",
            "unsigned long long",
            "long int unsigned long",
            "u64",
        ] {
            assert_eq!(base(name), Some(number(8, false)), "{name}");
        }
        for name in ["int", "signed", "signed int", "int32_t"] {
            assert_eq!(base(name), Some(number(4, true)), "{name}");
        }
        assert_eq!(base("short"), Some(number(2, true)));
        assert_eq!(base("unsigned __int128"), Some(number(16, false)));
        assert_eq!(base("long double"), Some(TypeKind::Float { size: 16 }));
        assert_eq!(
            base("char"),
            Some(TypeKind::Int {
                size: 1,
                signed: true,
                class: IntClass::Char
            })
        );
        assert_eq!(
            base_type("char", Arch::Aarch64),
            Some(TypeKind::Int {
                size: 1,
                signed: false,
                class: IntClass::Char
            })
        );
        for name in [
            "",
            "signed unsigned",
            "long short",
            "long char",
            "long float",
            "double double",
            "foo",
            "int int",
        ] {
            assert_eq!(base(name), None, "{name}");
        }
    }
}
