//! Functions that give numbers, and functions answered at compile time.

use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp};

use super::Check;
use super::calls::Call;
use super::ops::arithmetic;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::probe::registers;
use crate::ty::{Space, Ty, U32, U64};
use bt_abi::{Clock, StackMode, ValueType, signals};
use uapi::perf::MAX_STACK_DEPTH;

/// Limit on the depth of a stack that a script can ask for.
const MAX_FRAMES: u64 = MAX_STACK_DEPTH as u64;

impl Check<'_, '_> {
    /// Returns the text of a string literal, or reports that it is none.
    pub(super) fn literal(&mut self, arg: &ast::Expr, what: &str) -> Option<String> {
        let value = self.expr(arg);
        match value.kind {
            ExprKind::Str(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            ExprKind::Error => None,
            _ => {
                self.wrong(arg.span, format!("{what}() expects a string literal"));
                None
            }
        }
    }

    pub(super) fn stack(&mut self, user: bool, args: &[ast::Expr], span: Span) -> Expr {
        let (mut mode, mut depth) = (self.inputs.config.stack_mode, MAX_FRAMES);
        for arg in args {
            if let ast::ExprKind::Ident(name) = &arg.kind
                && let Some((_, found)) = StackMode::NAMES.iter().find(|(known, _)| known == name)
            {
                mode = *found;
                continue;
            }
            if let ast::ExprKind::Ident(name) = &arg.kind {
                return self.wrong_hint(
                    arg.span,
                    format!("unknown stack mode: {name}"),
                    "expected bpftrace, perf, raw, build_id or folded",
                );
            }
            let value = self.integer(arg);
            match value.constant() {
                Some(number) if number <= MAX_FRAMES => depth = number,
                Some(number) => {
                    return self.wrong(
                        arg.span,
                        format!("a stack has at most {MAX_FRAMES} frames, not {number}"),
                    );
                }
                None => {
                    return self.wrong(arg.span, "the depth of a stack must be a literal number");
                }
            }
        }
        if mode == StackMode::BuildId && !user {
            return self.wrong(
                span,
                "stack mode build_id is only for ustack: the kernel is not a file",
            );
        }
        Expr::new(
            Ty::Stack {
                user,
                mode,
                depth: depth.max(1) as u32,
            },
            ExprKind::Intrinsic(Intrinsic::Stack, Vec::new()),
            span,
        )
    }

    pub(super) fn reg(&mut self, call: &Call<'_>) -> Expr {
        let Some(name) = self.literal(&call.args[0], "reg") else {
            return Expr::new(U64, ExprKind::Error, call.span);
        };
        // The context of a sample begins with the registers, too.
        if !self.context.has_registers() && !self.context.is_sample() {
            return self.not_here(
                "reg",
                "kprobes, uprobes, usdt probes and samples",
                call.span,
            );
        }
        match register(&name, self.context) {
            Some(offset) => Expr::new(U64, ExprKind::Ctx { offset, size: 8 }, call.span),
            None => self.wrong(
                call.args[0].span,
                format!("'{name}' is not a valid register on {}", self.context.arch),
            ),
        }
    }

    pub(super) fn in_space(&mut self, call: &Call<'_>) -> Expr {
        let space = if call.name == "kptr" {
            Space::Kernel
        } else {
            Space::User
        };
        let value = self.expr(&call.args[0]);
        match value.ty {
            Ty::Ptr { to, .. } => Expr {
                ty: Ty::Ptr { to, space },
                ..value
            },
            Ty::Int { .. } => {
                let to = typeinfo::TypeRef::VOID;
                Expr::new(
                    Ty::Ptr { to, space },
                    ExprKind::Convert(Box::new(value)),
                    call.span,
                )
            }
            Ty::Unknown => value,
            ref ty => {
                let name = self.type_name(ty);
                self.wrong(
                    call.span,
                    format!(
                        "{}() expects a pointer, not a value of type '{name}'",
                        call.name
                    ),
                )
            }
        }
    }

    pub(super) fn bswap(&mut self, call: &Call<'_>) -> Expr {
        let value = self.integer(&call.args[0]);
        let Ty::Int { size, .. } = value.ty else {
            return value;
        };
        let ty = Ty::Int {
            size,
            signed: false,
        };
        if let Some(number) = value.constant() {
            let turned = number.swap_bytes() >> (64 - 8 * u32::from(size));
            return Expr::int(turned, ty, call.span);
        }
        Expr::new(
            ty,
            ExprKind::Intrinsic(Intrinsic::Bswap(size), vec![value]),
            call.span,
        )
    }

    pub(super) fn signal(&mut self, call: &Call<'_>) -> Expr {
        if !self.inputs.facts.allows_unsafe() {
            return self.wrong_hint(
                call.span,
                format!("{}() acts on the machine: it needs --unsafe", call.name),
                "add --unsafe to allow it",
            );
        }
        let value = self.expr(&call.args[0]);
        let number = match &value.kind {
            ExprKind::Str(name) => match signals::number(&String::from_utf8_lossy(name)) {
                Some(number) => Self::number(number, call.span),
                None => return self.wrong(call.args[0].span, "this is not a signal"),
            },
            _ => value,
        };
        let fun = if call.name == "signal_thread" {
            Intrinsic::SignalThread
        } else {
            Intrinsic::Signal
        };
        Expr::new(Ty::Void, ExprKind::Intrinsic(fun, vec![number]), call.span)
    }

    pub(super) fn nsecs(&mut self, call: &Call<'_>) -> Expr {
        let clock = match call.args.first().map(|arg| (&arg.kind, arg.span)) {
            None => Clock::Boot,
            Some((ast::ExprKind::Ident(name), span)) => match name.as_str() {
                "boot" => Clock::Boot,
                "monotonic" => Clock::Monotonic,
                "tai" | "sw_tai" => Clock::Tai,
                _ => {
                    return self.wrong_hint(
                        span,
                        format!("invalid timestamp mode: {name}"),
                        "expected boot, monotonic, tai or sw_tai",
                    );
                }
            },
            Some((_, span)) => return self.wrong(span, "nsecs() expects the name of a clock"),
        };
        Expr::new(
            U64,
            ExprKind::Intrinsic(Intrinsic::Now(clock), Vec::new()),
            call.span,
        )
    }

    pub(super) fn pid(&mut self, call: &Call<'_>) -> Expr {
        let first = match call.args.first().map(|arg| &arg.kind) {
            None => false,
            Some(ast::ExprKind::Ident(name)) if name == "init" => true,
            Some(ast::ExprKind::Ident(name)) if name == "curr_ns" => false,
            Some(_) => {
                return self.wrong_hint(
                    call.args[0].span,
                    format!("invalid PID namespace mode for {}()", call.name),
                    "expected init or curr_ns",
                );
            }
        };
        let process = call.name == "pid";
        if first {
            let both = Expr::new(
                U64,
                ExprKind::Intrinsic(Intrinsic::PidTid, Vec::new()),
                call.span,
            );
            let value = if process {
                arithmetic(
                    BinaryOp::Shr,
                    both,
                    Expr::int(32, U64, call.span),
                    call.span,
                )
            } else {
                both
            };
            return Expr::new(U32, ExprKind::Convert(Box::new(value)), call.span);
        }
        let fun = if process {
            Intrinsic::Pid
        } else {
            Intrinsic::Tid
        };
        Expr::new(U32, ExprKind::Intrinsic(fun, Vec::new()), call.span)
    }

    pub(super) fn is_err(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        let value = self.convert(value, U64, call.span);
        let limit = Expr::int((-4095_i64).cast_unsigned(), U64, call.span);
        arithmetic(BinaryOp::Ge, value, limit, call.span)
    }

    pub(super) fn strerror(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        self.retyped(value, Ty::Opaque(ValueType::ErrorText), call)
    }

    pub(super) fn signal_name(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        self.retyped(value, Ty::Opaque(ValueType::SignalText), call)
    }

    pub(super) fn strftime(&mut self, call: &Call<'_>) -> Expr {
        let format = self.literal(&call.args[0], "strftime").unwrap_or_default();
        let value = self.expr(&call.args[1]);
        let mut clock = Clock::Boot;
        value.walk(&mut |ex| {
            if let ExprKind::Intrinsic(Intrinsic::Now(found), _) = ex.kind {
                clock = found;
            }
        });
        self.retyped(
            value,
            Ty::Opaque(ValueType::Timestamp {
                clock,
                format: format.into(),
            }),
            call,
        )
    }

    pub(super) fn cgroupid(&mut self, call: &Call<'_>) -> Expr {
        let Some(path) = self.literal(&call.args[0], "cgroupid") else {
            return Expr::new(U64, ExprKind::Error, call.span);
        };
        match self.inputs.facts.cgroup_id(&path) {
            Some(id) => Expr::int(id, U64, call.span),
            None => self.wrong(
                call.args[0].span,
                format!("failed to find the cgroup {path}"),
            ),
        }
    }

    pub(super) fn cgroup_path(&mut self, call: &Call<'_>) -> Expr {
        let hierarchy = match call.args.get(1) {
            Some(arg) => self.literal(arg, "cgroup_path").unwrap_or_default(),
            None => String::new(),
        };
        let value = self.expr(&call.args[0]);
        self.retyped(
            value,
            Ty::Opaque(ValueType::CgroupPath {
                hierarchy: hierarchy.into(),
            }),
            call,
        )
    }
}

/// Returns a register's offset in the context.
fn register(name: &str, context: &super::Context) -> Option<u32> {
    let regs = registers(context.arch);
    match name {
        "ip" | "pc" => return Some(regs.instruction),
        "sp" => return Some(regs.stack),
        _ => {}
    }
    if context.arch == uapi::Arch::Aarch64 {
        let number: u32 = name.strip_prefix(['r', 'x'])?.parse().ok()?;
        return (number < 31).then_some(number * 8);
    }
    // The kernel's names of x86-64 registers in pt_regs have no leading r.
    let long = match name {
        "ax" | "bx" | "cx" | "dx" | "si" | "di" | "bp" => format!("r{name}"),
        _ => name.to_owned(),
    };
    let (register, _) = usdt::registers::X86Register::parse(&long)?;
    Some(u32::from(register.pt_regs_offset()))
}
