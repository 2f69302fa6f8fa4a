//! Table of the builtins.

use bt_lang::Span;
use bt_lang::ast::ProbeKind;
use typeinfo::NameKind;

use super::Check;
use super::expr::smallest;
use crate::hir::{Expr, ExprKind, Intrinsic};
use crate::probe::registers;
use crate::ty::{Space, Ty, U32, U64};
use bt_abi::{Clock, ValueType};

/// Builtin of the language.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) make: fn(&mut Check<'_, '_>, Span) -> Expr,
}

/// Returns a builtin computed by an intrinsic.
fn intrinsic(ty: Ty, intrinsic: Intrinsic, span: Span) -> Expr {
    Expr::new(ty, ExprKind::Intrinsic(intrinsic, Vec::new()), span)
}

/// All builtins, except `args`, `argN` and `sargN`, which have rules of their own.
pub(crate) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "pid",
        doc: "The process's id.",
        make: |_, span| intrinsic(U32, Intrinsic::Pid, span),
    },
    Builtin {
        name: "tid",
        doc: "The thread's id.",
        make: |_, span| intrinsic(U32, Intrinsic::Tid, span),
    },
    Builtin {
        name: "uid",
        doc: "The user's id.",
        make: |_, span| intrinsic(U64, Intrinsic::Uid, span),
    },
    Builtin {
        name: "gid",
        doc: "The group's id.",
        make: |_, span| intrinsic(U64, Intrinsic::Gid, span),
    },
    Builtin {
        name: "cpu",
        doc: "The CPU.",
        make: |_, span| intrinsic(U32, Intrinsic::Cpu, span),
    },
    Builtin {
        name: "comm",
        doc: "The thread's name.",
        make: |_, span| intrinsic(Ty::Str(16), Intrinsic::Comm, span),
    },
    Builtin {
        name: "nsecs",
        doc: "Nanoseconds since boot, time asleep included.",
        make: |_, span| intrinsic(U64, Intrinsic::Now(Clock::Boot), span),
    },
    Builtin {
        name: "elapsed",
        doc: "Nanoseconds since tracing began.",
        make: |check, span| check.elapsed(span),
    },
    Builtin {
        name: "curtask",
        doc: "The thread's `struct task_struct`.",
        make: |check, span| check.curtask(span),
    },
    Builtin {
        name: "cgroup",
        doc: "The id of the thread's cgroup.",
        make: |_, span| intrinsic(U64, Intrinsic::Cgroup, span),
    },
    Builtin {
        name: "rand",
        doc: "A random number.",
        make: |_, span| intrinsic(U32, Intrinsic::Random, span),
    },
    Builtin {
        name: "jiffies",
        doc: "The kernel's ticks.",
        make: |_, span| intrinsic(U64, Intrinsic::Jiffies, span),
    },
    Builtin {
        name: "ncpus",
        doc: "The number of CPUs.",
        make: |check, span| Expr::int(u64::from(check.inputs.facts.online_cpus()), U64, span),
    },
    Builtin {
        name: "numaid",
        doc: "The memory node.",
        make: |_, span| intrinsic(U32, Intrinsic::NumaNode, span),
    },
    Builtin {
        name: "ctx",
        doc: "The address of the probe's context.",
        make: |check, span| check.ctx(span),
    },
    Builtin {
        name: "probe",
        doc: "The probe's name.",
        make: |check, span| check.probe_name(span),
    },
    Builtin {
        name: "probetype",
        doc: "The kind of probe.",
        make: |check, span| check.probe_type(span),
    },
    Builtin {
        name: "func",
        doc: "The function that is traced.",
        make: |check, span| check.func(span),
    },
    Builtin {
        name: "retval",
        doc: "The returned value.",
        make: |check, span| check.retval(span),
    },
    Builtin {
        name: "kstack",
        doc: "The kernel's stack.",
        make: |check, span| check.stack(false, &[], span),
    },
    Builtin {
        name: "ustack",
        doc: "The process's stack.",
        make: |check, span| check.stack(true, &[], span),
    },
    Builtin {
        name: "username",
        doc: "The user's name.",
        make: |_, span| intrinsic(Ty::Opaque(ValueType::Username), Intrinsic::Uid, span),
    },
    Builtin {
        name: "usermode",
        doc: "1 if the traced code is the process's, 0 if the kernel's.",
        make: |check, span| check.usermode(span),
    },
    Builtin {
        name: "cpid",
        doc: "The id of the process of -c.",
        make: |check, span| {
            Expr::int(
                u64::from(check.inputs.facts.child().unwrap_or(0)),
                U32,
                span,
            )
        },
    },
    Builtin {
        name: "has_cpid",
        doc: "True if there is a process of -c.",
        make: |check, span| {
            Expr::int(
                u64::from(check.inputs.facts.child().is_some()),
                Ty::Bool,
                span,
            )
        },
    },
    Builtin {
        name: "ppid",
        doc: "The parent's id.",
        make: |check, span| check.task(&["real_parent", "tgid"], span),
    },
    Builtin {
        name: "pcomm",
        doc: "The parent's name.",
        make: |check, span| check.task(&["real_parent", "comm"], span),
    },
    Builtin {
        name: "leader_tid",
        doc: "The id of the process's first thread.",
        make: |check, span| check.task(&["group_leader", "pid"], span),
    },
    Builtin {
        name: "leader_comm",
        doc: "The name of the process's first thread.",
        make: |check, span| check.task(&["group_leader", "comm"], span),
    },
    Builtin {
        name: "default_str_length",
        doc: "The longest string that str() reads.",
        make: |check, span| Expr::int(u64::from(check.inputs.config.max_strlen), U64, span),
    },
    Builtin {
        name: "config",
        doc: "The script's settings, as a record.",
        make: |check, span| check.config(span),
    },
    Builtin {
        name: "safe_mode",
        doc: "True if --unsafe was not given.",
        make: |check, span| {
            Expr::int(
                u64::from(!check.inputs.facts.allows_unsafe()),
                Ty::Bool,
                span,
            )
        },
    },
];

