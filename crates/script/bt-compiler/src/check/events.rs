//! Functions that send events, and functions on whole maps.

use bt_lang::Span;
use bt_lang::ast::{self};

use super::calls::Call;
use super::{Check, format};
use crate::check::elements::cast_kind;
use crate::hir::{Expr, ExprKind, Stmt};
use crate::map::MapValueKind;
use crate::ty::{I64, Ty, U64};
use bt_abi::{Action, ActionKind, FormatPiece, FormatSize, FormatSpec, PrintTo};

/// Limit on an event's size in bytes.
const MAX_EVENT: u32 = 32_000;
/// Limit on the strings that `join` prints, as in bpftrace.
const JOIN_STRINGS: u32 = 16;

impl Check<'_, '_> {
    /// Builds a statement that sends an event.
    pub(super) fn event(&mut self, kind: ActionKind, args: Vec<Expr>, span: Span) -> Expr {
        let args: Vec<Expr> = args.into_iter().map(Expr::ended).collect();
        let types: Vec<_> = args
            .iter()
            .map(|arg| self.types.value_type(&arg.ty))
            .collect();
        let mut action = Action::new(kind, &types, span);
        action.callers = self.callers.iter().rev().copied().collect();
        if action.size > MAX_EVENT {
            let message = format!(
                "this event has {} bytes, but at most {MAX_EVENT} are possible",
                action.size
            );
            return self.wrong_hint(
                span,
                message,
                "print fewer or shorter strings: str(address, length)",
            );
        }
        self.tables.actions.push(action);
        let action = self.tables.actions.len() - 1;
        Expr::statement(vec![Stmt::Event { action, args }], span)
    }

    /// Checks that a conversion of a format can show a value.
    fn check_shown(&mut self, caller: &str, spec: &FormatSpec, value: &Expr, span: Span) {
        let problem = if value.ty.is_unknown() {
            Ok(())
        } else {
            format::accepts(spec, &value.ty)
        };
        if let Err(expected) = problem {
            let (name, letter) = (self.type_name(&value.ty), spec.conversion);
            self.wrong(
                span,
                format!("{caller}: %{letter} specifier expects a value of type {expected} ({name} supplied)"),
            );
        }
        if matches!(value.ty, Ty::Agg(_) | Ty::Void) {
            let name = self.type_name(&value.ty);
            self.wrong(span, format!("a value of type '{name}' can't be printed"));
        }
    }

    /// Checks a call's format; returns its pieces and the values that it shows.
    pub(super) fn formatted(&mut self, call: &Call<'_>) -> Option<(Vec<FormatPiece>, Vec<Expr>)> {
        let text = self.expr(&call.args[0]);
        let ExprKind::Str(text) = &text.kind else {
            self.wrong(
                call.args[0].span,
                format!("{}() expects a string literal as its format", call.name),
            );
            return None;
        };
        let pieces = match format::parse(text) {
            Ok(pieces) => pieces,
            Err(message) => {
                self.wrong(call.args[0].span, format!("{}: {message}", call.name));
                return None;
            }
        };
        let values: Vec<Expr> = call.args[1..].iter().map(|arg| self.expr(arg)).collect();
        let mut rest = values.iter().zip(&call.args[1..]);
        let mut wanted = 0;
        for piece in &pieces {
            let FormatPiece::Value(spec) = piece else {
                continue;
            };
            for size in [spec.width, spec.precision] {
                if size == Some(FormatSize::Field) {
                    wanted += 1;
                    rest.next();
                }
            }
            wanted += 1;
            let Some((value, arg)) = rest.next() else {
                continue;
            };
            self.check_shown(call.name, spec, value, arg.span);
        }
        if wanted != values.len() {
            let enough = if wanted > values.len() {
                "not enough"
            } else {
                "too many"
            };
            let message = format!(
                "{}: {enough} arguments for format string ({wanted} expected, {} supplied)",
                call.name,
                values.len()
            );
            self.wrong(call.span, message);
            return None;
        }
        let values = values
            .into_iter()
            .zip(&call.args[1..])
            .map(|(value, arg)| (value, self.is_written(arg)));
        Some(with_own_texts(pieces, values))
    }

