//! Names and literals.

use bt_lang::Span;
use text::patterns::did_you_mean;

use super::Check;
use super::builtins::BUILTINS;
use super::expr::smallest;
use crate::headers;
use crate::hir::{Expr, ExprKind};
use crate::ty::{Space, Ty};

impl Check<'_, '_> {
    pub(super) fn string(&mut self, bytes: Vec<u8>, span: Span) -> Expr {
        let size = bytes.len() as u32 + 1;
        Expr::new(Ty::Str(size), ExprKind::Str(bytes), span)
    }

    /// Checks a bare name: a builtin, or a constant of the script, an enumeration or a header.
    pub(super) fn ident(&mut self, name: &str, span: Span) -> Expr {
        let plain = name.strip_prefix("__builtin_").unwrap_or(name);
        if let Some(builtin) = BUILTINS
            .iter()
            .find(|builtin| builtin.name == plain || builtin.name == name)
        {
            return (builtin.make)(self, span);
        }
        if name == "args" {
            return self.args_value(span);
        }
        if let Some(value) = self.numbered(name, span) {
            return value;
        }
        if let Some(define) = self.types.defines.get(name).cloned() {
            let value = self.expr(&define);
            return Expr { span, ..value };
        }
        if name == "NULL" {
            return Expr::int(0, smallest(0), span);
        }
        if let Some(value) = self.enumerator(name, span) {
            return value;
        }
        let constant = headers::find(name);
        if let (Some((_, number)), true) = (constant, self.types.includes) {
            let ty = if number < 0 {
                crate::ty::I64
            } else {
                smallest(number.cast_unsigned())
            };
            return Expr::int(number.cast_unsigned(), ty, span);
        }
        if !self.diagnostics.would_keep(span) {
            return Expr::error(span);
        }
        let near = bt_lang::nearest(name, BUILTINS.iter().map(|builtin| builtin.name));
        let hint = match constant {
            Some((header, _)) => format!("#include <{header}> has it, or --include {header}"),
            None => did_you_mean(&near).unwrap_or_else(|| {
                "strings are in quotes, variables begin with $, maps with @".to_owned()
            }),
        };
        self.wrong_hint(span, format!("unknown identifier: '{name}'"), hint)
    }

    /// Checks `arg0` and `sarg0`.
    fn numbered(&mut self, name: &str, span: Span) -> Option<Expr> {
        let number = |prefix: &str| {
            name.strip_prefix(prefix)
                .and_then(|digits| digits.parse::<u32>().ok())
        };
        if let Some(number) = number("arg") {
            return Some(self.argument(number, span));
        }
        number("sarg").map(|number| self.stack_argument(number, span))
    }

    fn enumerator(&mut self, name: &str, span: Span) -> Option<Expr> {
        let mut found = self.types.find_enumerator(name);
        if found.is_none() && !self.types.kernel_asked {
            self.types.load_kernel_types();
            found = self.types.find_enumerator(name);
        }
        let (ty, value) = found?;
        let ty = self.ty_in(ty, Space::Any);
        Some(Expr::int(value.cast_unsigned(), ty, span))
    }

    /// Checks `$1`: a number if it looks like one, else a string; 0 if it is missing.
    pub(super) fn positional(&mut self, number: u32, span: Span) -> Expr {
        let Some(text) = self.param(number) else {
            return Expr::int(0, smallest(0), span);
        };
        match self::number(&text) {
            Some(value) if text.starts_with('-') => Expr::int(value, crate::ty::I64, span),
            Some(value) => Expr::int(value, smallest(value), span),
            None => self.string(text.into_bytes(), span),
        }
    }

    pub(super) fn param(&self, number: u32) -> Option<String> {
        let index = (number as usize).checked_sub(1)?;
        // Arguments of the form `--name=value` are for getopt.
        self.inputs
            .facts
            .params()
            .iter()
            .filter(|param| !param.starts_with("--"))
            .nth(index)
            .cloned()
    }
}

/// Parses a number as written on the command line.
pub(crate) fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => {
            u64::from_str_radix(&digits[1..], 8).ok()?
        }
        None => digits.parse().ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}
