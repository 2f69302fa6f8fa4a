//! `printf`: formats and their values. The conversions are those of C (`printf(3)`), plus `%r` for
//! buffers and `%gr` for flags of the kernel's page allocator.

use bt_abi::{FormatPiece, FormatSize, FormatSpec};

use crate::gfp;
use crate::text;
use crate::value::Value;

/// Limit on the width of a field, since a `*` takes it from the traced program.
const MAX_WIDTH: usize = 1 << 16;

/// Formats the pieces with their values. Missing values print nothing.
pub fn format(pieces: &[FormatPiece], values: &[Value]) -> String {
    let mut out = String::new();
    let mut values = values.iter();
    for piece in pieces {
        match piece {
            // The script's own text may send the terminal anything.
            FormatPiece::Text(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
            FormatPiece::Value(spec) => {
                let width = size(spec.width, &mut values);
                let precision = size(spec.precision, &mut values);
                if let Some(value) = values.next() {
                    out.push_str(&one(spec, width, precision, value));
                }
            }
        }
    }
    out
}

/// Returns a width or precision. A negative width aligns to the left.
fn size<'a>(size: Option<FormatSize>, values: &mut impl Iterator<Item = &'a Value>) -> Option<i64> {
    match size? {
        FormatSize::Fixed(size) => Some(i64::from(size)),
        FormatSize::Field => values
            .next()
            .and_then(Value::number)
            .map(|number| i64::from(number as i32)),
    }
}

fn one(spec: &FormatSpec, width: Option<i64>, precision: Option<i64>, value: &Value) -> String {
    let precision = precision
        .and_then(|precision| usize::try_from(precision).ok())
        .map(|it| it.min(MAX_WIDTH));
    let left = spec.left || width.is_some_and(|width| width < 0);
    let width = (width.unwrap_or(0).unsigned_abs() as usize).min(MAX_WIDTH);
    let (sign, digits) = match spec.conversion {
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => match value.number() {
            Some(number) => integer(spec, number, precision),
            None => return misfit(value),
        },
        'c' => match value.number() {
            Some(number) => (String::new(), character(number as u8)),
            None => return misfit(value),
        },
        'p' => match value.number() {
            Some(number) => (String::new(), format!("0x{:x}", number as u64)),
            None => return misfit(value),
        },
        'r' => (String::new(), buffer(spec, value)),
        'g' => match value.number() {
            Some(number) => (String::new(), gfp::names(number as u64)),
            None => return misfit(value),
        },
        _ => {
            let text = text::value(value);
            (
                String::new(),
                precision.map_or(text.clone(), |most| text.chars().take(most).collect()),
            )
        }
    };
    let fill = width.saturating_sub(sign.chars().count() + digits.chars().count());
    let is_number = matches!(spec.conversion, 'd' | 'i' | 'u' | 'x' | 'X' | 'o');
    if left {
        format!("{sign}{digits}{}", " ".repeat(fill))
    } else if spec.zero && !(is_number && precision.is_some()) {
        format!("{sign}{}{digits}", "0".repeat(fill))
    } else {
        format!("{}{sign}{digits}", " ".repeat(fill))
    }
}

/// Formats the placeholder for a value that a conversion can't take.
fn misfit(value: &Value) -> String {
    format!("!{{invalid integer conversion: {}}}", text::value(value))
}

/// Formats a byte as a character. A byte that is not ASCII is not UTF-8 on its own.
fn character(byte: u8) -> String {
    let mut out = String::new();
    text::push_bytes(&mut out, &[byte]);
    out
}

/// Returns the sign or prefix, and the digits.
fn integer(spec: &FormatSpec, number: i128, precision: Option<usize>) -> (String, String) {
    // C's `int` is the default length.
    let bits = 8 * u32::from(spec.length.unwrap_or(4).clamp(1, 8));
    let kept = (number as u64) << (64 - bits);
    let unsigned = kept >> (64 - bits);
    let signed = kept.cast_signed() >> (64 - bits);
    let is_signed = matches!(spec.conversion, 'd' | 'i');
    let digits = match spec.conversion {
        'x' => format!("{unsigned:x}"),
        'X' => format!("{unsigned:X}"),
        'o' => format!("{unsigned:o}"),
        'u' => unsigned.to_string(),
        _ => signed.unsigned_abs().to_string(),
    };
    let sign = match spec.conversion {
        _ if is_signed && signed < 0 => "-",
        _ if is_signed && spec.plus => "+",
        _ if is_signed && spec.space => " ",
        'x' if spec.alternate && unsigned != 0 => "0x",
        'X' if spec.alternate && unsigned != 0 => "0X",
        'o' if spec.alternate && unsigned != 0 => "0",
        _ => "",
    };
    let zeros = "0".repeat(precision.unwrap_or(0).saturating_sub(digits.len()));
    (sign.to_owned(), zeros + &digits)
}