    pub(super) fn printf(&mut self, call: &Call<'_>) -> Expr {
        let to = match call.name {
            "errorf" => PrintTo::Error,
            "warnf" => PrintTo::Warning,
            _ => PrintTo::Output,
        };
        match self.formatted(call) {
            Some((format, args)) => self.event(ActionKind::Printf { format, to }, args, call.span),
            None => Expr::new(Ty::Void, ExprKind::Error, call.span),
        }
    }

    /// Checks `fail(format, ...)`: reports a mistake in the script's own words, with values known
    /// at compile time.
    pub(super) fn fail(&mut self, call: &Call<'_>) -> Expr {
        let Some((format, values)) = self.formatted(call) else {
            return Expr::new(Ty::Void, ExprKind::Error, call.span);
        };
        let (mut values, mut message) = (values.iter(), String::new());
        for piece in &format {
            let spec = match piece {
                FormatPiece::Text(text) => {
                    message.push_str(&String::from_utf8_lossy(text));
                    continue;
                }
                FormatPiece::Value(spec) => spec,
            };
            let shown = match (values.next().map(|value| &value.kind), spec.conversion) {
                (Some(ExprKind::Str(text)), _) => String::from_utf8_lossy(text).into_owned(),
                (Some(ExprKind::Int(number)), 'x' | 'X' | 'p') => format!("{number:x}"),
                (Some(ExprKind::Int(number)), 'u') => number.to_string(),
                (Some(ExprKind::Int(number)), _) => number.cast_signed().to_string(),
                _ => {
                    return self.wrong(
                        call.span,
                        "fail() shows only what is known at compile time: literals, parameters",
                    );
                }
            };
            message.push_str(&shown);
        }
        self.wrong(call.span, message)
    }

    pub(super) fn cat(&mut self, call: &Call<'_>) -> Expr {
        if call.name == "system" && !self.inputs.facts.allows_unsafe() {
            return self.wrong_hint(
                call.span,
                "system() acts on the machine: it needs --unsafe",
                "add --unsafe to allow it",
            );
        }
        match self.formatted(call) {
            Some((format, args)) if call.name == "system" => {
                self.event(ActionKind::System { format }, args, call.span)
            }
            Some((format, args)) => self.event(ActionKind::Cat { format }, args, call.span),
            None => Expr::new(Ty::Void, ExprKind::Error, call.span),
        }
    }

    /// Builds the statement that reports a failed assertion.
    pub(super) fn assertion(&mut self, message: Expr, span: Span) -> Stmt {
        let format = format::parse(b"assert failed: %s").unwrap_or_default();
        let sent = self.event(
            ActionKind::Printf {
                format,
                to: PrintTo::Error,
            },
            vec![message],
            span,
        );
        Stmt::Expr(sent)
    }

    pub(super) fn exit(&mut self, call: &Call<'_>) -> Expr {
        let code = match call.args.first() {
            Some(code) => self.integer(code),
            None => Expr::int(0, I64, call.span),
        };
        let code = self.convert(code, I64, call.span);
        self.leave(code, call.span)
    }

    /// Ends the script with an exit status.
    pub(super) fn leave(&mut self, code: Expr, span: Span) -> Expr {
        let mut sent = self.event(ActionKind::Exit, vec![code], span);
        if let ExprKind::Block { stmts, .. } = &mut sent.kind {
            stmts.push(Stmt::Return);
        }
        sent
    }

    pub(super) fn time(&mut self, call: &Call<'_>) -> Expr {
        let format = match call.args.first() {
            Some(arg) => self.literal(arg, "time").unwrap_or_default(),
            None => "%H:%M:%S\n".to_owned(),
        };
        self.event(ActionKind::Time { format }, Vec::new(), call.span)
    }

