//! Options of a script on the command line: `getopt`.

use super::Check;
use super::calls::Call;
use crate::hir::{Expr, ExprKind};
use crate::ty::{I64, Ty, U64};

impl Check<'_, '_> {
    /// Checks `getopt(name, default)`, the value of `--name=value`.
    pub(super) fn getopt(&mut self, call: &Call<'_>) -> Expr {
        let Some(name) = self.literal(&call.args[0], "getopt") else {
            return Expr::error(call.span);
        };
        let about = call
            .args
            .get(2)
            .and_then(|about| self.literal(about, "getopt"));
        if !self.tables.options.iter().any(|(known, _)| *known == name) {
            self.tables.options.push((name.clone(), about));
        }
        let default = match call.args.get(1) {
            Some(default) => self.expr(default),
            None => Expr::int(0, Ty::Bool, call.span),
        };
        let given = self.inputs.facts.params().iter().rev().find_map(|param| {
            let rest = param.strip_prefix("--")?.strip_prefix(name.as_str())?;
            if rest.is_empty() {
                Some(None)
            } else {
                rest.strip_prefix('=').map(|value| Some(value.to_owned()))
            }
        });
        let Some(given) = given else {
            return Expr {
                span: call.span,
                ..default
            };
        };
        self.option_value(call, &name, default, given)
    }

    /// Returns the value of an option on the command line, in the type of its default.
    fn option_value(
        &mut self,
        call: &Call<'_>,
        name: &str,
        default: Expr,
        given: Option<String>,
    ) -> Expr {
        match (&default.kind, &default.ty, given) {
            (ExprKind::Int(_), Ty::Bool, None) => Expr::int(1, Ty::Bool, call.span),
            (ExprKind::Int(_), Ty::Bool, Some(text)) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Expr::int(1, Ty::Bool, call.span),
                "false" | "0" => Expr::int(0, Ty::Bool, call.span),
                _ => self.wrong(
                    call.span,
                    format!("the option --{name} is true or false, not {text}"),
                ),
            },
            (ExprKind::Int(_), _, Some(text)) => match super::literals::number(&text) {
                Some(number) => Expr::int(
                    number,
                    if text.starts_with('-') { I64 } else { U64 },
                    call.span,
                ),
                None => self.wrong(
                    call.span,
                    format!("the option --{name} is a number, not {text}"),
                ),
            },
            (ExprKind::Int(_), _, None) => {
                let hint = format!("write --{name}=NUMBER, as one word");
                self.wrong_hint(
                    call.span,
                    format!("the option --{name} needs a value"),
                    hint,
                );
                // This error is no reason to reject uses of the value.
                Expr {
                    span: call.span,
                    ..default
                }
            }
            (ExprKind::Str(_), _, text) => {
                self.string(text.unwrap_or_default().into_bytes(), call.span)
            }
            _ => self.wrong(
                call.args[1].span,
                "getopt() needs a literal for its default",
            ),
        }
    }
}