impl Check<'_, '_> {
    fn elapsed(&mut self, span: Span) -> Expr {
        let start = Expr::int(self.inputs.facts.start_time(), U64, span);
        let now = intrinsic(U64, Intrinsic::Now(Clock::Boot), span);
        let kind = ExprKind::Binary {
            op: bt_lang::ast::BinaryOp::Sub,
            left: Box::new(now),
            right: Box::new(start),
            signed: false,
        };
        Expr::new(U64, kind, span)
    }

    pub(super) fn curtask(&mut self, span: Span) -> Expr {
        let ty = match self.types.find_type(NameKind::Struct, "task_struct") {
            Some(to) => Ty::Ptr {
                to,
                space: Space::Kernel,
            },
            None => U64,
        };
        intrinsic(ty, Intrinsic::CurTask, span)
    }

    /// Reads a field at the end of a path from the thread's `task_struct`.
    fn task(&mut self, path: &[&str], span: Span) -> Expr {
        let task = self.curtask(span);
        self.task_path(task, path, span)
    }

    /// Reads the same field of the task in the call's first argument, if there is one.
    pub(super) fn task_field(&mut self, call: &super::calls::Call<'_>, path: &[&str]) -> Expr {
        match call.args.first() {
            Some(task) => {
                let task = self.expr(task);
                self.task_path(task, path, call.span)
            }
            None => self.task(path, call.span),
        }
    }

    fn task_path(&mut self, mut at: Expr, path: &[&str], span: Span) -> Expr {
        for name in path {
            if at.ty == Ty::Unknown {
                return at;
            }
            let Ty::Ptr { to, space } = at.ty else {
                return self.wrong_hint(
                    span,
                    "expected a pointer to a struct task_struct here",
                    "curtask is one if the kernel has type information (/sys/kernel/btf/vmlinux)",
                );
            };
            let field = match self.types.store.member(to, name) {
                Ok(field) => field,
                Err(error) => return self.wrong(span, error.to_string()),
            };
            let addr = at.offset(field.byte_offset(), U64);
            at = self.read(addr, field.ty, space, span);
        }
        at
    }

    fn ctx(&mut self, span: Span) -> Expr {
        intrinsic(U64, Intrinsic::Context, span)
    }

    fn probe_name(&mut self, span: Span) -> Expr {
        self.string(self.context.name.clone().into_bytes(), span)
    }

    fn probe_type(&mut self, span: Span) -> Expr {
        let name = match self.context.kind {
            // The language's reference names the script's own probes so.
            ProbeKind::Begin | ProbeKind::End | ProbeKind::SelfEvent => "special",
            kind => kind.name(),
        };
        self.string(name.as_bytes().to_vec(), span)
    }

    fn func(&mut self, span: Span) -> Expr {
        match self.context.kind {
            ProbeKind::Uprobe | ProbeKind::Usdt => {
                let ip = u64::from(registers(self.context.arch).instruction);
                let addr = Expr::new(
                    U64,
                    ExprKind::Ctx {
                        offset: ip as u32,
                        size: 8,
                    },
                    span,
                );
                Expr::new(
                    Ty::Opaque(ValueType::UserSymbol),
                    ExprKind::Intrinsic(Intrinsic::Usym, vec![addr]),
                    span,
                )
            }
            ProbeKind::Uretprobe => {
                let addr = intrinsic(U64, Intrinsic::FuncIp, span);
                Expr::new(
                    Ty::Opaque(ValueType::UserSymbol),
                    ExprKind::Intrinsic(Intrinsic::Usym, vec![addr]),
                    span,
                )
            }
            ProbeKind::Kprobe | ProbeKind::Kretprobe | ProbeKind::Fentry | ProbeKind::Fexit => {
                let Some(name) = &self.context.function else {
                    return intrinsic(Ty::Opaque(ValueType::KernelSymbol), Intrinsic::FuncIp, span);
                };
                // The address, which `ksym` also gives, if we may read it.
                match self
                    .inputs
                    .facts
                    .kernel_symbol(name)
                    .filter(|address| *address != 0)
                {
                    Some(address) => Expr::int(address, Ty::Opaque(ValueType::KernelSymbol), span),
                    None => self.string(name.clone().into_bytes(), span),
                }
            }
            _ => self.not_here("func", "kprobes, uprobes and usdt probes", span),
        }
    }

    fn usermode(&mut self, span: Span) -> Expr {
        let ty = Ty::Int {
            size: 1,
            signed: false,
        };
        if self.context.is_sample() || self.context.has_registers() {
            return intrinsic(ty, Intrinsic::UserMode, span);
        }
        // Without registers the answer is fixed: the script's own probes run in user code, all
        // others in the kernel.
        let own = matches!(
            self.context.kind,
            ProbeKind::Begin | ProbeKind::End | ProbeKind::SelfEvent
        );
        Expr::int(u64::from(own), ty, span)
    }

    /// Returns a number in the smallest type.
    pub(super) fn number(value: u64, span: Span) -> Expr {
        Expr::int(value, smallest(value), span)
    }
}