fn buffer(spec: &FormatSpec, value: &Value) -> String {
    let Value::Buffer(bytes) = value else {
        return text::value(value);
    };
    let hex = |prefix: &str| {
        bytes
            .iter()
            .map(|byte| format!("{prefix}{byte:02x}"))
            .collect::<Vec<_>>()
    };
    match spec.suffix {
        Some('x') => hex("\\x").concat(),
        Some('h') => hex("").join(" "),
        _ => text::escaped(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(conversion: char) -> FormatSpec {
        FormatSpec {
            conversion,
            ..FormatSpec::default()
        }
    }

    fn shown(spec: FormatSpec, value: Value) -> String {
        format(&[FormatPiece::Value(spec)], &[value])
    }

    #[test]
    fn lengths_cut_as_in_c() {
        let value = || Value::Uint(0x0012_3456_78ab_cdef);
        let of = |length| {
            shown(
                FormatSpec {
                    length,
                    ..spec('x')
                },
                value(),
            )
        };
        assert_eq!(
            [Some(1), Some(2), None, Some(8)].map(of),
            ["ef", "cdef", "78abcdef", "12345678abcdef"]
        );
        assert_eq!(shown(spec('d'), Value::Uint(u64::from(u32::MAX))), "-1");
        assert_eq!(shown(spec('u'), Value::Int(-1)), "4294967295");
        assert_eq!(
            shown(
                FormatSpec {
                    length: Some(8),
                    ..spec('d')
                },
                Value::Int(i64::MIN)
            ),
            "-9223372036854775808"
        );
    }

    #[test]
    fn widths_signs_and_fills() {
        let width = |width| Some(FormatSize::Fixed(width));
        assert_eq!(
            shown(
                FormatSpec {
                    width: width(5),
                    ..spec('s')
                },
                Value::text("ba")
            ),
            "   ba"
        );
        assert_eq!(
            shown(
                FormatSpec {
                    width: width(4),
                    left: true,
                    ..spec('s')
                },
                Value::text("ba")
            ),
            "ba  "
        );
        assert_eq!(
            shown(
                FormatSpec {
                    width: width(4),
                    zero: true,
                    ..spec('x')
                },
                Value::Int(2)
            ),
            "0002"
        );
        assert_eq!(
            shown(
                FormatSpec {
                    width: width(5),
                    zero: true,
                    ..spec('d')
                },
                Value::Int(-5)
            ),
            "-0005"
        );
    }

    #[test]
    fn signs_prefixes_and_precisions() {
        let width = |width| Some(FormatSize::Fixed(width));
        assert_eq!(
            shown(
                FormatSpec {
                    plus: true,
                    ..spec('d')
                },
                Value::Int(5)
            ),
            "+5"
        );
        assert_eq!(
            shown(
                FormatSpec {
                    alternate: true,
                    ..spec('x')
                },
                Value::Int(255)
            ),
            "0xff"
        );
        assert_eq!(
            shown(
                FormatSpec {
                    precision: width(3),
                    width: width(6),
                    ..spec('d')
                },
                Value::Int(7)
            ),
            "   007"
        );
        assert_eq!(
            shown(
                FormatSpec {
                    precision: width(2),
                    ..spec('s')
                },
                Value::text("abc")
            ),
            "ab"
        );
        let star = FormatSpec {
            width: Some(FormatSize::Field),
            ..spec('s')
        };
        assert_eq!(
            format(
                &[FormatPiece::Value(star)],
                &[Value::Int(-3), Value::text("a")]
            ),
            "a  "
        );
    }

    #[test]
    fn values_of_every_kind() {
        let word = Value::Symbol {
            text: "ONE".into(),
            number: 1,
        };
        assert_eq!(shown(spec('s'), word.clone()), "ONE");
        assert_eq!(shown(spec('d'), word), "1");
        assert_eq!(shown(spec('c'), Value::Int(0x41)), "A");
        assert_eq!(
            shown(spec('p'), Value::Uint(0xffff_8000_0000_0000)),
            "0xffff800000000000"
        );
        assert_eq!(shown(spec('s'), Value::Bool(true)), "true");
        assert_eq!(shown(spec('d'), Value::Bool(true)), "1");
        assert_eq!(
            shown(
                spec('s'),
                Value::Tuple(vec![Value::Int(1), Value::text("a")])
            ),
            "(1, a)"
        );
        assert_eq!(
            shown(spec('d'), Value::text("a")),
            "!{invalid integer conversion: a}"
        );
        let data = || Value::Buffer(vec![0, b'a', 0xff]);
        assert_eq!(shown(spec('r'), data()), "\\x00a\\xff");
        assert_eq!(
            shown(
                FormatSpec {
                    suffix: Some('x'),
                    ..spec('r')
                },
                data()
            ),
            "\\x00\\x61\\xff"
        );
        assert_eq!(
            shown(
                FormatSpec {
                    suffix: Some('h'),
                    ..spec('r')
                },
                data()
            ),
            "00 61 ff"
        );
    }
}
