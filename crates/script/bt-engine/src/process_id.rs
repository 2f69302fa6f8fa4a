//! References of a script to its target: `__PID__`, the process's number, which SPDK's wrapper
//! script would put into the text, and `is_target(pid)`, true for a traced process.

use bt_compiler::{FOLLOWED, TargetFacts as _};
use bt_lang::Span;
use bt_lang::ast::visit::{VisitMut, walk_expr, walk_item};
use bt_lang::ast::{
    Base, BinaryOp, Expr, ExprKind, IntLit, IntSuffix, ItemKind, MapRef, Name, Program, Type,
    TypeKind, UnaryOp,
};

use crate::Error;
use crate::facts::Facts;

const WORD: &str = "__PID__";
const FUNCTION: &str = "is_target";

/// The target, as far as scripts refer to it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Processes {
    /// The process, or the first of several.
    pub(crate) pid: Option<u32>,
    /// Number of processes.
    pub(crate) count: usize,
    /// True if they are in a map, which the kernel's programs look into.
    pub(crate) is_set: bool,
    /// True if the kernel has other numbers for them than we do.
    pub(crate) is_inside: bool,
}

impl Processes {
    /// Returns the processes of a script's target.
    pub(crate) fn from_facts(facts: &Facts) -> Result<Self, Error> {
        let pids = facts.files.subject().pids();
        let is_set = facts.traced().is_some_and(|traced| traced.is_set());
        let is_inside = facts.pid_namespace().is_some();
        if is_inside && pids.len() > 1 {
            return Err(Error::InnerNamespace {
                what: "tracing several processes",
            });
        }
        Ok(Self {
            pid: pids.first().copied(),
            count: pids.len(),
            is_set,
            is_inside,
        })
    }
}

/// Puts the target in. Returns an error if the script needs a target and there is none.
pub(crate) fn put_in(program: &mut Program, target: &Processes) -> Result<(), Error> {
    // A script's own function or macro of that name is the script's.
    let is_own = program.items.iter().any(|item| match &item.kind {
        ItemKind::Fn(function) => function.name.text == FUNCTION,
        ItemKind::Macro(definition) => definition.name.text == FUNCTION,
        _ => false,
    });
    let mut visitor = Visitor {
        target: *target,
        is_own,
        wrong: None,
    };
    program
        .items
        .iter_mut()
        .for_each(|item| walk_item(&mut visitor, item));
    visitor.wrong.map_or(Ok(()), Err)
}

/// Returns true if a script refers to its target.
pub(crate) fn asks(program: &Program) -> bool {
    // Without a target, `__PID__` is an error, and a number in place of `is_target` is a change.
    let mut changed = program.clone();
    put_in(&mut changed, &Processes::default()).is_err() || changed != *program
}

struct Visitor {
    target: Processes,
    is_own: bool,
    wrong: Option<Error>,
}

