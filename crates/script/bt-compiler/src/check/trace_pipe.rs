//! `debugf`: a line for the kernel's trace pipe, which the kernel itself formats.

use super::Check;
use super::calls::Call;
use crate::hir::{Expr, ExprKind, Stmt};
use crate::ty::Ty;
use bt_abi::{FormatPiece, FormatSize, FormatSpec};

/// Limit on the values that the kernel takes (`MAX_BPRINTF_VARARGS` of `linux/bpf.h`).
const MAX_VALUES: usize = 12;

impl Check<'_, '_> {
    pub(super) fn debugf(&mut self, call: &Call<'_>) -> Expr {
        let Some((pieces, args)) = self.formatted(call) else {
            return Expr::new(Ty::Void, ExprKind::Error, call.span);
        };
        if args.len() > MAX_VALUES {
            return self.wrong(
                call.span,
                format!("debugf() takes at most {MAX_VALUES} values: the kernel prints them"),
            );
        }
        let mut format = Vec::new();
        for piece in &pieces {
            match piece {
                FormatPiece::Text(text) => format.extend(text.iter().flat_map(|byte| match byte {
                    b'%' => vec![b'%', b'%'],
                    byte => vec![*byte],
                })),
                FormatPiece::Value(spec) => {
                    let Some(spec) = kernel_spec(spec) else {
                        let message = format!(
                            "debugf() can't print %{}: the kernel does not know it",
                            spec.conversion
                        );
                        return self.wrong(call.args[0].span, message);
                    };
                    format.extend(spec.into_bytes());
                }
            }
        }
        let plain =
            |arg: &Expr| arg.ty.is_unknown() || arg.ty.is_scalar() || matches!(arg.ty, Ty::Str(_));
        if let Some(arg) = args.iter().find(|arg| !plain(arg)) {
            let name = self.type_name(&arg.ty);
            return self.wrong_hint(
                arg.span,
                format!("debugf() can't print a value of type '{name}'"),
                "the kernel prints numbers and strings; printf() prints all else",
            );
        }
        format.push(0);
        Expr::statement(vec![Stmt::TracePipe { format, args }], call.span)
    }
}

/// Formats a conversion for the kernel (`bpf_bprintf_prepare` in `kernel/bpf/helpers.c`). Numbers
/// are words, and a width is in the format itself. Returns `None` if the kernel has no such
/// conversion.
fn kernel_spec(spec: &FormatSpec) -> Option<String> {
    let width = match spec.width {
        None => String::new(),
        Some(FormatSize::Fixed(width)) => width.to_string(),
        Some(FormatSize::Field) => return None,
    };
    let flags = [
        (spec.left, "-"),
        (spec.zero, "0"),
        (spec.plus, "+"),
        (spec.space, " "),
    ];
    let flags: String = flags
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, flag)| *flag)
        .collect();
    let conversion = match spec.conversion {
        letter @ ('d' | 'i' | 'u' | 'x' | 'X') => format!("ll{letter}"),
        'p' => "llx".to_owned(),
        's' => "s".to_owned(),
        'c' => "c".to_owned(),
        _ => return None,
    };
    Some(format!("%{flags}{width}{conversion}"))
}
