//! Arguments of a probe by number, and its return value.

use super::Check;
use crate::hir::{Expr, ExprKind};
use crate::probe::{Args, registers};
use crate::ty::{Space, Ty, U64};
use bt_lang::Span;
use bt_lang::ast::ProbeKind;

impl Check<'_, '_> {
    pub(super) fn retval(&mut self, span: Span) -> Expr {
        match &self.context.args {
            Args::Return => {
                let offset = registers(self.context.arch).result;
                Expr::new(U64, ExprKind::Ctx { offset, size: 8 }, span)
            }
            Args::Words {
                params,
                returns: Some(returns),
            } => {
                let (offset, returns) = (params.len() as u32 * 8, *returns);
                let ty = self.ty_in(returns, Space::Kernel);
                self.word(offset, ty, span)
            }
            _ => self.not_here("retval", "kretprobes, uretprobes and fexit probes", span),
        }
    }

    /// Reads a word of the context as a value of a type.
    pub(super) fn word(&mut self, offset: u32, ty: Ty, span: Span) -> Expr {
        let word = Expr::new(U64, ExprKind::Ctx { offset, size: 8 }, span);
        if ty.is_scalar() {
            self.convert(word, ty, span)
        } else {
            word
        }
    }

    /// Checks `arg0` and so on.
    pub(super) fn argument(&mut self, number: u32, span: Span) -> Expr {
        let regs = registers(self.context.arch);
        match &self.context.args {
            Args::Call => {
                if let Some(&offset) = regs.args.get(number as usize) {
                    Expr::new(U64, ExprKind::Ctx { offset, size: 8 }, span)
                } else {
                    let last = regs.args.len() - 1;
                    self.wrong_hint(
                        span,
                        format!("{} doesn't support arg{number}", self.context.arch),
                        format!(
                            "arg0 to arg{last} are in registers; those after them are sarg0 and so \
                             on"
                        ),
                    )
                }
            }
            Args::Usdt(specs) => {
                if let Some(spec) = specs.get(number as usize) {
                    let ty = Ty::Int {
                        size: 8,
                        signed: spec.ty.signed && !spec.ty.float,
                    };
                    Expr::new(ty, ExprKind::UsdtArg(Box::new(spec.clone())), span)
                } else {
                    let (count, name) = (specs.len(), self.context.name.clone());
                    let arguments = if count == 1 { "argument" } else { "arguments" };
                    self.wrong(
                        span,
                        format!("{name} has {count} {arguments}, so no arg{number}"),
                    )
                }
            }
            Args::Words { .. } => {
                if self.context.kind == ProbeKind::Rawtracepoint {
                    return Expr::new(
                        U64,
                        ExprKind::Ctx {
                            offset: number * 8,
                            size: 8,
                        },
                        span,
                    );
                }
                self.not_here(
                    &format!("arg{number}"),
                    "kprobes, uprobes and usdt probes; here use args.NAME",
                    span,
                )
            }
            _ => self.not_here(
                &format!("arg{number}"),
                "kprobes, uprobes and usdt probes",
                span,
            ),
        }
    }

    /// Checks `sarg0` and so on: words above the return address.
    pub(super) fn stack_argument(&mut self, number: u32, span: Span) -> Expr {
        if self.context.args != Args::Call {
            return self.not_here(&format!("sarg{number}"), "kprobes and uprobes", span);
        }
        let regs = registers(self.context.arch);
        let stack = Expr::new(
            U64,
            ExprKind::Ctx {
                offset: regs.stack,
                size: 8,
            },
            span,
        );
        let addr = Box::new(stack.offset(regs.stack_args + u64::from(number) * 8, U64));
        Expr::new(
            U64,
            ExprKind::Load {
                addr,
                space: self.context.space,
                bits: None,
            },
            span,
        )
    }

    /// Reports a builtin that this kind of probe doesn't have.
    pub(super) fn not_here(&mut self, what: &str, kinds: &str, span: Span) -> Expr {
        let here = self.context.kind.name();
        self.wrong_hint(
            span,
            format!("the {what} builtin can't be used in a {here} probe"),
            format!("it can be used in {kinds}"),
        )
    }
}