impl VisitMut for Visitor {
    fn expr(&mut self, expr: &mut Expr) {
        let span = expr.span;
        match &mut expr.kind {
            ExprKind::Call { func, args }
                if func.text == FUNCTION && args.len() == 1 && !self.is_own =>
            {
                if let Some(process) = args.pop() {
                    *expr = self.is_target(process, span);
                }
            }
            ExprKind::Binary {
                op: op @ (BinaryOp::Eq | BinaryOp::Ne),
                left,
                right,
                ..
            } if self.target.is_set && is_word(left) != is_word(right) => {
                let is_other = *op == BinaryOp::Ne;
                let process = if is_word(left) { right } else { left };
                let found = is_in_set(process.as_ref().clone(), span);
                let not = |found| ExprKind::Unary {
                    op: UnaryOp::Not,
                    operand: Box::new(found),
                };
                *expr = if is_other {
                    Expr::new(not(found), span)
                } else {
                    found
                };
            }
            ExprKind::Ident(name) if name == WORD => {
                match self.target {
                    Processes { pid: None, .. } => self.wrong = Some(Error::NeedsProcess),
                    Processes { count, .. } if count > 1 => {
                        self.wrong = Some(Error::NeedsOneProcess { count });
                    }
                    _ => {}
                }
                *expr = number(self.target.pid.unwrap_or_default(), span);
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}

impl Visitor {
    /// Returns an expression that is true if a process is traced.
    fn is_target(&mut self, process: Expr, span: Span) -> Expr {
        let Some(pid) = self.target.pid else {
            return number(1, span);
        };
        if self.target.is_set {
            return is_in_set(process, span);
        }
        // `pid` is the number that we see.
        if self.target.is_inside && process.kind != ExprKind::Ident("pid".to_owned()) {
            self.wrong = Some(Error::InnerNamespace {
                what: "a script that asks which process another thread belongs to (is_target)",
            });
        }
        let (left, right) = (Box::new(process), Box::new(number(pid, span)));
        Expr::new(
            ExprKind::Binary {
                op: BinaryOp::Eq,
                op_span: span,
                left,
                right,
            },
            span,
        )
    }
}

fn is_word(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Ident(name) if name == WORD)
}

fn number(value: u32, span: Span) -> Expr {
    let (value, text) = (u64::from(value), value.to_string());
    Expr::new(
        ExprKind::Int(IntLit {
            value,
            base: Base::Decimal,
            suffix: IntSuffix::None,
            text,
        }),
        span,
    )
}

/// Returns `has_key(@dptrace_followed, (uint64)process)`.
fn is_in_set(process: Expr, span: Span) -> Expr {
    let name = |text: &str| Name {
        text: text.to_owned(),
        span,
    };
    let map = Expr::new(
        ExprKind::Map(MapRef {
            name: name(FOLLOWED),
            keys: Vec::new(),
        }),
        span,
    );
    let ty = Box::new(Type::new(TypeKind::Name("uint64".to_owned()), span));
    let key = Expr::new(
        ExprKind::Cast {
            ty,
            operand: Box::new(process),
        },
        span,
    );
    Expr::new(
        ExprKind::Call {
            func: name("has_key"),
            args: vec![map, key],
        },
        span,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Processes = Processes {
        pid: Some(42),
        count: 1,
        is_set: false,
        is_inside: false,
    };
    const SEVERAL: Processes = Processes {
        count: 3,
        is_set: true,
        ..ONE
    };

    #[track_caller]
    fn check(text: &str, target: Processes, expected: &str) {
        let script = format!("tracepoint:a:b /{text}/ {{ @ = count(); }}");
        let mut program = bt_lang::parse(&script).program;
        let shown = match put_in(&mut program, &target) {
            Ok(()) => bt_lang::fmt::format(&program, &script),
            Err(error) => error.to_string(),
        };
        assert!(shown.contains(expected), "{text}: {shown}");
    }

    #[test]
    fn the_word_is_a_number_or_a_look_into_a_map() {
        check("pid == __PID__", ONE, "/pid == 42/");
        check(
            "pid == __PID__",
            Processes {
                is_set: true,
                ..ONE
            },
            "/has_key(@dptrace_followed, (uint64)pid)/",
        );
        check(
            "pid == __PID__",
            SEVERAL,
            "/has_key(@dptrace_followed, (uint64)pid)/",
        );
        check(
            "__PID__ != ppid && 1",
            SEVERAL,
            "/!has_key(@dptrace_followed, (uint64)ppid) && 1/",
        );
        check("pid > __PID__", SEVERAL, "there are 3");
        check(
            "pid > __PID__",
            Processes {
                is_set: true,
                ..ONE
            },
            "/pid > 42/",
        );
        check("pid == __PID__", Processes::default(), WORD);
        check("pid == 1", Processes::default(), "/pid == 1/");
    }

    #[test]
    fn a_process_is_a_target_or_not() {
        check("is_target(arg0)", Processes::default(), "/1/");
        check("is_target(arg0)", ONE, "/arg0 == 42/");
        check(
            "!is_target(arg0)",
            SEVERAL,
            "/!has_key(@dptrace_followed, (uint64)arg0)/",
        );
        check(
            "is_target(pid)",
            Processes {
                is_inside: true,
                ..ONE
            },
            "/pid == 42/",
        );
        check(
            "is_target(arg0)",
            Processes {
                is_inside: true,
                ..ONE
            },
            "first PID namespace",
        );
        let own = "macro is_target($x) { $x } begin { print(is_target(1)); }";
        assert!(!asks(&bt_lang::parse(own).program));
        assert!(asks(
            &bt_lang::parse("begin { print(is_target(1)); }").program
        ));
        assert!(asks(&bt_lang::parse("begin { print(__PID__); }").program));
    }
}