    pub(super) fn join(&mut self, call: &Call<'_>) -> Expr {
        let delimiter = match call.args.get(1) {
            Some(arg) => self.literal(arg, "join").unwrap_or_default(),
            None => " ".to_owned(),
        };
        let value = self.expr(&call.args[0]);
        let Some((argv, space)) = self.address(value) else {
            return self.wrong(call.span, "join() only supports int and pointer arguments");
        };
        let size = self
            .inputs
            .config
            .max_strlen
            .min(MAX_EVENT / (JOIN_STRINGS + 1));
        let strings = Ty::Array {
            elem: Box::new(Ty::Str(size / 8 * 8)),
            count: JOIN_STRINGS,
        };
        let types = [self.types.value_type(&strings)];
        self.tables.actions.push(Action::new(
            ActionKind::Join { delimiter },
            &types,
            call.span,
        ));
        let action = self.tables.actions.len() - 1;
        Expr::statement(
            vec![Stmt::Join {
                action,
                argv,
                space,
            }],
            call.span,
        )
    }

    /// Checks `print` of a map, an element of one, or a value.
    pub(super) fn print(&mut self, call: &Call<'_>) -> Expr {
        let (arg, span) = (&call.args[0], call.span);
        if let ast::ExprKind::Map(map) = &arg.kind {
            let id = self.map_id(&map.name.text, map.name.span);
            if map.keys.is_empty() {
                if !self.require_map(id, arg.span) {
                    return Expr::new(Ty::Void, ExprKind::Error, span);
                }
                let mut limits = Vec::new();
                for index in 1..3 {
                    let value = call.args.get(index).map(|arg| self.integer(arg));
                    let value = value.unwrap_or_else(|| Expr::int(0, U64, span));
                    limits.push(self.convert(value, U64, span));
                }
                return self.event(ActionKind::PrintMap { map: id }, limits, span);
            }
            if call.args.len() > 1 {
                return self.wrong(
                    span,
                    "print() of a map's element takes no further arguments",
                );
            }
            if !self.require_map(id, arg.span) {
                return Expr::new(Ty::Void, ExprKind::Error, span);
            }
            let key = self.key(id, &map.keys, arg.span);
            let Some(key_ty) = self.map(id).key.clone() else {
                return Expr::new(Ty::Void, ExprKind::Error, span);
            };
            // The event's key has the form of the map's keys.
            let shown = Expr {
                ty: key_ty,
                ..key.clone()
            };
            let mut args = vec![Expr {
                kind: cast_kind(key),
                ..shown
            }];
            if let Some(MapValueKind::Scalar(_)) = self.map(id).value {
                args.push(self.map_read(map, arg.span));
            }
            return self.event(ActionKind::PrintElement { map: id }, args, span);
        }
        if call.args.len() > 1 {
            return self.wrong_hint(
                span,
                "print() of a value takes no further arguments",
                "top and div are for maps",
            );
        }
        let value = self.expr(arg);
        match &value.ty {
            Ty::Void | Ty::Agg(_) => {
                let name = self.type_name(&value.ty);
                self.wrong(span, format!("a value of type '{name}' can't be printed"))
            }
            _ => self.event(ActionKind::PrintValue, vec![value], span),
        }
    }
}

/// Merges texts written in the script (marked by each value's flag) and shown by a plain `%s` into
/// the format. They are printed as they are, terminal escapes included, and take no room in the
/// event. Other constants are not the script's words. The texts of `probe` and `func` come from
/// foreign files, so they are escaped like a traced program's text.
fn with_own_texts(
    pieces: Vec<FormatPiece>,
    mut values: impl Iterator<Item = (Expr, bool)>,
) -> (Vec<FormatPiece>, Vec<Expr>) {
    let (mut format, mut left) = (Vec::with_capacity(pieces.len()), Vec::new());
    for piece in pieces {
        let FormatPiece::Value(spec) = &piece else {
            format.push(piece);
            continue;
        };
        let sizes = [spec.width, spec.precision];
        let fields = sizes
            .iter()
            .filter(|size| **size == Some(FormatSize::Field))
            .count();
        left.extend(values.by_ref().take(fields).map(|(value, _)| value));
        let is_plain = spec.conversion == 's' && sizes == [None; 2];
        match values.next() {
            Some((
                Expr {
                    kind: ExprKind::Str(text),
                    ..
                },
                true,
            )) if is_plain => {
                let end = text
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(text.len());
                format.push(FormatPiece::Text(text[..end].to_vec()));
            }
            Some((value, _)) => {
                left.push(value);
                format.push(piece);
            }
            None => format.push(piece),
        }
    }
    (format, left)
}
