//! Formats of `printf` and the like: `%` and the letters behind it.

use crate::ty::Ty;
use bt_abi::{FormatPiece, FormatSize, FormatSpec};

/// Number of bytes of an integer that are shown, by the length modifier before the letter.
const LENGTHS: [(&[u8], u8); 6] = [
    (b"hh", 1),
    (b"h", 2),
    (b"ll", 8),
    (b"l", 8),
    (b"j", 8),
    (b"z", 8),
];

/// Parses a format; an error is a description of the mistake.
pub(super) fn parse(format: &[u8]) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut at = 0;
    while let Some(&byte) = format.get(at) {
        at += 1;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        if format.get(at) == Some(&b'%') {
            text.push(b'%');
            at += 1;
            continue;
        }
        let (spec, end) = match spec(format, at) {
            Ok(found) => found,
            // A lone percent sign (`%d% busy`), as in SPDK's sched.bt, stands for itself.
            Err(_) if !format.get(at).is_some_and(u8::is_ascii_graphic) => {
                text.push(b'%');
                continue;
            }
            Err(wrong) => return Err(wrong),
        };
        if !text.is_empty() {
            pieces.push(FormatPiece::Text(std::mem::take(&mut text)));
        }
        pieces.push(FormatPiece::Value(spec));
        at = end;
    }
    if !text.is_empty() {
        pieces.push(FormatPiece::Text(text));
    }
    Ok(pieces)
}

/// Parses the specifier behind a `%`; returns it and its end.
fn spec(format: &[u8], mut at: usize) -> Result<(FormatSpec, usize), String> {
    let mut spec = FormatSpec::default();
    let peek = |at: usize| format.get(at).copied().unwrap_or(0);
    loop {
        match peek(at) {
            b'-' => spec.left = true,
            b'0' => spec.zero = true,
            b'+' => spec.plus = true,
            b'#' => spec.alternate = true,
            b' ' => spec.space = true,
            _ => break,
        }
        at += 1;
    }
    let size = |at: &mut usize| {
        if peek(*at) == b'*' {
            *at += 1;
            return Some(FormatSize::Field);
        }
        let start = *at;
        while peek(*at).is_ascii_digit() {
            *at += 1;
        }
        let digits = std::str::from_utf8(&format[start..*at]).ok()?;
        digits
            .parse()
            .ok()
            .map(|number: u32| FormatSize::Fixed(number.min(4096)))
    };
    spec.width = size(&mut at);
    if peek(at) == b'.' {
        at += 1;
        spec.precision = size(&mut at).or(Some(FormatSize::Fixed(0)));
    }
    let rest = format.get(at..).unwrap_or_default();
    if let Some((word, bytes)) = LENGTHS.iter().find(|(word, _)| rest.starts_with(word)) {
        spec.length = Some(*bytes);
        at += word.len();
    }
    spec.conversion = char::from(peek(at));
    if !matches!(
        spec.conversion,
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c' | 'p' | 's' | 'r'
    ) && rest_is(format, at, b"gr").is_none()
    {
        return Err(if peek(at) == 0 {
            "the format ends within a %".to_owned()
        } else {
            format!("unknown format specifier: %{}", spec.conversion)
        });
    }
    at += 1;
    if spec.conversion == 'g' {
        (spec.suffix, at) = (Some('r'), at + 1);
    }
    if spec.conversion == 'r' && matches!(peek(at), b'x' | b'h') {
        spec.suffix = Some(char::from(peek(at)));
        at += 1;
    }
    Ok((spec, at))
}

/// Returns the rest behind a word, if the word is at this position.
fn rest_is<'f>(format: &'f [u8], at: usize, word: &[u8]) -> Option<&'f [u8]> {
    format.get(at..)?.strip_prefix(word)
}

/// Checks that the specifier can show a value of the type; an error names the wanted type.
pub(super) fn accepts(spec: &FormatSpec, ty: &Ty) -> Result<(), &'static str> {
    match spec.conversion {
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => match ty {
            ty if ty.is_scalar() => Ok(()),
            _ => Err("integer"),
        },
        'p' => match ty {
            ty if ty.is_scalar() => Ok(()),
            _ => Err("pointer or integer"),
        },
        'c' => match ty {
            Ty::Int { .. } => Ok(()),
            _ => Err("integer"),
        },
        'g' => match ty {
            Ty::Int { .. } | Ty::Enum { .. } => Ok(()),
            _ => Err("integer"),
        },
        'r' => match ty {
            Ty::Buf(_) | Ty::Str(_) | Ty::Array { .. } => Ok(()),
            _ => Err("buffer"),
        },
        _ => match ty {
            Ty::Int { .. } | Ty::Ptr { .. } => Err("string"),
            _ => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(format: &str) -> FormatSpec {
        match parse(format.as_bytes()).unwrap().as_slice() {
            [FormatPiece::Value(spec)] => spec.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn specifiers_are_taken_apart() {
        let spec = one("%-08.3llx");
        assert!(spec.left && spec.zero);
        assert_eq!(
            (spec.width, spec.precision),
            (Some(FormatSize::Fixed(8)), Some(FormatSize::Fixed(3)))
        );
        assert_eq!((spec.length, spec.conversion), (Some(8), 'x'));
        assert_eq!((one("%gr").conversion, one("%gr").suffix), ('g', Some('r')));
        assert!(parse(b"%g").is_err());
        assert!(one("% d").space);
        assert_eq!(one("%*s").width, Some(FormatSize::Field));
        assert_eq!(
            (one("%hhd").length, one("%rx").suffix),
            (Some(1), Some('x'))
        );
    }

    #[test]
    fn text_and_percents() {
        assert_eq!(parse(b"100%% of %d\n").unwrap().len(), 3);
        assert_eq!(
            parse(b"100%%").unwrap(),
            [FormatPiece::Text(b"100%".to_vec())]
        );
        assert_eq!(
            parse(b"%d% busy\n").unwrap()[1],
            FormatPiece::Text(b"% busy\n".to_vec())
        );
        assert_eq!(parse(b"%").unwrap(), [FormatPiece::Text(b"%".to_vec())]);
        assert!(parse(b"%5").is_err());
        assert!(parse(b"%y").unwrap_err().contains("%y"));
    }
}
