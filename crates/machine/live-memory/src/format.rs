//! Formatting for `printf`.

use bt_lang::Span;
use text::printable;

use crate::eval::{EvalError, Evaluator, Value};

/// A directive of a format: `%-8s`, `%04x`, `%lld`.
struct Directive {
    left: bool,
    zeros: bool,
    /// `#`: with the prefix `0x`.
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
}

/// Limit on the width of a column.
const MAX_WIDTH: usize = 4096;

/// Formats values, escaped so that no terminal obeys the process's output.
pub(crate) fn format(
    evaluator: &Evaluator<'_>,
    format: &[u8],
    values: &[(Value, Span)],
    span: Span,
) -> Result<String, EvalError> {
    let mut text = String::new();
    let mut values = values.iter();
    let mut rest = format;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        text.push_str(&printable::lines(&rest[..at]));
        let (directive, behind) = directive(&rest[at + 1..])
            .ok_or_else(|| EvalError::other(span, "the format ends within a directive"))?;
        rest = behind;
        if directive.conversion == b'%' {
            text.push('%');
            continue;
        }
        let (value, place) = values.next().ok_or_else(|| {
            EvalError::other(
                span,
                format!(
                    "the format has more directives than the {} values",
                    values.len()
                ),
            )
        })?;
        text.push_str(&padded(
            &directive,
            converted(evaluator, &directive, value, *place)?,
        ));
    }
    text.push_str(&printable::lines(rest));
    match values.next() {
        Some((_, place)) => Err(EvalError::other(
            *place,
            "the format has no directive for this value",
        )),
        None => Ok(text),
    }
}

fn directive(mut rest: &[u8]) -> Option<(Directive, &[u8])> {
    let mut directive = Directive {
        left: false,
        zeros: false,
        alternate: false,
        width: 0,
        precision: None,
        conversion: 0,
    };
    let number = |rest: &mut &[u8]| {
        let mut number = 0_usize;
        while let Some((digit @ b'0'..=b'9', behind)) = rest.split_first() {
            number = number
                .saturating_mul(10)
                .saturating_add(usize::from(digit - b'0'))
                .min(MAX_WIDTH);
            *rest = behind;
        }
        number
    };
    loop {
        let (first, behind) = rest.split_first()?;
        match first {
            b'-' => directive.left = true,
            b'0' => directive.zeros = true,
            b'#' => directive.alternate = true,
            b'l' | b'h' | b'z' | b'j' | b't' | b'+' | b' ' => {}
            b'1'..=b'9' => {
                directive.width = number(&mut rest);
                continue;
            }
            b'.' => {
                rest = behind;
                directive.precision = Some(number(&mut rest));
                continue;
            }
            conversion => {
                directive.conversion = *conversion;
                return Some((directive, behind));
            }
        }
        rest = behind;
    }
}

fn converted(
    evaluator: &Evaluator<'_>,
    directive: &Directive,
    value: &Value,
    span: Span,
) -> Result<String, EvalError> {
    let number = || {
        let number = value
            .number()
            .or_else(|| value.place().map(|place| place.address.into()));
        number.ok_or_else(|| {
            EvalError::other(
                span,
                format!("expected a number, found {}", evaluator.describe(value)),
            )
        })
    };
    let prefix = if directive.alternate { "0x" } else { "" };
    Ok(match directive.conversion {
        b'd' | b'i' => number()?.to_string(),
        b'u' => match number()? {
            negative @ ..0 => (negative as u64).to_string(),
            positive => positive.to_string(),
        },
        b'x' => format!("{prefix}{:x}", number()? as u64),
        b'X' => format!("{prefix}{:X}", number()? as u64),
        b'o' => format!("{:o}", number()? as u64),
        b'p' => format!("{:#x}", number()? as u64),
        b'c' => printable::text(&[number()? as u8]).into_owned(),
        b's' => {
            let text = match evaluator.text(value, span)? {
                Some(text) => printable::lines(&text).into_owned(),
                None => evaluator.one_line(value, span)?,
            };
            directive
                .precision
                .map_or(text.clone(), |most| text.chars().take(most).collect())
        }
        b'f' | b'g' | b'e' => match value {
            Value::Float { value, .. } => {
                format!("{value:.*}", directive.precision.unwrap_or(6).min(60))
            }
            _ => number()?.to_string(),
        },
        other => {
            let known = "%d %u %x %X %o %p %c %s %f";
            let other = printable::text(&[other]).into_owned();
            return Err(
                EvalError::other(span, format!("there is no directive %{other}"))
                    .with_hint(format!("there are {known}")),
            );
        }
    })
}

fn padded(directive: &Directive, text: String) -> String {
    let missing = directive.width.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if directive.left {
        return text + &" ".repeat(missing);
    }
    let is_number = !matches!(directive.conversion, b's' | b'c');
    if directive.zeros && is_number {
        let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    " ".repeat(missing) + &text
}
