//! Functions that give numbers, and functions answered when compiling.

use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp, ProbeKind};

use super::Check;
use super::calls::Call;
use super::ops::arithmetic;
use crate::hir::{Expr, ExprKind, Intrinsic, Stmt};
use crate::probe::registers;
use crate::ty::{I64, Space, Ty, U32, U64};
use bt_abi::signals;
use bt_abi::{Clock, StackMode, ValueType};
use typeinfo::NameKind;
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
                    "known are bpftrace, perf, raw, build_id and folded",
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

    pub(super) fn ksym(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        self.retyped(value, Ty::Opaque(ValueType::KernelSymbol), call)
    }

    fn retyped(&mut self, value: Expr, ty: Ty, call: &Call<'_>) -> Expr {
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
                        "known are boot, monotonic, tai and sw_tai",
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
                    "known are init and curr_ns",
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

    pub(super) fn static_assert(&mut self, call: &Call<'_>) -> Expr {
        let cond = self.condition(&call.args[0]);
        let message = self
            .literal(&call.args[1], "static_assert")
            .unwrap_or_default();
        match cond.constant() {
            Some(0) => self.wrong(call.span, message),
            Some(_) => Expr::statement(Vec::new(), call.span),
            None => self.wrong(
                call.span,
                "static_assert() needs a condition that is known when compiling",
            ),
        }
    }

    pub(super) fn assert_str(&mut self, call: &Call<'_>) -> Expr {
        let value = self.expr(&call.args[0]);
        match &value.ty {
            Ty::Str(_) | Ty::Unknown => Expr::statement(Vec::new(), call.span),
            ty => {
                let name = self.type_name(ty);
                self.wrong(
                    call.args[0].span,
                    format!("expected a string here, not a value of type '{name}'"),
                )
            }
        }
    }

    pub(super) fn kfunc_exist(&mut self, call: &Call<'_>) -> Expr {
        let Some(name) = self.literal(&call.args[0], "kfunc_exist") else {
            return Expr::new(Ty::Bool, ExprKind::Error, call.span);
        };
        self.types.load_kernel_types();
        let found = self
            .types
            .kernel
            .and_then(|source| self.types.store.find_in(source, NameKind::Func, &name).ok());
        Expr::int(u64::from(found.flatten().is_some()), Ty::Bool, call.span)
    }

    pub(super) fn kfunc_allowed(&mut self, call: &Call<'_>) -> Expr {
        let known = self.literal(&call.args[0], "kfunc_allowed").is_some();
        let no = Expr::int(0, Ty::Bool, call.span);
        if known {
            no
        } else {
            Expr::new(Ty::Bool, ExprKind::Error, call.span)
        }
    }

    pub(super) fn assert(&mut self, call: &Call<'_>) -> Expr {
        let cond = self.condition(&call.args[0]);
        let message = self.expr(&call.args[1]);
        let sent = self.assertion(message, call.span);
        let otherwise = vec![
            sent,
            Stmt::Expr(self.leave(Expr::int(1, I64, call.span), call.span)),
        ];
        Expr::statement(
            vec![Stmt::If {
                cond,
                then: Vec::new(),
                otherwise,
            }],
            call.span,
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
