//! Addresses and names of symbols, in the kernel and in programs.

use super::Check;
use super::calls::Call;
use super::ops::arithmetic;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::probe::registers;
use crate::ty::{Space, Ty, U64};
use bt_abi::ValueType;
use bt_lang::Span;
use bt_lang::ast::{BinaryOp, ProbeKind};

impl Check<'_, '_> {
    pub(super) fn ksym(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        self.retyped(value, Ty::Opaque(ValueType::KernelSymbol), call)
    }

    pub(super) fn usym(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        let value = self.retyped(value, U64, call);
        Expr::new(
            Ty::Opaque(ValueType::UserSymbol),
            ExprKind::Intrinsic(Intrinsic::Usym, vec![value]),
            call.span,
        )
    }

    pub(super) fn kaddr(&mut self, call: &Call<'_>) -> Expr {
        let Some(name) = self.literal(&call.args[0], "kaddr") else {
            return Expr::new(U64, ExprKind::Error, call.span);
        };
        self.kernel_symbol(&name, call.span)
    }

    fn kernel_symbol(&mut self, name: &str, span: Span) -> Expr {
        if let Some(address) = self.inputs.facts.kernel_symbol(name) {
            return Expr::int(address, U64, span);
        }
        self.wrong_hint(
            span,
            format!("failed to resolve kernel symbol: {name}"),
            "/proc/kallsyms lists the symbols; it has data only if the kernel was built with \
             CONFIG_KALLSYMS_ALL",
        );
        Expr::new(U64, ExprKind::Error, span)
    }

    /// Checks `percpu_kaddr(name[, cpu])`. Like the kernel's own `per_cpu_ptr`
    /// (`include/asm-generic/percpu.h`), it adds the CPU's word of an offset table to the symbol's
    /// address. A CPU that does not exist has the address 0.
    pub(super) fn percpu_kaddr(&mut self, call: &Call<'_>) -> Expr {
        let span = call.span;
        let Some(name) = self.literal(&call.args[0], "percpu_kaddr") else {
            return Expr::new(U64, ExprKind::Error, span);
        };
        let (symbol, table) = (
            self.kernel_symbol(&name, span),
            self.kernel_symbol("__per_cpu_offset", span),
        );
        if symbol.kind == ExprKind::Error || table.kind == ExprKind::Error {
            return Expr::new(U64, ExprKind::Error, span);
        }
        let given = call.args.get(1).map(|arg| self.integer(arg));
        let cpu = given.clone().unwrap_or_else(|| {
            Expr::new(U64, ExprKind::Intrinsic(Intrinsic::Cpu, Vec::new()), span)
        });
        let cpu = self.convert(cpu, U64, span);
        let word = arithmetic(BinaryOp::Mul, cpu.clone(), Expr::int(8, U64, span), span);
        let addr = Box::new(arithmetic(BinaryOp::Add, word, table, span));
        let distance = Expr::new(
            U64,
            ExprKind::Load {
                addr,
                space: Space::Kernel,
                bits: None,
            },
            span,
        );
        let place = arithmetic(BinaryOp::Add, distance, symbol, span);
        if given.is_none() {
            return place;
        }
        let count = Expr::int(u64::from(self.inputs.facts.possible_cpus()), U64, span);
        let cond = Box::new(arithmetic(BinaryOp::Lt, cpu, count, span));
        let otherwise = Box::new(Expr::int(0, U64, span));
        Expr::new(
            U64,
            ExprKind::Cond {
                cond,
                then: Box::new(place),
                otherwise,
            },
            span,
        )
    }

    pub(super) fn uaddr(&mut self, call: &Call<'_>) -> Expr {
        let Some(name) = self.literal(&call.args[0], "uaddr") else {
            return Expr::new(U64, ExprKind::Error, call.span);
        };
        let Some(path) = self.context.path.clone() else {
            return self.not_here("uaddr", "uprobes, uretprobes and usdt probes", call.span);
        };
        let Some((address, size)) = self.inputs.facts.user_symbol(&path, &name) else {
            return self.wrong(
                call.args[0].span,
                format!("could not resolve symbol: {path}:{name}"),
            );
        };
        let int = match size {
            1 | 2 | 4 => format!("uint{}", size * 8),
            _ => "uint64".to_owned(),
        };
        let ty = match self.types.store.base(&int) {
            Ok(Some(to)) => Ty::Ptr {
                to,
                space: Space::User,
            },
            _ => U64,
        };
        match self.loaded_at(call.span) {
            Some(moved) => Expr {
                span: call.span,
                ..moved.offset(address, ty)
            },
            None => Expr::int(address, ty, call.span),
        }
    }

    /// Returns the distance between the file's addresses in the process and in the file itself.
    /// Libraries and position-independent programs lie elsewhere in each process. The probe's own
    /// place gives the distance; `None` if the probe has no single place.
    fn loaded_at(&self, span: Span) -> Option<Expr> {
        let vaddr = self.context.vaddr?;
        let here = if self.context.kind == ProbeKind::Uprobe {
            Expr::new(
                U64,
                ExprKind::Ctx {
                    offset: registers(self.context.arch).instruction,
                    size: 8,
                },
                span,
            )
        } else {
            Expr::new(
                U64,
                ExprKind::Intrinsic(Intrinsic::FuncIp, Vec::new()),
                span,
            )
        };
        Some(here.offset(vaddr.wrapping_neg(), U64))
    }

    pub(super) fn retyped(&mut self, value: Expr, ty: Ty, call: &Call<'_>) -> Expr {
        if value.ty.is_unknown() {
            return Expr::new(ty, ExprKind::Error, call.span);
        }
        if !value.ty.is_scalar() {
            let name = self.type_name(&value.ty);
            return self.wrong(
                call.span,
                format!(
                    "{}() expects an integer, not a value of type '{name}'",
                    call.name
                ),
            );
        }
        Expr::new(ty, ExprKind::Convert(Box::new(value)), call.span)
    }
}
